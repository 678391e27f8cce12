"""Search servers behind HTTP as systems: templates, pages, exact counts of what failed, nothing asked twice."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

import weir
from tests.kills import MOST_SECONDS, killed_when
from tests.unit import search_servers as ss
from tests.unit.brooklet import write_collection
from tests.unit.model_servers import changed, cut, hang, reset
from tests.unit.remote_place import CORPUS, answer, expected, queries
from weir.cli import main
from weir.errors import BadValue, FormatError, RankingWarning, ServiceError, UnknownName
from weir.plugins.servers.endpoint import (
    ABSENT,
    Http,
    JsonPath,
    filled_json,
    filled_path,
    read_template,
    template_names,
)
from weir.systems import parse_system

VALUES = {
    "elasticsearch": 'index = "shop"\nfields = ["title^2", "body"]',
    "opensearch": 'index = "shop"\nfields = ["title^2", "body"]',
    "solr": 'collection = "shop"\nfields = "title^2 body"',
    "vespa": 'schema = "shop"',
    "qdrant": 'collection = "shop"\nvector = "words"',
    "weaviate": 'collection = "Shop"\nfields = ["title", "body"]',
    "meilisearch": 'index = "shop"',
    "typesense": 'collection = "shop"\nfields = "title,body"',
    "algolia": 'app = "APP1"\nindex = "shop"',
}
AWKWARD = 'say "no" OR {query} \\ AND -50% (a+b)/c: d? ü& x=y;\n</s> \'; -- #'
QUICK = "[limits]\nattempts = 3\npause_s = 0.01\n"


UNTRIED = pytest.mark.filterwarnings("ignore:.*was tested against a stand-in:weir.errors.RankingWarning")


def described(folder: Path, name: str, url: str, more: str = QUICK) -> str:
    """A file that extends a template."""
    path = folder / "search.toml"
    text = f'extends = "{name}"\nurl = "{url}"\n{more}\n[values]\n{VALUES[name]}\n'
    path.write_text(text, encoding="utf-8")
    return str(path)


RESCORED = """
[body]
size = "{size}"
query.multi_match = {query = "{query}", fields = "{fields}"}
rescore = {window_size = 4, query = {rescore_query = {match = {title = "{query}"}}}}
"""


def test_stages_before_the_last_are_asked_for(tmp_path):
    """What a server finds and what it rescores are stages of a funnel; the first phase is a system of its own."""
    [(query, found)] = expected(["river"], 10).items()
    names = list(found)
    dataset = weir.Dataset.of(
        {d: f"text of {d}" for d in CORPUS.ids}, {query: "river"}, {query: {names[0]: 1}}
    )
    with ss.searching("elasticsearch") as (url, manners):
        file = described(tmp_path, "elasticsearch", url, QUICK + RESCORED)
        whole = Http(file, version="1")
        [funnel] = weir.funnel(dataset, whole, weir.FunnelRules(k=3))
        assert [(one.name, one.left, one.lost) for one in funnel.stages] == [
            ("first phase", 1, 0),
            (str(whole), 1, 0),
            ("first 3", 0, 1),
        ]
        assert funnel.whole[-1].losses[0].ranks == (1, 4)
        assert not manners.wrong
        first = parse_system(f'http("{file}", version="1", stage="first phase")')
        assert list(first.index(dataset.corpus).search(dataset.queries, 3).to_dict()[query]) == names[:3]
        assert (first.describe() == whole.describe(), first.earlier_stages()) == (False, ())
        with pytest.raises(UnknownName, match="no stage of this server named 'last'"):
            Http(file, stage="last").describe()
        plain = Http(described(tmp_path, "elasticsearch", url))
        assert plain.earlier_stages() == ()


@pytest.mark.parametrize("paths", ['"body.rescore"', "[]", "[1]", '["headers.x"]', '["body"]'])
def test_stages_that_leave_out_nothing_are_refused(tmp_path, paths):
    file = described(tmp_path, "elasticsearch", "http://127.0.0.1:1", f'[stages]\n"first phase" = {paths}\n')
    with pytest.raises(FormatError, match=r"stages\.first phase is"):
        read_template(Path(file))


def test_every_template_is_tried():
    assert template_names() == sorted(VALUES)


LIVE = ("elasticsearch", "opensearch", "solr", "weaviate")
"""The templates whose servers tests/real starts."""


@pytest.mark.parametrize("name", VALUES)
def test_a_template_that_never_met_its_server_says_so(name, tmp_path, monkeypatch, recwarn):
    monkeypatch.setenv("WEIR_KEY_ALGOLIA", "search-only-key")
    Http(described(tmp_path, name, "http://127.0.0.1:1")).index(CORPUS)
    messages = [str(one.message) for one in recwarn]
    assert bool(messages) == (name not in LIVE)
    assert all(f"the template {name} was tested against a stand-in" in one for one in messages)
    page = Path(weir.__file__).parents[2] / "docs" / "retrievers.md"
    if page.is_file():
        [row] = [
            line
            for line in page.read_text(encoding="utf-8").splitlines()
            if line.startswith("| `http`, template") and f"`{name}`" in line.split("|")[1]
        ]
        assert ("stand-in" in row) == (name not in LIVE)


@UNTRIED
@pytest.mark.parametrize("name", VALUES)
def test_requests_keep_to_the_published_api_whatever_the_query_says(name, tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_KEY_ALGOLIA", "a-secret")
    texts = ["plain words", AWKWARD, "leer", "{cursor}"]
    with ss.searching(name) as (url, manners):
        manners.ranked = lambda text, k: {} if text == "leer" else answer(text, k)
        file = described(tmp_path, name, url)
        searcher = Http(file, version="1").index(CORPUS)
        run = searcher.search(queries(texts), 7).to_dict()
    assert manners.wrong == []
    if name == "solr":  # its operators are escaped as words, and what is empty is confirmed
        assert (manners.asked[AWKWARD], manners.asked["leer"]) == (1, 2)
    wanted = expected(texts, 7, without=(2,))
    assert {q: list(ranking) for q, ranking in run.items()} == {q: list(r) for q, r in wanted.items()}
    if name not in ("typesense", "algolia"):  # which tell no score that a double holds
        assert run == wanted
    assert searcher.costs().services[0].facts()["empty"] == 1


@UNTRIED
@pytest.mark.parametrize(("name", "size"), [("vespa", 400), ("typesense", 250), ("algolia", 1000)])
def test_what_a_server_gives_in_pages_is_asked_for_page_by_page(name, size, tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_KEY_ALGOLIA", "a-secret")
    with ss.searching(name) as (url, manners):
        file = described(tmp_path, name, url, QUICK + "[page]\nsize = 4\n")
        run = Http(file).index(CORPUS).search(queries(["a"]), 9).to_dict()
        assert list(run["q0"]) == list(answer("a", 9))
        assert len(manners.sent) == 3
    assert read_template(Path(described(tmp_path, name, url))).page_size == size


def test_a_cursor_is_followed_to_its_end(tmp_path):
    """search_after: the sort values of the last document ask for the next page."""
    (tmp_path / "search.toml").write_text(
        'extends = "elasticsearch"\nurl = "URL"\n[values]\nindex = "shop"\nfields = ["title^2", "body"]\n'
        '[page]\nsize = 4\nnext = "hits.hits[-1].sort"\n'
        '[body]\nsize = "{size}"\nsearch_after = "{cursor}"\nsort = ["_score", "tie"]\n'
        '[body.query.multi_match]\nquery = "{query}"\nfields = "{fields}"\n'
    )
    with ss.searching("elasticsearch") as (url, manners):
        path = tmp_path / "search.toml"
        path.write_text(path.read_text().replace("URL", url))

        def page(sent: ss.Sent):
            after = sent.body.get("search_after")
            skip = 0 if after is None else after[1]
            text, _, count, shape = ss.elasticsearch(sent)

            def sorted_shape(found):
                made = shape(found)
                for place, hit in enumerate(made["hits"]["hits"]):
                    hit["sort"] = [hit["_score"], skip + place + 1]
                return made

            return text, skip, count, sorted_shape

        ss.APIS["paged"] = page
        with ss.searching("paged") as (paged, paged_manners):
            path.write_text(path.read_text().replace(url, paged))
            run = Http(str(path)).index(CORPUS).search(queries(["a"]), 50).to_dict()
        del ss.APIS["paged"]
    assert run["q0"] == answer("a", 10)
    assert [sent.body.get("search_after", [0, 0])[1] for sent in paged_manners.sent] == [0, 4, 8, 10]
    assert manners.sent == []


@pytest.mark.slow
def test_exact_counts_of_a_server_that_misbehaves(tmp_path):
    """429, 500, silence, garbage and half answers: each attempt is counted by kind, each query by its last."""
    garbage = changed(lambda _: b"<html>busy</html>")
    partial = changed(lambda found: found["_shards"].update(failed=1))
    texts = [f"text {n}" for n in range(20)]
    with ss.searching("elasticsearch") as (url, manners):
        manners.faults = {
            "text 1": [ss.status(429, Retry_After="0")],
            "text 2": [ss.status(500), ss.status(503)],
            "text 3": [garbage, cut],
            "text 4": [partial, reset],
            "text 5": [hang],
            "text 6": [ss.status(400)],
            "text 7": [ss.status(500)] * 3,
            "text 8": [garbage] * 3,
            "text 9": [hang] * 3,
            "text 10": [changed(lambda found: found["hits"].update(hits=None))] * 3,
            "text 11": [changed(lambda found: found["hits"]["hits"][0].pop("_score"))] * 3,
            "text 12": [ss.status(429)] * 3,
        }
        timeouts = QUICK + "timeout_s = 2.0\nwhole_s = 10.0\n"
        file = described(tmp_path, "elasticsearch", url, timeouts)
        searcher = Http(file, version="1", on_failure="missing").index(CORPUS)
        with pytest.warns(
            RankingWarning, match=r"7 of 20 queries have no answer \(1 failed, 3 malformed, 2 refused"
        ):
            run = searcher.search(queries(texts), 5).to_dict()
        facts = searcher.costs().services[0].facts()
        assert run == expected(texts, 5, without=(6, 7, 8, 9, 10, 11, 12))
        assert (facts["answered"], facts["stored"], facts["empty"]) == (13, 0, 0)
        assert facts["unanswered"] == {"failed": 1, "malformed": 3, "refused": 2, "timed out": 1}
        assert facts["faults"] == {"failed": 7, "malformed": 11, "refused": 5, "timed out": 4}
        assert facts["retried"] == 27 - 7
        assert sum(manners.asked.values()) == 20 + facts["retried"]
        before = Counter(manners.asked)
        manners.faults.clear()
        assert Http(file, version="1").index(CORPUS).search(queries(texts), 5).to_dict() == expected(texts, 5)
        assert manners.asked - before == Counter({f"text {n}": 1 for n in range(6, 13)})


def test_a_server_that_is_gone_or_refuses_the_key_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_KEY_SHOP", "very-secret")
    header = '\n[headers]\nAuthorization = "ApiKey ${WEIR_KEY_SHOP}"\n'
    with ss.searching("elasticsearch") as (url, manners):
        file = described(tmp_path, "elasticsearch", url, QUICK + header)
        manners.faults = {"a": [changed(lambda _: {"saw": "very-secret"}), ss.status(401)]}
        with pytest.raises(ServiceError, match=r"401 .*the key was taken from WEIR_KEY_SHOP") as caught:
            Http(file).index(CORPUS).search(queries(["a"]), 5)
        assert "very-secret" not in str(caught.value)
        assert {sent.headers["Authorization"] for sent in manners.sent} == {"ApiKey very-secret"}
        monkeypatch.delenv("WEIR_KEY_SHOP")
        with pytest.raises(ServiceError, match="environment variable WEIR_KEY_SHOP"):
            Http(file).index(CORPUS).search(queries(["a"]), 5)
    monkeypatch.setenv("WEIR_KEY_SHOP", "very-secret")
    with pytest.raises(ServiceError, match=r"20 queries in a row have no answer, .*Connection refused"):
        Http(file).index(CORPUS).search(queries(["a"] * 99), 5)


def test_searched_fields_are_looked_up_once_before_the_queries(tmp_path):
    """Elasticsearch finds nothing in a field that does not exist, and says nothing of it."""
    texts = [f"text {n}" for n in range(40)]
    with ss.searching("elasticsearch") as (url, manners):
        file = described(tmp_path, "elasticsearch", url)
        assert Http(file).index(CORPUS).search(queries(texts), 5).to_dict() == expected(texts, 5)
        assert 1 <= manners.fields_asked <= 8  # by each connection at most once
        manners.fields = ["title", "bodies"]
        with pytest.raises(UnknownName, match=r"no field that .* searches named 'body'; did you mean bodies"):
            Http(file).index(CORPUS).search(queries(texts), 5)
        assert len(manners.asked) == sum(manners.asked.values()) == 40  # nothing was asked in vain
        manners.fields = ["_id", "_source"]  # the server's own are no fields of documents
        wild = Path(file).read_text().replace('["title^2", "body"]', '["*"]')
        (tmp_path / "wild.toml").write_text(wild)
        with pytest.raises(UnknownName, match="named '\\*'; none is known"):
            Http(str(tmp_path / "wild.toml")).index(CORPUS).search(queries(texts), 5)
        manners.fields = None
        with pytest.warns(
            RankingWarning, match=r"whether the searched fields exist is not known: .*405.*not here"
        ):
            assert Http(file).index(CORPUS).search(queries(texts), 5).to_dict() == expected(texts, 5)
        manners.fields = []  # a body of one's own says itself what it searches
        own = (
            Path(file).read_text() + '[body]\nsize = "{size}"\n[body.query.multi_match]\nquery = "{query}"\n'
        )
        Path(file).write_text(own + 'fields = ["title^2", "body"]\n')
        assert read_template(Path(file)).fields is None
        assert Http(file).index(CORPUS).search(queries(texts), 5).to_dict() == expected(texts, 5)


def test_an_answer_without_all_shards_is_none(tmp_path):
    with ss.searching("opensearch") as (url, manners):
        file = described(tmp_path, "opensearch", url)
        lost = changed(lambda found: found["_shards"].update(total=3, successful=2, skipped=1, failed=0))
        manners.faults = {"a": [lost] * 3}
        with pytest.raises(ServiceError, match=r"_shards\.successful: 2, not 3 as _shards\.total"):
            Http(file).index(CORPUS).search(queries(["a"]), 5)


def test_an_empty_answer_is_confirmed_and_an_error_of_status_200_is_one(tmp_path):
    words = "river " * 1000  # Solr quotes the query before it says what is wrong with it
    refused = {
        "error": {"msg": f"SyntaxError: Cannot parse '{words}': too many boolean clauses", "code": 400}
    }
    with ss.searching("solr") as (url, manners):
        manners.ranked = lambda text, k: {} if text == "long" else answer(text, k)
        file = described(tmp_path, "solr", url)
        nothing = changed(lambda _: None)
        manners.faults = {"long": [nothing, lambda handler, _: handler.reply(400, refused)]}
        with pytest.raises(
            ServiceError, match=r"1 of 2 queries .*query of 1 words is empty.*too many boolean clauses"
        ):
            Http(file, version="1").index(CORPUS).search(queries(["a", "long"]), 5)
        assert Http(file, version="1").index(CORPUS).search(queries(["a", "long"]), 5).to_dict()["q1"] == {}
        Path(file).write_text(Path(file).read_text() + '[body]\nquery = "{query}"\n')
        assert read_template(Path(file)).empty_body is None
    with ss.searching("weaviate") as (url, manners):
        file = described(tmp_path, "weaviate", url)
        wrong = {
            "data": {"Get": {"Shop": None}},
            "errors": [{"message": "no property 'titel'", "path": ["Get"]}],
        }
        manners.faults = {"a": [changed(lambda _: wrong)]}
        with pytest.raises(ServiceError, match=r"\(1 refused\).*no property 'titel'"):
            Http(file).index(CORPUS).search(queries(["a"]), 5)
        assert manners.asked["a"] == 1


def test_a_server_that_answers_nothing_or_nothing_to_long_queries_is_told(tmp_path):
    texts = ["word " * (1 + n % 40) + str(n) for n in range(200)]
    with ss.searching("elasticsearch") as (url, manners):
        file = described(tmp_path, "elasticsearch", url)
        manners.ranked = lambda _text, _k: {}
        with pytest.raises(
            ServiceError, match=r"none of 200 queries is answered with any document; check what"
        ):
            Http(file).index(CORPUS).search(queries(texts), 5)
        with pytest.warns(RankingWarning, match="none of 200 queries is answered"):
            Http(file, on_failure="missing").index(CORPUS).search(queries(texts), 5)
        assert Http(file).index(CORPUS).search(queries(["a"]), 5).to_dict() == {
            "q0": {}
        }  # one may find nothing
        manners.ranked = lambda text, k: {} if len(text.split()) > 40 else answer(text, k)
        with pytest.warns(RankingWarning, match="the 5 longest queries, of more than .* characters each"):
            Http(file).index(CORPUS).search(queries(texts), 5)
        manners.ranked = lambda text, k: {} if text.endswith("7") else answer(text, k)
        run = Http(file).index(CORPUS).search(queries(texts), 5)  # 20 of any length: no word of it
        assert sum(not found for found in run.to_dict().values()) == 20


def test_limits_and_headers_are_no_part_of_the_key_and_the_file_is(tmp_path):
    file = described(tmp_path, "elasticsearch", "http://localhost:9200")
    before = Http(file, version="1").describe()
    described(tmp_path, "elasticsearch", "http://localhost:9200", "[limits]\nconcurrency = 2\n")
    assert Http(file, version="1").describe() == before
    text = Path(file).read_text().replace("title^2", "title^3")
    Path(file).write_text(text)
    assert Http(file, version="1").describe() != before
    system = Http(file, version="1")
    assert parse_system(str(system)) == system
    assert system.adapted_to("nfcorpus", "") == system
    Path(file).write_text(text.replace('index = "shop"', 'index = "{dataset}"'))
    assert system.adapted_to("nfcorpus", "").describe()["values"]["index"] == "nfcorpus"


def test_a_killed_run_goes_on_where_it_was(tmp_path, home):
    """kill -9 in the middle: no answer is lost, no request that was answered is repeated."""
    texts = [f"text {n}" for n in range(400)]
    with ss.searching("elasticsearch") as (url, manners):
        killed = threading.Event()

        def ranked(text: str, k: int) -> dict[str, float]:
            if manners.asked.total() > 150:
                killed.wait(MOST_SECONDS)
            return answer(text, k)

        manners.ranked = ranked
        file = described(tmp_path, "elasticsearch", url, "[limits]\nconcurrency = 8\n")
        script = (
            "from tests.unit.remote_place import CORPUS, queries\n"
            "from weir.plugins.servers.endpoint import Http\n"
            f"texts = ['text %d' % n for n in range(400)]\n"
            f"Http({file!r}, version='1').index(CORPUS).search(queries(texts), 5)\n"
        )
        process = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
        killed_when(process, lambda: manners.asked.total() > 150)
        killed.set()
        searcher = Http(file, version="1").index(CORPUS)
        assert searcher.search(queries(texts), 5).to_dict() == expected(texts, 5)
        assert searcher.costs().services[0].facts()["stored"] > 130
        assert len(manners.asked) == 400
        assert sum(count - 1 for count in manners.asked.values()) <= 8  # on their way when it was killed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("url = ", "ulr = "), "no entry named 'ulr'; did you mean url"),
        (('url = "http://localhost"', 'url = "http://example.org"'), "http is allowed for localhost only"),
        (('url = "http://localhost"', ""), "no 'url'"),
        (('index = "shop"', ""), "values.index is empty: it has to be given"),
        (('"elasticsearch"', '"elastic"'), "extends = 'elastic'; expected one of "),
        (("[limits]", '[headers]\nAuthorization = "Bearer abc"\n[limits]'), "holds what may be a secret"),
        (("[limits]", '[headers]\nX-Api-Key = "${HOME}"\n[limits]'), "only variables called WEIR_KEY_NAME"),
        (("[limits]", '[headers]\n"A b" = "c"\n[limits]'), "headers.A b is no header"),
        (("attempts = 3", "attempt = 3"), "did you mean limits.attempts"),
        (("attempts = 3", 'attempts = "3"'), "limits.attempts is '3', not a whole number above 0"),
        (("attempts = 3", "attempts = 1.5"), "not a whole number above 0"),
        (("[limits]", '[answer]\nid = "a[b"\n[limits]'), r"'a\[b' is no path of an answer"),
        (("[limits]", '[body]\nq = "{quary}"\n[limits]'), "no placeholder named 'quary'; did you mean query"),
        (("[limits]", '[body]\nq = "{query|sql}"\n[limits]'), "no escape of a placeholder named 'sql'"),
        (
            ("[limits]", '[body]\nq = "all"\n[limits]'),
            "neither {query} nor {id} stands in path, params or body",
        ),
        (("[limits]", "[page]\nsize = 0\n[limits]"), "page.size is 0"),
        (("url = ", "body = '{\"size\": {k}}'\nurl = "), "body is no JSON .*placeholders stand in quotes"),
        (("url = ", "method = 'DELETE'\nurl = "), "method is 'DELETE', not GET, POST or PUT"),
        (("url = ", "url = 3 #"), "url is 3, not a text"),
        (("[limits]", "[answer]\nequal = {a = 3}\n[limits]"), "answer.equal.a is 3, not a text"),
        (("[limits]", "[fields]\nnames = 3\n[limits]"), "fields.names is 3, not a text"),
        (
            ("[limits]", '[fields]\npath = "/{indx}"\n[limits]'),
            "no placeholder named 'indx'; did you mean index",
        ),
    ],
)
def test_what_a_file_says_wrong_is_one_line(change, said, tmp_path):
    file = Path(described(tmp_path, "elasticsearch", "http://localhost"))
    text = file.read_text()
    assert change[0] in text
    file.write_text(text.replace(*change))
    with pytest.raises(FormatError, match=said) as caught:
        Http(str(file)).describe()
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)


def test_settings_out_of_range_are_one_line():
    for settings, said in (
        ({"file": ""}, "expected such as 'search.toml'"),
        ({"file": "a", "dataset": 3}, "a text"),
    ):
        with pytest.raises(BadValue, match=said):
            Http(**settings)


def test_values_go_into_the_tree_and_never_into_its_syntax():
    values = {"query": 'a"}], {k}', "k": 3, "fields": ["x", "y"], "cursor": ABSENT}
    tree = {
        "q": "{query}",
        "n": ["{k}", "{cursor}"],
        "f": "{fields}",
        "after": "{cursor}",
        "t": "{k} of {query}",
    }
    assert filled_json(tree, values) == {"q": 'a"}], {k}', "n": [3], "f": ["x", "y"], "t": '3 of a"}], {k}'}
    assert filled_json("{query|json}", values) == '"a\\"}], {k}"'
    assert filled_json("{query|lucene}", {"query": "NOT a:b AND (c)"}) == r"\NOT a\:b \AND \(c\)"
    assert filled_path("/{query}/x", {"query": "../a b?&/"}) == "/..%2Fa%20b%3F%26%2F/x"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a.b[0].c", 1),
        ("a.b[-1].c", 2),
        ("['x.y'].z", 3),
        ("a.b[5]", ABSENT),
        ("a.nothing.c", ABSENT),
        ("a.b.c", ABSENT),
    ],
)
def test_a_path_finds_its_place_or_nothing(path, found):
    assert JsonPath.of(path).find({"a": {"b": [{"c": 1}, {"c": 2}]}, "x.y": {"z": 3}}) == found


def test_tables_call_a_server_by_the_name_in_its_file(tmp_path, capsys):
    """And its key, which the file's own name decides with the rest, does not know the name."""
    folder = write_collection(tmp_path / "c")
    with ss.searching("elasticsearch") as (url, manners):
        manners.ranked = lambda text, k: {"d1": 1.0}
        file = described(tmp_path, "elasticsearch", url)
        plain = Http(file, version="1").describe()
        Path(file).write_text('name = "Shop search"\n' + Path(file).read_text())
        assert Http(file, version="1").describe() == plain
        system = f'http("{file}", version="1")'
        results = str(tmp_path / "results")
        assert (
            main(["run", "-q", "-d", str(folder), "-s", system, "-s", "bm25", "-o", results, "-m", "RR"]) == 0
        )
        assert "Shop search" in capsys.readouterr().out
    for command in (["results", results], ["compare", results, "--markdown"]):
        assert main(command) == 0
        out = capsys.readouterr().out
        assert "Shop search" in out
    assert main(["results", results, "--csv"]) == 0
    assert system.replace('"', '""') in capsys.readouterr().out
    (row,) = {r.title for r in weir.results(results) if r.title}
    assert row == 'http("Shop search", version="1")'
    capsys.readouterr()
    assert main(["compare", results, "--baseline", system, "--json"]) == 0
    [command] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [function] = comparisons = weir.compare(results, baseline=row)
    assert function.baseline == command["baseline"] == row
    assert [s.system for s in function.standings] == [s["system"] for s in command["standings"]]
    assert "Shop search" in repr(comparisons)
