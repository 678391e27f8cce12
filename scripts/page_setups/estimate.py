"""300 simulated queries of which people judged 60, a lenient model, two systems."""

import numpy as np

import weir

rng = np.random.default_rng(3)
names = [f"q{i:03d}" for i in range(300)]
chance = rng.beta(1.2, 1.8, 300)
truth = {n: {f"d{j}": int(rng.random() < chance[i]) for j in range(20)} for i, n in enumerate(names)}
model = {
    n: {d: (int(rng.random() < 0.25) or g) if rng.random() < 0.9 else 1 - g for d, g in of.items()}
    for n, of in truth.items()
}


def ranked(skill):
    return {n: sorted(of, key=lambda d: -(of[d] * skill + rng.random()))[:10] for n, of in truth.items()}


first = rng.permutation(names)[:60].tolist()
weir.Qrels.of({n: truth[n] for n in first}).save("people.tsv")
weir.Qrels.of(model).save("model.tsv")
for name, skill in (("a", 0.1), ("b", 0.5)):
    weir.Run.of(ranked(skill)).save(f"{name}.trec")
