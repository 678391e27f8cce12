from __future__ import annotations

from collections import Counter
from importlib.resources import files

import pytest

from weir.datasets import catalogue
from weir.errors import BadValue, UnknownName
from weir.experiment.published import (
    PublishedScore,
    Reported,
    claimant,
    claimed,
    comparable,
    model_named,
    published,
    publisher_of,
    reported,
)
from weir.measures import parse_measure
from weir.models.checkpoints import cards
from weir.systems import SYSTEMS, parse_system

KNOWN = [
    ("BM25 flat [Anserini]", "scifact", "test", "nDCG@10", "0.6789"),
    ("BM25 flat [Pyserini 2CR]", "nfcorpus", "test", "R@100", "0.2457"),
    ("BM25 multifield [Anserini]", "nfcorpus", "test", "nDCG@10", "0.3254"),
    ("BM25 [BEIR paper]", "scifact", "test", "nDCG@10", "0.665"),
    ("BM25 [BEIR paper]", "trec-covid", "test", "R_cap@100", "0.498"),
    ("TAS-B [BEIR paper]", "msmarco", "dev", "nDCG@10", "0.408"),
    ("sentence-transformers/all-MiniLM-L6-v2 [MTEB]", "scifact", "test", "nDCG@10", "0.64508"),
    ("sentence-transformers/all-MiniLM-L6-v2 [MTEB]", "scifact", "test", "R@100", "0.925"),
    ("Lucene k1=1.5 b=0.75 [bm25-benchmarks]", "scifact", "test", "nDCG@10", "0.687"),
    ("bm25-default [Pyserini 2CR]", "trec-dl-2019", "test", "AP(rel=2)@1000", "0.3013"),
]


@pytest.mark.parametrize(("model", "dataset", "split", "measure", "printed"), KNOWN)
def test_known_numbers_stand_as_printed(model, dataset, split, measure, printed):
    found = published(dataset, model, measure)
    assert [(s.split, s.printed) for s in found] == [(split, printed)]
    assert found[0].value == float(printed)
    assert found[0].source


def test_every_score_is_a_share_of_1_of_a_measure_that_weir_has_with_a_source():
    everything = published()
    assert len(everything) > 7000
    assert len({(s.model, s.dataset, s.split, s.measure) for s in everything}) == len(everything)
    for score in everything:
        assert 0 <= score.value <= 1
        assert len(score.source) > 10
    for name in {s.measure for s in everything}:
        assert str(parse_measure(name)) == name


def test_nothing_stands_there_that_nobody_can_look_up():
    for score in published():
        assert not any(word in score.source for word in ("memory", "seed", "derived", "file id", "/work"))


def test_the_collections_of_beir_have_the_names_of_the_catalogue():
    known = {*catalogue.collection_names(), *catalogue.groups()}
    names = {s.dataset for s in published() if s.model == "BM25 [BEIR paper]"}
    assert len(names) == 19
    assert names <= known
    splits = {s.split for s in published("msmarco")}
    assert splits == {"dev"}


def test_the_data_are_small():
    folder = files("weir.experiment") / "facts"
    assert sum(len((folder / f.name).read_bytes()) for f in folder.iterdir() if f.is_file()) < 400_000


def test_a_score_agrees_to_the_last_printed_digit():
    score = PublishedScore("m", "lexical", "d", "test", "AP", "0.3218", "s", "")
    assert score.decimals == 4
    assert score.agrees(0.32175)
    assert score.agrees(0.32184999)
    assert not score.agrees(0.32186)
    assert not score.agrees(0.32174)
    assert score.agrees(0.3222, decimals=3)
    assert not score.agrees(0.3224, decimals=3)
    assert score.agrees(0.3218, decimals=9)
    assert not score.agrees(0.32186, decimals=9)  # no more than was printed


def test_a_model_is_found_by_words_that_only_one_has():
    assert model_named("anserini bm25-flat") == "BM25 flat [Anserini]"
    assert model_named("BM25 flat [Anserini]") == "BM25 flat [Anserini]"
    assert model_named("minilm-l6 v2") == "sentence-transformers/all-MiniLM-L6-v2 [MTEB]"
    assert model_named("BM25 default", {"trec-dl-2019"}) == "BM25 default [Anserini]"


def test_each_published_name_finds_its_model_where_it_is_published_and_without_its_publisher():
    by_place = {}
    for one in published():
        by_place.setdefault(one.dataset, set()).add(one.model)
    for dataset, models in by_place.items():
        bare = Counter(model.rpartition(" [")[0] for model in models)
        for model in models:
            assert model_named(model, {dataset}) == model
            name = model.rpartition(" [")[0]
            if bare[name] == 1:
                assert model_named(name, {dataset}) == model
            else:
                with pytest.raises(BadValue, match=f"of {dataset}: "):
                    model_named(name, {dataset})


def test_words_that_fit_several_models_or_none_are_refused():
    with pytest.raises(BadValue, match=r"'bm25' fits several published models: .*and \d+ more"):
        model_named("bm25")
    with pytest.raises(UnknownName, match=r"did you mean .*Contriever"):
        model_named("Contreiver [Contriever paper]")
    with pytest.raises(UnknownName, match="no published model named ''"):
        model_named("")
    assert published("no such collection") == ()


def test_claims_name_models_that_are_there_and_systems_that_print_so():
    for system in ("bm25", 'bm25("lucene-multifield")', 'bm25("elastic")', "rm3", "bm25(k1=0.82, b=0.68)"):
        assert str(parse_system(system)) == system
        for model in claimed(system, "somewhere"):
            assert published(model=model)
            assert claimant(model) == system
    assert claimed('bm25("lucene-multifield")', "scifact") == (
        "BM25 multifield [Anserini]",
        "BM25 multifield [Pyserini 2CR]",
        "BM25 [BEIR paper]",
    )
    # On ArguAna the paper's number alone is another index's.
    anserini = ("BM25 multifield [Anserini]", "BM25 multifield [Pyserini 2CR]")
    assert claimed('bm25("lucene-multifield")', "arguana") == anserini
    assert claimed("bm25(k1=2.0)", "scifact") == ()
    assert claimant("GenQ [BEIR paper]") is None
    assert "bm25" in SYSTEMS


def test_the_card_of_a_model_names_its_published_scores_and_none_of_another_model():
    mteb = "sentence-transformers/all-mpnet-base-v2 [MTEB]"
    for system in (
        'dense("mpnet")',
        'dense("sentence-transformers/all-mpnet-base-v2")',
        'dense("mpnet", engine="torch", batch_tokens=8)',
    ):
        assert claimed(system, "scifact") == (mteb,)
    others = ('dense("mpnet", dtype="int8")', 'dense("mpnet", max_length=128)', 'dense("mpnet#int8")')
    for other in (*others, 'dense("mpnet", query_prompt="query: ")', 'splade("mpnet")'):
        assert claimed(other, "scifact") == ()
    assert claimed('dense("gte-base-en#fp32")', "scifact") == ("Alibaba-NLP/gte-base-en-v1.5 [MTEB]",)
    assert claimed('dense("intfloat/e5-base")', "scifact") == ()  # the first version
    assert claimed('dense("e5-base")', "scifact") == ("intfloat/e5-base-v2 [MTEB]",)
    assert "Contriever-msmarco [Pyserini 2CR]" not in claimed('dense("contriever")', "scifact")
    assert claimed('splade("splade")', "scifact") == ()  # the published weights are whole numbers
    assert "SPLADE++ ED [Pyserini 2CR]" in claimed('splade("splade", quantised=True)', "scifact")
    assert claimed("my system of 'mine'", "scifact") == ()


def test_a_fusion_claims_by_its_parts_whatever_names_them():
    model = "RRF (BM25+BGE, k=60, depth 1000) [Anserini fusion]"
    assert claimed('rrf(bm25, dense("BAAI/bge-base-en-v1.5"))', "scifact") == (model,)
    assert claimed('rrf(bm25, dense("bge-base"), k=10)', "scifact") == ()
    assert claimed('rrf(bm25, dense("bge-base"))', "arguana") == ()  # its queries are documents
    assert claimed('dense("contriever")', "webis-touche2020") == (
        "Contriever [Pyserini 2CR]",
    )  # by today's judgments


def test_what_a_checkpoint_is_called_is_what_its_scores_are_called():
    """Where a publisher calls a model as the hub does, the card is that very checkpoint's."""
    for card in cards():
        for model in card.published:
            name, _, publisher = model.rpartition(" [")
            assert published(model=model), model
            assert "/" not in name or name == card.hub
            assert publisher.rstrip("]") != "MTEB" or name == card.hub
            assert claimant(model) == f'{card.system}("{card.name}")'


def test_no_published_model_is_claimed_twice_and_every_claim_is_a_system():
    claims = [(claimant(score.model), score.model) for score in comparable()]
    for system in {system for system, _ in claims if system is not None}:
        assert str(parse_system(system)) == system
    claimed_by: dict[str, set[str]] = {}
    for score, system in comparable().items():
        claimed_by.setdefault(score.model, set()).add(system)
    assert {
        model: systems for model, systems in claimed_by.items() if len(systems) > 1 and "[BIRCO]" not in model
    } == {}


def test_a_rank_file_of_birco_is_its_published_row():
    model = "GPT-4 (gpt-4-0613), scoring +O [BIRCO]"
    for path in ("GPT-4_score_O.pickle", "ranks/relic/GPT-4_score_O.json"):
        assert claimed(f'run("{path}")', "birco-relic") == (model,)
    assert claimed('run("GPT-4_score_O.pickle")', "relic") == ()
    assert claimed('run("GPT-4_score.pickle")', "birco-relic") == ()
    # One file of a model is misspelt, on one collection.
    assert claimed('run("Rrankgpt_llama7b.pickle")', "birco-wtb") == (
        "LLaMA2-chat 7B, listwise ranking [BIRCO]",
    )


def test_copies_and_splits_are_known_by_the_names_that_scores_have():
    assert reported("hf:mteb/scifact@d56462d0", "test") == Reported("scifact", "test", 300)
    assert reported("hf:mteb/scifact", "train") == Reported("scifact", "train", None)
    assert reported("msmarco", "test") == Reported("trec-dl-2019", "test", 43)
    assert reported("msmarco", "dev").dataset == "msmarco"
    assert reported("trec-dl-2020", "test").queries == 54
    assert reported("hf:mteb/webis-touche2020-v3", "test").dataset == "webis-touche2020-v3"
    assert (
        reported("hf:mteb/BIRCO-Relic-Test", "test").dataset == "hf:mteb/BIRCO-Relic-Test"
    )  # no pools there
    assert reported("shop", "test") == Reported("shop", "test", None)


def test_publishers_have_the_rules_that_are_documented():
    assert publisher_of("BM25 flat [Anserini]").ties == "anserini"
    assert publisher_of("BM25 flat [Anserini]").missing == "zero"
    assert publisher_of("x [MTEB]").missing == "answered-only"
    unknown = publisher_of("x [PyLate docs]")
    assert (unknown.name, unknown.ties, unknown.self_match, unknown.missing) == (
        "PyLate docs",
        None,
        None,
        None,
    )
