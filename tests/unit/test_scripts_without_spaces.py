"""Analyzers of scripts without spaces, of one's own, and stop words of one's own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from tests.golden.test_golden_text import compiled
from weir.errors import WeirError
from weir.systems.lexical.analyzer import _cjk_words, add_analyzer, analyzers, cjk_bigrams, thai_bigrams
from weir.systems.lexical.bm25 import BM25, BM25F

TERMS = {
    # By the rules of Lucene's CJKAnalyzer; not compared with its output.
    ("cjk-bigrams", "多くの学生が試験に落ちた。"): "多く くの の学 学生 生が が試 試験 験に に落 落ち ちた",
    ("cjk-bigrams", "ＡＢＣ ﾃｽﾄ ｶﾞｷﾞ Test's 3.14 １，５"): "abc テス スト ガギ test's 3.14 1,5",
    ("cjk-bigrams", "一 二、三四"): "一 二 三四",
    ("cjk-bigrams", "한국어 분석기a"): "한국 국어 분석기a",
    ("cjk-bigrams", "iPhoneを買う"): "iphone を買 買う",
    ("cjk-bigrams", "𠀀𠀁"): "𠀀𠀁",
    ("thai-bigrams", "กรุงเทพ Weir"): "กรุ รุง งเ เท ทพ weir",
    ("thai-bigrams", "น้ำ"): "น้ำ",
    ("thai-bigrams", "ທົດສອບ"): "ທົດ ດສ ສອ ອບ",
    ("thai-bigrams", "ភាសាខ្មែរ"): "ភាសា សាខ្មែ ខ្មែរ",
}
SCRAPS = [*"我爱か゚ガｶﾞﾊﾟー한국A1３，。、 _’.々𠀀\u3099\u0300\ufe00カ\n\u200déไทยที่ລາວກ្ក", "", "Test"]


@pytest.mark.parametrize(("name", "text"), TERMS)
def test_terms(name, text):
    assert analyzers.get(name).tokens(text) == TERMS[name, text].split()


@given(st.lists(st.sampled_from(SCRAPS), max_size=12).map("".join))
@settings(max_examples=400)
def test_short_ways_give_the_same_and_no_letter_is_lost(text):
    assert cjk_bigrams(text) == _cjk_words(text)
    for name, cut in (("cjk-bigrams", cjk_bigrams), ("thai-bigrams", thai_bigrams)):
        analyzer = analyzers.get(name)
        assert compiled(analyzer, [text, text]) == [analyzer.tokens(text)] * 2
        letters = {c for word in analyzers.get("lucene-standard").tokens(text) for c in word}
        assert letters <= {c for c in "".join(cut(text)).lower()} | set("ｶﾞﾊﾟ３，ー゚\u3099\u309a")


@pytest.fixture
def thai():
    docs = {"d1": "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย", "d2": "อาหารไทยมีรสเผ็ด", "d3": "ภาษาไทยใช้อักษรไทย"}
    return {name: {"text": text} for name, text in docs.items()}, {
        "q1": "เมืองหลวงของประเทศไทย",
        "q2": "อาหารไทย",
    }


@pytest.mark.parametrize("system", [BM25, BM25F])
def test_thai_is_found(thai, system):
    documents, queries = thai
    qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    for analyzer, score in (("lucene-english", 0.0), ("thai-bigrams", 1.0)):
        run = system(analyzer=analyzer).index(documents).search(queries, 3)
        assert weir.evaluate(qrels, run, ["nDCG@10"]).means()["nDCG@10"] == score


def test_an_analyzer_of_ones_own_is_a_function_with_a_version(thai):
    documents, _ = thai
    first = weir.add_analyzer("characters of a test", list, version="1")
    try:
        system = weir.system('bm25(analyzer="characters of a test")')
        run = system.index(documents).search({"q": "อ"}, 3)
        assert set(run.to_dict()["q"]) == {"d1", "d2", "d3"} - {
            d for d, text in documents.items() if "อ" not in text["text"]
        }
        described = system.describe()
        assert "version 1" in str(described["analysis"])
        weir.add_analyzer("characters of a test", list, version="2")
        assert system.describe() != described
        assert first.tokens("ab") == ["a", "b"]
        for bad in (lambda t: t, lambda t: [""], lambda t: [1], lambda t: ["a\nb"], lambda t: None):
            weir.add_analyzer("characters of a test", bad, version="3")
            with pytest.raises(WeirError, match="analyzer 'characters of a test' gave"):
                system.index(documents)
    finally:
        analyzers._known.pop("characters of a test")
    for name, version in (("", "1"), ("x", ""), ("lucene-english", "1"), ("cjk-bigrams", "1")):
        with pytest.raises(WeirError):
            add_analyzer(name, list, version=version)


@pytest.mark.parametrize("system", ["bm25", "bm25f"])
def test_stop_words_of_ones_own_are_dropped_before_stemming(tmp_path, system):
    words = tmp_path / "german.txt"
    words.write_text("\ufeff | Snowball's form\nDie  | the\nder\n# a comment\nhäuser\n", encoding="utf-8")
    named = f"{system}(analyzer=\"snowball-german\", stopwords='{words}')"
    one = weir.system(named)
    assert weir.system(str(one)) == one
    assert one.recipe.analysis.tokens("Die Häuser der Stadt, ein Haus") == ["stadt", "ein", "haus"]
    documents = {"a": {"text": "die die die"}, "b": {"text": "stadt"}}
    assert one.index(documents).search({"q": "Die Stadt"}, 2).to_dict()["q"].keys() == {"b"}
    before = one.describe()
    words.write_text("die", encoding="utf-8")
    assert weir.system(named).describe()["analysis"] != before["analysis"]
    plain = weir.system(f'{system}(analyzer="snowball-german")').describe()
    assert "stopwords" not in plain
    assert "dropped" not in plain["analysis"]


@pytest.mark.parametrize("content", [None, b"", b"# nothing\n", b"\xff\xfe\xfa", b"a\n" * (1 << 20)])
def test_stop_words_that_cannot_be_read_are_refused(tmp_path, content):
    path = tmp_path / "words.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(WeirError, match=r"words\.txt"):
        BM25(stopwords=str(path))
