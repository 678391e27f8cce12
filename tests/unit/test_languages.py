"""A collection in another language than an analyzer's is told beside the results, with the analyzer to take."""

from __future__ import annotations

import json

import pytest

import weir
from weir.audit import Subject, audited
from weir.core.corpus import Corpus
from weir.systems.lexical.analyzer import analyzers
from weir.systems.lexical.language import WORDS, language_of

TEXTS = {
    "english": "The weir is a low dam that was built across the river, and water flows over it to the mill. "
    * 3,
    "german": "Das Wehr ist ein niedriger Damm, der den Fluss staut und das Wasser zu der Mühle leitet. " * 3,
    "french": "Le barrage est une petite digue dans la rivière, et les eaux passent sur le mur pour le moulin. "
    * 3,
    "spanish": "La presa es un muro bajo que se construye en el río para que el agua llegue a los molinos. "
    * 3,
    "portuguese": "A represa é um muro baixo que não para o rio; a água do moinho passa por uma das portas. "
    * 3,
    "dutch": "De stuw is een lage dam die het water van de rivier niet tegenhoudt en naar de molen leidt. "
    * 3,
    "turkish": "Bu bent bir nehir için alçak ve uzun bir duvar olarak yapıldı, su daha çok değirmene gider. "
    * 3,
    "russian": "Плотина на реке поднимает воду",
    "arabic": "السد على النهر يرفع الماء",
    "persian": "سد روی رودخانه آب را بالا می‌برد چون پل",
    "hindi": "नदी पर बाँध",
    "greek": "Το φράγμα στο ποτάμι",
    "thai": "เขื่อนบนแม่น้ำ",
    "cjk": "川の堰は水を上げる",
}
OTHERS = {"another script": ["סכר על הנהר", "Гребля на річці піднімає воду в її ставі", "გუბე"]}
UNKNOWN = ["", "BRCA1 TP53 EGFR " * 40, "12 34", "def f(x): return x " * 30, "Das ist kurz"]


@pytest.mark.parametrize("language", TEXTS)
def test_texts_tell_their_language_and_its_analyzer(language):
    found = language_of([TEXTS[language]])
    assert (found.name, found.analyzer in analyzers) == (language, True)
    assert found.suits(analyzers.get(found.analyzer))
    assert found.suits(analyzers.get("lucene-standard")) == (language not in ("thai", "cjk"))
    assert found.suits(analyzers.get("lucene-english")) == (language == "english")
    mixed = language_of([TEXTS[language] * 3, "Weir 2.0"])
    assert mixed.name == language


def test_texts_that_tell_nothing_name_no_language():
    assert [language_of([text]) for text in UNKNOWN] == [None] * len(UNKNOWN)
    assert {language_of([text]).analyzer for text in OTHERS["another script"]} == {"lucene-standard"}
    assert {f"snowball-{language}" for language in WORDS} <= set(analyzers.names())


def collection(tmp_path, text):
    folder = tmp_path / "mine"
    (folder / "qrels").mkdir(parents=True)
    lines = [json.dumps({"_id": f"d{n}", "text": text}, ensure_ascii=False) for n in range(3)]
    (folder / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": text[:20]}), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td1\t1\n")
    return folder


@pytest.mark.parametrize(
    ("language", "system", "said"),
    [
        ("thai", "bm25", 'bm25(analyzer="thai-bigrams")'),
        ("cjk", "bm25f", 'bm25(analyzer="cjk-bigrams")'),
        ("thai", 'bm25(analyzer="lucene-standard")', 'bm25(analyzer="thai-bigrams")'),
        ("german", "rm3(bm25)", 'bm25(analyzer="snowball-german")'),
        ("english", 'bm25(analyzer="snowball-german")', 'bm25(analyzer="snowball-english")'),
        ("german", 'bm25(analyzer="snowball-german")', ""),
        ("german", 'bm25(analyzer="whitespace")', ""),
        ("thai", 'bm25(analyzer="thai-bigrams")', ""),
        ("english", "bm25", ""),
    ],
)
def test_a_run_says_that_its_analyzer_is_made_for_another_language(tmp_path, language, system, said):
    folder = collection(tmp_path, TEXTS[language])
    notes = [str(n) for n in weir.benchmark(folder, system, ["nDCG@10"], tmp_path / "out").notes()]
    told = [note for note in notes if "looks like" in note]
    assert len(told) == bool(said)
    assert all(said in note and "mine" in note for note in told)


@pytest.mark.parametrize("language", TEXTS)
def test_an_audit_names_a_language_that_is_not_english(language):
    subject = Subject("mine", Corpus.of({"d": {"text": TEXTS[language]}}))
    found = audited(subject, ["language"]).findings
    assert [finding.severity for finding in found] == ([] if language == "english" else ["note"])
    assert all(language_of([TEXTS[language]]).analyzer in finding.remedy for finding in found)
