"""40 simulated queries, people's labels of 60% of the pairs, a good model and a poor one, two systems."""

import random
from pathlib import Path

import weir

draw = random.Random(7)
queries = [f"q{n:02d}" for n in range(40)]
documents = [f"d{n:02d}" for n in range(24)]
truth = {q: {d: draw.choices((0, 1, 2), (6, 3, 2))[0] for d in documents} for q in queries}


def judged(right, lenient):
    def label(grade):
        return (
            grade
            if draw.random() < right
            else min(2, grade + 1)
            if draw.random() < lenient
            else max(0, grade - 1)
        )

    return {q: {d: label(g) for d, g in of.items()} for q, of in truth.items()}


people = {q: {d: g for d, g in of.items() if draw.random() < 0.6} for q, of in truth.items()}
good, poor = judged(0.85, 0.7), judged(0.35, 0.9)
weir.Qrels.of(people).save("people.tsv")
weir.Qrels.of(good).labelled("llm:good:umbrela-1f0c").save("good.tsv")
weir.Qrels.of(poor).labelled("llm:poor:umbrela-1f0c").save("poor.tsv")
later = {
    q: {d: g for d, g in of.items() if d not in people[q] and draw.random() < 0.8} for q, of in truth.items()
}
weir.Qrels.of(later).save("sheet.tsv")
for name, skill in (("a", 0.35), ("b", 0.6)):
    ranked = {q: sorted(of, key=lambda d: -(of[d] * skill + draw.random()))[:10] for q, of in truth.items()}
    weir.Run.of(ranked).save(f"{name}.trec")
