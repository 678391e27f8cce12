"""The pages on which people judge: blind, whole after any fault, each address held to what it says."""

from __future__ import annotations

import html
import json
import re
import shutil
import threading
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from starlette.testclient import TestClient

import weir
from tests.unit.judging_place import (
    DOCS,
    QUERIES,
    SYSTEMS,
    TOKENS,
    Visitor,
    pool_of,
    shop,
    subject_with_texts,
    visitors,
)
from weir.cli import main
from weir.core.qrels import Qrels
from weir.errors import RankingWarning
from weir.experiment.audit_subjects import subjects_of
from weir.files.runs import read_qrels
from weir.plugins.app.folder import Folder
from weir.plugins.app.judging import pages
from weir.plugins.app.judging.assignment import Plan, Table
from weir.plugins.app.judging.journal import Event, Standing
from weir.plugins.app.judging.room import Answer
from weir.plugins.app.judging.rooms import Rooms
from weir.plugins.app.judging.supervision import supervision
from weir.plugins.app.judging.tasks import JudgingPair, Tasks
from weir.plugins.app.pages import PARTS, WORDS
from weir.plugins.app.server import Access, application, csrf_of, markdown_html
from weir.plugins.app.try_page import NO_SEARCH
from weir.plugins.labels.pools import read_sheet
from weir.plugins.llm.panel import judge_prompt

OWN = [("queries",), ("q", "q1"), ("decide",), ("compare",), ()]


@pytest.fixture
def place(tmp_path):
    rooms, *people = visitors(tmp_path)
    yield rooms, *people
    rooms.close()


def judged_through(visitor, grade, most=10_000):
    """Answer whatever a judge is asked, and return {(query, document): grade}."""
    given = {}
    for _ in range(most):
        page = visitor.read()
        if page["pair"] is None:
            return given
        pair = page["pair"]["query"], page["pair"]["document"]
        given[pair] = grade(*pair)
        visitor.answer(page, grade=given[pair])
    return given


def test_the_bytes_of_a_judges_pages_tell_neither_system_nor_rank_nor_another_label(tmp_path):
    suggested = Qrels.of({q: dict.fromkeys(DOCS, 2) for q in QUERIES}).labelled("llm:mammothmodel")
    rooms, owner, ann, ben, _ = visitors(tmp_path, suggestions=suggested)
    owner.post("plan", each=2, blind=1)  # nothing is suggested
    owner.post("compare", task="rankings", first=SYSTEMS[0], second=SYSTEMS[1], k=3)
    for _ in range(3):
        ann.answer(ann.read(), grade=3, note="wombatnote of ann")
    hidden = (*SYSTEMS, "mammothmodel", "wombatnote", "llm:", 'rank"', "score", ">ann<")
    for names in OWN:
        for page in (ben.get(*names), ben.client.get(f"{'/'.join(('/judge', ben.room, *names))}.json")):
            assert page.status_code == 200
            assert [word for word in hidden if word in page.text] == []
    page = ben.read()
    assert page["pair"]["suggested"] is None
    assert page["pair"]["grade"] is None
    rooms.close()


def test_documents_of_a_query_stand_in_an_order_that_no_system_gave(place):
    _, _, ann, *_ = place
    numbers = [pair["number"] for pair in ann.read("q", "q1")["pairs"]]
    assert numbers == sorted(numbers)  # the drawn order of the sheet
    shown = [pair["document"] for pair in ann.read("q", "q1")["pairs"]]
    assert shown not in (
        [*dict.fromkeys(x for x in run)] for run in (sorted(shown), sorted(shown, reverse=True))
    )


def test_the_menu_names_a_pool_once(tmp_path):
    """A folder of one pool has its name, and its page has the pool's."""
    rooms, owner, *_ = visitors(tmp_path)
    app = application(Folder(tmp_path / "pool"), pages.PAGES, Access(TOKENS), WORDS, rooms)
    with TestClient(app, base_url="http://localhost:4747", cookies={"weir": owner.token}) as client:
        menu = (
            client.get(f"/judge/{owner.room}/progress")
            .text.partition('aria-label="Places"')[2]
            .partition("</nav>")[0]
        )
    assert re.findall(r"<bdi>(.*?)</bdi>", menu) == ["pool"]
    rooms.close()


def test_judges_see_their_own_pages_alone(place):
    _, owner, ann, *_ = place
    for names in (("progress",), ("back",), ("changed",), ("out", "labels"), ("out", "judgments.trec")):
        assert ann.get(*names).status_code == 403
    for names in (("plan",), ("compare",), ("back",)):
        assert ann.post(*names).status_code == 403
    assert owner.get("progress").status_code == 200
    assert owner.get().status_code == 400  # no judge's name came with the address
    assert ann.get("q", "nowhere").status_code == 404
    assert ann.post("answer", number="99999", grade=1).status_code == 404
    assert ann.post("answer", number="-1", grade=1).status_code == 404


@pytest.mark.parametrize("changed", ["line gone", "texts exchanged"])
def test_an_answer_to_a_page_of_an_earlier_pool_is_refused(tmp_path, changed):
    """The pool was opened again, with another sheet, while a page stood open: its number is another pair's now."""
    rooms, _, ann, *_ = visitors(tmp_path)
    page = ann.read()
    rooms.close()
    sheet = tmp_path / "pool" / "to_judge.tsv"
    head, first, *lines = sheet.read_text().splitlines()
    if changed == "texts exchanged":
        lines = ["\t".join([*first.split("\t")[:-1], "another text"]), *lines]
    sheet.write_text("\n".join([head, *lines]) + "\n")
    rooms = Rooms.of_pools(tmp_path / "pool", judges=("ann", "ben", "cyd"))
    ann = Visitor(rooms, ann.token)
    given = {"number": page["pair"]["number"], "key": page["pair"]["key"], "grade": 2}
    refused = ann.post("answer", shown=page["pair"]["shown"], **given)
    assert refused.status_code == 400
    assert "load it again" in refused.text
    again = ann.read()["pair"]
    assert ann.post("answer", shown=again["shown"], **given).status_code == 303
    rooms.close()


def test_a_pair_that_is_looked_at_stays_until_it_is_answered(place):
    _, _, ann, ben, _ = place
    first = ann.read()["pair"]
    assert ann.read()["pair"]["number"] == first["number"]
    assert ben.read()["pair"]["number"] != first["number"]


def test_an_answer_later_cannot_tell_note_and_undo(place):
    rooms, owner, ann, *_ = place
    first = ann.read()
    assert ann.answer(first, grade=2).headers["location"] == f"/judge/{ann.room}"
    second = ann.read()
    ann.answer(second, kind="later")
    third = ann.read()
    refused = ann.post("answer", number=third["pair"]["number"], kind="unable", reason=" ")
    assert refused.status_code == 400
    assert "why you cannot tell" in refused.text
    ann.answer(third, kind="noted", note="an odd one")
    again = ann.read()["pair"]
    assert (again["number"], again["note"]) == (third["pair"]["number"], "an odd one")
    ann.answer(third, kind="unable", reason="in Dutch", note="an odd one")
    assert [row["unable"] for row in owner.read("progress")["stands"]["judges"]] == [1]
    assert ann.read()["progress"] | {"seconds": None} == {
        "done": 2, "left": len(next(iter(rooms)).tasks.pairs) - 2, "later": 1, "seconds": None
    }  # fmt: skip
    assert ann.post("undo").status_code == 303
    assert ann.read()["pair"]["number"] == third["pair"]["number"]
    for kind in ("grade of nobody", "withdrawn", "undone", "preferred"):
        assert ann.post("answer", number=0, kind=kind, grade=1).status_code == 400
    for grade in ("4", "-1", "nan", "", "2.5", "x"):
        assert ann.post("answer", number=0, grade=grade).status_code == 400


def test_what_is_sent_again_counts_once(place):
    rooms, _, ann, *_ = place
    page = ann.read()
    for _ in range(3):
        ann.answer(page, grade=2, note="said once")
    ann.post("undo", key="k")
    ann.post("undo", key="k")
    assert [event.kind for event in next(iter(rooms)).journal.events()] == ["noted", "graded", "undone"]


def test_a_full_disk_says_so_and_the_next_answer_is_stored(place):
    rooms, _, ann, *_ = place
    connection = next(iter(rooms)).journal._connection
    [(pages_now,)] = connection.execute("PRAGMA page_count").fetchall()
    connection.execute(f"PRAGMA max_page_count = {pages_now}")
    page = ann.read()
    refused = ann.post(
        "answer", number=page["pair"]["number"], key=page["pair"]["key"], grade=1, note="x" * 9000
    )
    assert refused.status_code == 507
    assert "no space left on the disk; nothing of this was stored" in refused.text
    assert ann.read()["pair"]["number"] == page["pair"]["number"]
    connection.execute("PRAGMA max_page_count = 1000000")
    ann.answer(page, grade=1, note="x" * 9000)
    assert [event.kind for event in next(iter(rooms)).journal.events()] == ["noted", "graded"]


def test_judges_at_once_never_overwrite_and_each_pair_gets_its_judges(place):
    rooms, owner, *people = place
    owner.post("plan", each=2)
    given = {}

    def work(visitor, name):
        given[name] = judged_through(visitor, lambda query, doc: hash((name, query, doc)) % 4)

    threads = [
        threading.Thread(target=work, args=one) for one in zip(people, ("ann", "ben", "cyd"), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    room = next(iter(rooms))
    with room.table() as table:
        assert {
            name: {
                pair: event.grade
                for pair, of in table.standing.judged.items()
                for j, event in of.items()
                if j == name
            }
            for name in given
        } == given
        assert all(len(table.standing.judged[pair.pair]) == 2 for pair in room.tasks.pairs)
        assert len(table.standing.numbered) == 2 * len(room.tasks.pairs)


def test_disagreements_go_to_a_third_and_what_they_change_is_what_relabel_says(place, tmp_path):
    rooms, owner, ann, ben, cyd = place
    owner.post("plan", each=2)
    other = {"ann": lambda q, d: int(d[1:]) % 4, "ben": lambda q, d: (int(d[1:]) + (q == "q3")) % 4}
    for _ in range(2):  # each leaves what the other has in front
        for visitor, name in ((ann, "ann"), (ben, "ben")):
            judged_through(visitor, other[name])
    room = next(iter(rooms))
    progress = owner.read("progress")["stands"]
    assert progress["judged"] == len(room.tasks.pairs)
    contested = sum(pair.query == "q3" for pair in room.tasks.pairs)
    assert progress["contested"] == contested > 0
    assert ann.read("decide")["pair"] is None
    assert progress["kappas"][0]["kappa"] == pytest.approx(
        dict((n, v) for n, v, *_ in weir.labels.agree(room.journal.path)[0].values)["kappa"]
    )
    for _ in range(contested):
        page = cyd.read("decide")
        assert page["deciding"] == [[one, ""] for one in sorted(grade for grade, _ in page["deciding"])]
        assert not re.search(r"\b(ann|ben)\b", cyd.get("decide").text)
        cyd.answer(page, grade=3)
    assert cyd.read("decide")["pair"] is None
    assert owner.read("progress")["stands"]["contested"] == 0
    settled = read_qrels(room.journal.path)
    assert set(settled["q3"].values()) == {3}
    assert settled["q1"] == {d: int(d[1:]) % 4 for d in settled["q1"]}
    targets = [tmp_path / "qrels.tsv", *(tmp_path / f"{name}.trec" for name in SYSTEMS)]
    said = weir.labels.relabel(room.journal.path, *map(str, targets), collection=str(tmp_path / "shop"))
    shown = owner.read("changed")["changes"]["rows"]
    assert [(row["system"], row["before"], row["after"], row["hole_after"]) for row in shown] == [
        (row.system, row.before, row.after, row.hole_after) for row in said
    ]
    assert owner.get("changed").status_code == 200
    assert owner.read("changed")["changes"]["verdicts"]["pairs"] == 1


def test_labels_are_taken_back_by_query_judge_date_and_changed_documents(place, tmp_path):
    rooms, owner, ann, ben, _ = place
    first = ann.read()["pair"]["number"]
    for visitor in (ann, ben):
        for _ in range(4):
            visitor.answer(visitor.read(), grade=1)
    assert owner.read("back", judge="ann")["labels"] == 4
    assert owner.read("back", judge="ann", since="2100-01-01")["labels"] == 0
    assert owner.read("back", until="2100-01-01")["labels"] == 8
    assert owner.get("back", since="tomorrow").status_code == 400
    assert owner.post("back", labels=8).status_code == 400  # no filter
    assert owner.post("back", judge="ann", labels=3).status_code == 400  # others than were shown
    assert owner.read("back", judge="ann")["labels"] == 4
    assert owner.post("back", judge="ann", labels=4, reason="asleep").status_code == 200
    assert owner.read("back", judge="ann")["labels"] == 0
    room = next(iter(rooms))
    assert len(read_qrels(room.journal.path).doc) == 4
    assert ann.read()["progress"]["done"] == 0
    ann.post("answer", number=first, key="anew", grade=2)  # given anew, and stays
    [taken] = owner.read("back")["before"]
    assert (taken["labels"], taken["reason"]) == (4, "asleep")
    assert owner.post("put-back", number=taken["number"] + 1).status_code == 404
    assert "4 labels put back" in owner.post("put-back", number=taken["number"]).text
    assert owner.read("back")["before"] == []
    with room.journal.reading() as standing:
        assert sorted(one.grade for one in standing.current() if one.judge == "ann") == [1, 1, 1, 2]
    rooms.close()
    changed = {**DOCS, "p3": "These boots are sold out.", "p4": "These boots are blue."}
    stale = Rooms.of_pools(tmp_path / "pool", subject_with_texts(changed))
    visitor = Visitor(stale, "o" * 32)
    found = visitor.read("back", changed="1")
    with next(iter(stale)).journal.reading() as standing:
        expected = [event for event in standing.current() if event.document in ("p3", "p4")]
    assert found["labels"] == len(expected)
    stale.close()


def test_comparisons_stand_on_both_sides_and_count_for_the_one_that_was_meant(place):
    rooms, owner, ann, ben, _ = place
    assert owner.post("compare", task="rankings", first="nobody", second=SYSTEMS[1]).status_code == 404
    assert owner.post("compare", task="rankings", first=SYSTEMS[0], second=SYSTEMS[0]).status_code == 400
    for wrong in ({"apart": "nan"}, {"apart": 0}, {"each": 0}, {"overlap": "nan"}, {"grades": "0"}):
        assert owner.post("plan", **wrong).status_code == 400
    owner.post("plan", each=2)
    owner.post("compare", task="rankings", first=SYSTEMS[1], second=SYSTEMS[0], k=3)
    room = next(iter(rooms))
    sides = []
    for visitor in (ann, ben):
        while (page := visitor.read("compare"))["number"] >= 0:
            one = room.comparisons()[page["number"]]
            [side] = [
                side for side in ("left", "right")
                if tuple(doc["document"] for doc in page[side]) == one.documents[one.second == SYSTEMS[1]]
            ]  # fmt: skip
            assert all(doc["text"] for doc in page["left"])
            sides.append(side)
            visitor.post("prefer", number=page["number"], key=page["key"], grade=1 if side == "left" else -1)
    assert 0 < sides.count("left") < len(sides)
    [rate] = owner.read("progress")["preferences"]["rates"]
    winner = rate["first"] if rate["wins"] else rate["second"]
    assert (winner, rate["wins"] + rate["losses"]) == (SYSTEMS[1], len(sides))
    ann.post("undo")
    assert ann.read("compare")["number"] >= 0
    for wrong in ("0", "-1", "2.5", "many", ""):
        assert owner.post("compare", task="documents", each=wrong).status_code == 400
    assert owner.post("compare", task="documents", each=2).status_code == 303
    page = ann.read("compare")
    assert ann.post("prefer", number=page["number"], grade=2).status_code == 400
    assert ann.post("prefer", number=page["number"], kind="unable").status_code == 400
    assert ann.post("prefer", number=page["number"], kind="later").status_code == 303


def test_documents_without_a_text_are_named_on_every_page(tmp_path):
    rooms = Rooms.of_pools(pool_of(tmp_path, texts=False))
    owner, ann = Visitor(rooms, "o" * 32), Visitor(rooms, "a" * 32)
    owner.post("compare", task="documents", each=1)
    shown = ann.read("compare")
    names = {shown[side][0]["document"] for side in ("left", "right")}
    for page, expected in ((ann.get("compare"), names), (ann.get(), {ann.read()["pair"]["document"]})):
        assert set(re.findall(r"No text is known of <bdi>(\w+)</bdi>", page.text)) == expected
    rooms.close()


def test_suggestions_are_kept_apart_and_stamping_them_is_told(tmp_path):
    model = Qrels.of({q: {d: int(d[1:]) % 4 for d in DOCS} for q in QUERIES})
    rooms, owner, ann, *_ = visitors(tmp_path, suggestions=model)
    owner.post("plan", blind=0.4)
    shown = 0
    while (page := ann.read())["pair"]:
        if page["pair"]["suggested"] is not None:
            shown += 1
            assert f"{page['pair']['suggested']:g} as suggested" in ann.get().text
            ann.answer(page, kind="accepted")
        else:
            assert ann.post("answer", number=page["pair"]["number"], kind="accepted").status_code == 400
            ann.answer(page, grade=(int(page["pair"]["document"][1:]) + 1) % 4)
    [row] = owner.read("progress")["stands"]["judges"]
    assert (row["suggested"]["shown"], row["suggested"]["accepted"], row["suggested"]["alike"]) == (
        shown,
        1,
        0,
    )
    assert any("stamped" in remark for remark in row["remarks"])
    found = read_qrels(next(iter(rooms)).journal.path)
    assert found.origin.counts()["human (suggested)"] == shown
    rooms.close()


HOSTILE = '</textarea><script>alert(1)</script>{query} "quoted" \x00\x7f ä🙂 \\u0041'


def test_files_hold_what_was_judged_with_who_when_and_why(place, tmp_path):
    rooms, owner, ann, *_ = place
    for number in range(6):
        ann.answer(ann.read(), grade=number % 4, note=HOSTILE if number == 3 else "")
    ann.answer(ann.read(), kind="unable", reason="=cmd()")
    room = next(iter(rooms))
    expected = read_qrels(room.journal.path).to_dict()
    for name in ("judgments.trec", "judgments.tsv", "judgments.csv", "judgments.jsonl", "judgments.parquet"):
        found = owner.get("out", name)
        assert name in found.headers["content-disposition"]
        (tmp_path / name).write_bytes(found.content)
        assert read_qrels(tmp_path / name).to_dict() == expected
    (tmp_path / "to_judge.tsv").write_bytes(owner.get("out", "to_judge.tsv").content)
    assert read_sheet(tmp_path / "to_judge.tsv")[0].to_dict() == expected
    labels = json.loads(owner.get("out", "labels").content)
    assert [one["judge"] for one in labels] == ["ann"] * 7
    assert labels[3]["note"] == HOSTILE.strip()
    assert labels[6]["reason"] == "=cmd()"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", labels[0]["time"])
    (tmp_path / "mine.toml").write_bytes(owner.get("out", "examples.toml").content)
    prompt = judge_prompt(str(tmp_path / "mine.toml"))
    assert "Grade of a person: 3, since" in prompt.template.user
    assert prompt.template.user.count("{query}") == 1
    assert owner.get("out", "nothing").status_code == 404
    page = owner.get("progress").text
    assert "<script>alert" not in page
    ann.post("undo")
    assert "<script>alert" not in ann.get("q", labels[3]["query"]).text
    assert weir.labels.people(room.journal.path)[0].labels == 6
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankingWarning)
        weir.labels.relabel(
            room.journal.path, *map(str, (tmp_path / "qrels.tsv", tmp_path / f"{SYSTEMS[0]}.trec"))
        )


def test_speed_straight_lines_and_drift_are_told():
    pairs = [JudgingPair(n, f"q{n // 4}", f"d{n}", "", "word " * 80, "") for n in range(160)]
    tasks, standing = Tasks("shop", {p.query: "" for p in pairs}, tuple(pairs)), Standing()
    grades = {
        "calm": lambda n: n * 7 % 4,
        "line": lambda n: 0,
        "mild": lambda n: min(3, n * 7 % 4 + (n > 80 and n % 3 > 0)),
    }
    number = 0
    for name, grade in grades.items():
        for n, pair in enumerate(pairs):
            number += 1
            seconds = 0.5 if name == "line" else 8.0
            standing.apply(
                Event(
                    name,
                    "graded",
                    *pair.pair,
                    grade=float(grade(n)),
                    seconds=seconds,
                    time=float(n),
                    number=number,
                )
            )
    found = supervision(Table(tasks, Plan(each=3), standing, {}, 1e4))
    told = {row.name: " ".join(row.remarks) for row in found.judges}
    assert told["calm"].count("quicker") == told["calm"].count("in a row") == 0
    assert "quicker" in told["line"]
    assert "160 grades in a row are 0" in told["line"]
    assert "became milder" in told["mild"]
    assert found.judged == 160
    assert found.alpha is not None


def test_a_page_makes_a_pool_of_what_it_shows(tmp_path):
    weir.benchmark(["brook-news"], [weir.BM25(), weir.BM25(b=0)], out=tmp_path / "results")
    rooms = Rooms.beside(tmp_path / "results", judges=("ann",))
    assert list(rooms) == []
    owner = TestClient(
        application(
            Folder(tmp_path / "results"), [*PARTS, *pages.PAGES], Access({"o" * 32: "ann"}), WORDS, rooms
        ),
        base_url="http://localhost:4747",
        follow_redirects=False,
        cookies={"weir": "o" * 32},
    )
    fields = {"csrf": csrf_of("o" * 32), "collection": "brook-news", "systems": "bm25", "k": "5"}
    assert owner.post("/judge", data={**fields, "queries": "nowhere"}).status_code == 404
    assert owner.post("/judge", data={**fields, "queries": ""}).status_code == 400
    assert owner.post("/judge", data={**fields, "queries": "nq-101\nnq-103"}).status_code == 303
    [room] = rooms
    [subject] = subjects_of([tmp_path / "results"])
    unjudged = {
        (query, doc)
        for query, ranked in subject.runs["bm25"].top(5).to_dict().items()
        for doc in ranked
        if query in ("nq-101", "nq-103") and doc not in (subject.need_qrels().get(query) or {})
    }
    assert {pair.pair for pair in room.tasks.pairs} == unjudged
    assert all(pair.text for pair in room.tasks.pairs)
    page = owner.get(f"/judge/{room.name}.json").json()
    owner.post(
        f"/judge/{room.name}/answer",
        data={"csrf": csrf_of("o" * 32), "number": "0", "key": page["pair"]["key"], "grade": "2"},
    )
    assert owner.get(f"/judge/{room.name}/changed.json").json()["changes"]["judged"] == 1
    shown = owner.get("/c/brook-news?systems=bm25&find=nq-10").text
    listed = html.unescape(re.search(r'name="list" value="([^"]*)"', shown)[1])
    made = owner.post(
        "/judge", data={"csrf": csrf_of("o" * 32), "collection": "brook-news", "k": "3", "list": listed}
    )
    other = rooms.room(made.headers["location"].split("/")[-1])
    assert set(other.tasks.of_query) <= {f"nq-10{n}" for n in range(1, 10)}
    assert len(list(rooms)) == 2
    rooms.close()
    again = Rooms.beside(tmp_path / "results")
    assert [one.name for one in again] == [room.name, other.name]
    again.close()
    assert not list((tmp_path / "results").rglob("*.sqlite*"))  # nothing is written into the results


@pytest.fixture(scope="module")
def news(tmp_path_factory):
    folder = tmp_path_factory.mktemp("news") / "results"
    weir.benchmark(["brook-news"], [weir.BM25(), weir.BM25(b=0)], out=folder)
    return folder


def visited(results, judges=("ann",), **access):
    """A results folder's pools, and the owner's client."""
    rooms = Rooms.beside(results, judges=judges)
    app = application(
        Folder(results), [*PARTS, *pages.PAGES], Access({"o" * 32: "ann"}, **access), WORDS, rooms
    )
    return rooms, TestClient(
        app, base_url="http://localhost:4747", follow_redirects=False, cookies={"weir": "o" * 32}
    )


class Forms(HTMLParser):
    """The forms of a page that are posted: (address, fields)."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "form" and given.get("method") == "post":
            self.found.append((given["action"], {}))
        elif tag == "input" and self.found and "value" in given:
            self.found[-1][1][given["name"]] = given["value"]


def sent(client, page):
    """Post the first form of a page that adds a query, as a browser does, and return where it leads."""
    fields = next(fields for action, fields in Forms(page).found if action == "/judge/query")
    lines = {name: value.replace("\n", "\r\n") for name, value in fields.items()}
    answer = client.post("/judge/query", data=lines)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def test_a_typed_query_becomes_a_golden_set_that_is_a_collection(news):
    rooms, owner = visited(news)
    asked = {"collection": "brook-news", "query": "why  do rivers flood", "systems": "bm25,bm25(b=0.0)"}
    page = owner.get("/try", params=asked)
    assert list(rooms) == []  # nothing is stored unless asked
    assert "results-judging/golden-brook-news.toml" in page.text
    place = sent(owner, page.text)
    assert sent(owner, page.text) == place == "/judge/golden-brook-news/q/g1"
    asked["query"] = "=SUM(1) election"
    assert sent(owner, owner.get("/try", params=asked).text).endswith("/q/g2")
    typed = {"csrf": csrf_of("o" * 32), "collection": "brook-news", "text": "storm", "documents": "nowhere"}
    assert owner.post("/judge/query", data=typed).status_code == 404
    pairs = owner.get(f"{place}.json").json()["pairs"]
    columns = owner.get("/try.json", params={**asked, "query": "why do rivers flood"}).json()["columns"]
    shown = {one["document"] for column in columns for one in column["answers"]}
    assert {one["document"] for one in pairs} == shown
    for grade, one in enumerate(pairs[:3]):
        fields = {"csrf": csrf_of("o" * 32), "number": one["number"], "key": one["key"], "grade": grade % 2}
        assert owner.post("/judge/golden-brook-news/answer", data=fields).status_code == 303
    again = owner.get("/try.json", params={**asked, "query": "why do rivers flood"}).json()["columns"]
    marked = {
        one["document"]: one["judgment"] for column in again for one in column["answers"] if one["judgment"]
    }
    assert {name: (one["grade"], one["pool"]) for name, one in marked.items()} == {
        one["document"]: (n % 2, "golden-brook-news") for n, one in enumerate(pairs[:3])
    }
    golden = weir.load(str(news.with_name("results-judging") / "golden-brook-news.toml"))
    assert golden.all_queries.to_dict() == {"g1": "why do rivers flood", "g2": "=SUM(1) election"}
    assert golden.qrels.to_dict() == {"g1": {one["document"]: n % 2 for n, one in enumerate(pairs[:3])}}
    assert len(golden.corpus) == len(weir.load("brook-news").corpus)
    assert weir.benchmark([golden], ["bm25"], ["nDCG@10"]).rows
    rooms.close()
    queries = news.with_name("results-judging") / "golden-brook-news" / "queries.jsonl"
    whole = queries.read_text()
    queries.write_text(whole.splitlines()[0] + "\n")  # as after a kill between the sheet and this file
    visited(news)[0].close()
    assert queries.read_text() == whole
    read_only = visited(news, read_only=True)
    assert "golden" not in read_only[1].get("/try", params=asked).text
    read_only[0].close()


def test_documents_of_a_query_are_judged_from_its_page_and_keep_their_numbers(news):
    rooms, owner = visited(news)
    places = [f"/c/brook-news/q/{name}?systems=bm25" for name in ("nq-101", "nq-103", "nq-101")]
    where = [sent(owner, owner.get(one).text) for one in places[:2]]
    numbers = {
        (one["query"], one["document"]): one["number"]
        for place in where
        for one in owner.get(f"{place}.json").json()["pairs"]
    }
    unjudged = {
        one["document"]
        for one in owner.get("/c/brook-news/q/nq-101.json?systems=bm25").json()["columns"][0]["answers"]
        if one["judgment"] is None
    }
    assert {doc for query, doc in numbers if query == "nq-101"} == unjudged
    deeper = sent(owner, owner.get(f"{places[2]}&depth=20").text)
    again = {
        (one["query"], one["document"]): one["number"] for one in owner.get(f"{deeper}.json").json()["pairs"]
    }
    assert len(again) > len(unjudged)
    assert {pair: n for pair, n in again.items() if pair in numbers} == {
        pair: n for pair, n in numbers.items() if pair[0] == "nq-101"
    }
    assert sorted([*again.values(), *(n for (query, _), n in numbers.items() if query == "nq-103")]) == list(
        range(len(again) + len(numbers) - len(unjudged))
    )
    rooms.close()


def graded(owner, place, grades):
    """Grade the first documents of a list of a query."""
    pairs = owner.get(f"{place}.json").json()["pairs"]
    for one, grade in zip(pairs, grades, strict=False):
        fields = {"csrf": csrf_of("o" * 32), "number": one["number"], "grade": grade}
        assert owner.post(f"{place.partition('/q/')[0]}/answer", data=fields).status_code == 303
    return {one["document"]: grade for one, grade in zip(pairs, grades, strict=False)}


@pytest.mark.parametrize("query", ["nq-101", "nq-103", "nq-107"])
def test_a_query_page_goes_by_one_state_of_judgments(news, tmp_path, query):
    results = shutil.copytree(news, tmp_path / "results")
    rooms, owner = visited(results)
    place = f"/c/brook-news/q/{query}"
    before = owner.get(f"{place}.json").json()
    given = graded(owner, sent(owner, owner.get(place).text), [1, 0, 1, 1])
    known = weir.load("brook-news").qrels.to_dict()[query]
    for asked, counts in (("", known), ("?judgments=new", known | given)):
        page = owner.get(f"{place}.json{asked}").json()
        assert (page["with_new"], page["new"]) == (bool(asked), [["brook-news-queries", len(given)]])
        assert dict(page["judged"]) == {g: [*counts.values()].count(g) for g in counts.values()}
        assert {one["document"] for one in page["missed"]} == {
            name for name, grade in counts.items() if grade > 0
        } - {one["document"] for column in page["columns"] for one in column["answers"]}
        for column in page["columns"]:
            shown = {
                one["document"]: one["judgment"] and one["judgment"]["grade"] for one in column["answers"]
            }
            assert shown == {name: counts.get(name) for name in shown}
            ranking = rankings_of(results, column["system"]["name"])[query]
            [value] = weir.evaluate({query: counts}, {query: ranking}, [page["measure"]]).of(page["measure"])
            assert column["value"] == pytest.approx(value, abs=1e-12)
            aside = {one["document"] for one in column["answers"] if one["aside"]}
            assert aside == (set() if asked else shown.keys() & given.keys())
        assert all(counts[one["document"]] == one["grade"] for one in page["shifts"])
    assert [one["value"] for one in before["columns"]] == [
        one["value"] for one in owner.get(f"{place}.json").json()["columns"]
    ]
    assert 'href="/judge/brook-news-queries/changed"' in owner.get(place).text
    listed = owner.get("/c/brook-news")
    assert f"{len(given)} new judgments do not count here" in listed.text
    rooms.close()


def rankings_of(results, system):
    [subject] = subjects_of([results])
    return subject.runs[system].to_dict()


SPELLINGS = ["Why do  rivers flood", "WHY DO RIVERS FLOOD ", "why\tdo rivers Flood"]


def test_a_golden_set_has_a_query_once_however_it_is_spelled_and_loses_it_on_demand(news, tmp_path):
    results = shutil.copytree(news, tmp_path / "results")
    rooms, owner = visited(results)
    asked = {"collection": "brook-news", "query": "why do rivers flood", "systems": "bm25"}
    place = sent(owner, owner.get("/try", params=asked).text)
    given = graded(owner, place, [1, 0, 1])
    for spelled in SPELLINGS:
        page = owner.get("/try", params=asked | {"query": spelled})
        assert sent(owner, page.text) == place
        [column] = owner.get("/try.json", params=asked | {"query": spelled}).json()["columns"]
        assert {
            one["document"]: one["judgment"]["grade"] for one in column["answers"] if one["judgment"]
        } == {name: given[name] for name in given if name in {one["document"] for one in column["answers"]}}
    sent(owner, owner.get("/try", params=asked | {"query": "storm"}).text)
    golden = tmp_path / "results-judging" / "golden-brook-news.toml"
    numbers = [one["number"] for one in owner.get(f"{place}.json").json()["pairs"]]
    remove = {"csrf": csrf_of("o" * 32), "query": "g1"}
    assert 'action="/judge/golden-brook-news/remove"' in owner.get("/judge/golden-brook-news/queries").text
    assert owner.post("/judge/golden-brook-news/remove", data=remove).status_code == 303
    assert owner.post("/judge/golden-brook-news/remove", data=remove).status_code == 404
    assert weir.load(str(golden)).all_queries.to_dict() == {"g2": "storm"}
    assert owner.get(place).status_code == 404
    late = {"csrf": csrf_of("o" * 32), "number": numbers[0], "grade": 1}  # of a page that was open
    assert owner.post("/judge/golden-brook-news/answer", data=late).status_code == 404
    rooms.close()
    rooms, owner = visited(results)
    assert [one["name"] for one in owner.get("/judge/golden-brook-news/queries.json").json()["queries"]] == [
        "g2"
    ]
    assert sent(owner, owner.get("/try", params=asked).text) == place
    pairs = owner.get(f"{place}.json").json()["pairs"]
    assert [one["number"] for one in pairs] == numbers
    assert {one["grade"] for one in pairs} == {None}
    assert weir.load(str(golden)).all_queries.to_dict() == {"g1": "why do rivers flood", "g2": "storm"}
    owner.post("/judge/golden-brook-news/remove", data=remove)
    back = owner.get("/judge/golden-brook-news/back.json").json()["before"]
    assert [one["labels"] for one in back] == [3]
    number = {"csrf": csrf_of("o" * 32), "number": back[0]["number"]}
    assert owner.post("/judge/golden-brook-news/put-back", data=number).status_code == 200
    assert weir.load(str(golden)).qrels.to_dict() == {"g1": given}
    rooms.close()


def test_a_typed_query_of_the_collection_shows_its_grades(news):
    rooms, owner = visited(news)
    dataset = weir.load("brook-news")
    for name in ("nq-101", "nq-103"):
        text = dataset.all_queries.get(name)
        asked = {"collection": "brook-news", "query": f" {text.upper()}", "systems": "bm25"}
        page = owner.get("/try.json", params=asked).json()
        known = dataset.qrels.to_dict()[name]
        assert page["known"] == name
        shown = {one["document"]: one["judgment"] for one in page["columns"][0]["answers"]}
        assert {name: one["grade"] for name, one in shown.items() if one} == {
            name: known[name] for name in shown if name in known
        }
        assert f'/c/brook-news/q/{name}?systems=bm25"' in owner.get("/try", params=asked).text
    rooms.close()


def saved(owner, folder, *files):
    """Save the files of a pool that its page of changes links, as a browser does."""
    folder.mkdir()
    page = owner.get(f"/judge/{files[0]}/changed").text
    for name in files[1:]:
        assert f'href="/judge/{files[0]}/out/{name}" download' in page
        answer = owner.get(f"/judge/{files[0]}/out/{name}")
        assert answer.status_code == 200, answer.text
        (folder / name).write_bytes(answer.content)
    return folder


def test_a_golden_set_is_scored_in_the_page_as_by_the_command_that_runs_its_files(news, tmp_path):
    results = shutil.copytree(news, tmp_path / "results")
    rooms, owner = visited(results)
    known = weir.load("brook-news").all_queries.get("nq-101")
    for text in ("why do rivers flood", known, "storm in the city"):
        asked = {"collection": "brook-news", "query": text, "systems": "bm25,bm25(b=0.0)"}
        graded(owner, sent(owner, owner.get("/try", params=asked).text), [0, 1, 1, 0, 1])
    page = owner.get("/judge/golden-brook-news/changed.json").json()
    folder = saved(
        owner,
        tmp_path / "saved",
        "golden-brook-news",
        "queries.jsonl",
        "golden-brook-news.toml",
        "judgments.tsv",
    )
    collection = weir.load(str(folder / "golden-brook-news.toml"))
    assert (
        collection.qrels.to_dict()
        == weir.load(str(tmp_path / "results-judging" / "golden-brook-news.toml")).qrels.to_dict()
    )
    scored = weir.benchmark(
        [collection], ["bm25", "bm25(b=0.0)"], ["nDCG@10"], out=tmp_path / "golden-results"
    )
    means = {row.system: row.mean for row in scored.rows}
    assert {row["system"]: pytest.approx(row["after"], abs=1e-9) for row in page["changes"]["rows"]} == means
    assert (page["changes"]["first"], page["lacking"]) == (True, [])
    assert [row["text"] for row in page["queries"]] == ["why do rivers flood", known, "storm in the city"]
    for at, name in enumerate(one["name"] for one in page["systems"]):
        assert sum(row["after"][at] for row in page["queries"]) / 3 == pytest.approx(means[name])
    rooms.close()
    alone = Rooms.of_pools(tmp_path / "results-judging" / "golden-brook-news")
    visitor = Visitor(alone, "o" * 32)
    assert visitor.read("changed")["changes"] is None
    assert "Open the results folder beside this pool" in visitor.get("changed").text
    alone.close()


def test_changes_name_their_queries_and_the_merged_judgments_are_a_file(place, tmp_path):
    rooms, owner, ann, *_ = place
    judged_through(ann, lambda q, d: (int(d[1:]) + int(q[1:])) % 4, most=14)
    [room] = rooms
    targets = [tmp_path / "qrels.tsv", *(tmp_path / f"{name}.trec" for name in SYSTEMS)]
    weir.labels.relabel(
        room.journal.path, *map(str, targets), collection=str(tmp_path / "shop"), out=tmp_path / "judged.tsv"
    )
    folder = saved(owner.client, tmp_path / "saved", room.name, "merged.tsv", "judgments.tsv")
    assert (read_qrels(folder / "merged.tsv").to_dict()) == read_qrels(tmp_path / "judged.tsv").to_dict()
    page = owner.read("changed")
    for at, row in enumerate(page["changes"]["rows"]):
        moved = sum(one["after"][at] - one["before"][at] for one in page["queries"])
        assert moved / page["changes"]["queries"] == pytest.approx(row["after"] - row["before"])
    changes = [one.change for one in room.changes().of_query]
    assert changes == sorted(changes, reverse=True)
    assert 0 < len(changes) == len(page["queries"]) <= len({event.query for event in room.journal.events()})
    text = owner.get("changed").text
    assert "Verdicts on 1 pair of systems (permutation test, Holm): " in text
    assert "t-test" not in text


@pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")
def test_judges_see_the_metadata_of_documents_and_the_owner_what_an_import_left_out(tmp_path):
    documents = {
        f"d{n}": {
            "text": f"red boots {'warm ' * n}",
            "price": 49.9 + n,
            "brand": "Acme",
            "stock": {"shop": n},
            "tags": ["a", "b"],
        }
        for n in range(1, 5)
    }
    whole = weir.Dataset.of(documents, {"q1": "warm boots", "q2": "red boots"}, {"q1": {"d1": 1}}, "mine")
    shutil.copytree(whole.layout.root, tmp_path / "mine")
    report = {"files": [{"file": "sheet.csv", "left_out": {"rater": 7}}]}
    (tmp_path / "mine" / "import.json").write_text(json.dumps(report))
    weir.benchmark([str(tmp_path / "mine")], ["bm25", "bm25(b=0)"], ["nDCG@10"], out=tmp_path / "results")
    rooms, owner = visited(tmp_path / "results")
    assert "not imported: rater (7)" in owner.get("/c/mine").text
    place = sent(owner, owner.get("/c/mine/q/q1?systems=bm25").text)
    rooms.close()
    rooms, owner = visited(tmp_path / "results")  # of a pool made before, whose sheet has texts alone
    [room] = rooms
    owner.post(
        f"/judge/{room.name}/compare", data={"csrf": csrf_of("o" * 32), "task": "documents", "each": "1"}
    )
    compared = owner.get(f"/judge/{room.name}/compare.json").json()
    shown = [
        *owner.get(f"{place}.json").json()["pairs"],
        owner.get(f"/judge/{room.name}.json").json()["pair"],
    ]
    shown += [*compared["left"], *compared["right"]]
    for one in shown:
        given = documents[one["document"]]
        price, stock = f"{given['price']:g}", str(given["stock"]["shop"])
        assert one["fields"] == [["brand", "Acme"], ["price", price], ["stock.shop", stock], ["tags", "a, b"]]
    for page in (place, f"/judge/{room.name}", f"/judge/{room.name}/compare", "/c/mine/q/q1/d/d1"):
        assert "<b><bdi>Acme</bdi></b>" in owner.get(page).text
    rooms.close()


def test_no_page_of_judging_is_a_dead_end(news, tmp_path):
    results = shutil.copytree(news, tmp_path / "results")
    rooms, owner = visited(results)
    asked = {"collection": "brook-news", "query": "storm", "systems": "bm25"}
    graded(owner, sent(owner, owner.get("/try", params=asked).text), [1] * 99)
    for end in ("", "/decide", "/compare"):
        text = owner.get(f"/judge/golden-brook-news{end}").text
        assert "Nothing" in text
        assert re.findall('href="([^"]*)" data-key="t"', text) == ["/try?collection=brook-news"]
        for onward in ("changed", "progress", "queries"):
            assert f'href="/judge/golden-brook-news/{onward}"' in text
        assert 'href="/c/brook-news"' in text
    tallies = re.search(
        'class="weir-tallies">(.*?)</div>', owner.get("/judge/golden-brook-news/progress").text
    )[1]
    assert re.sub("<[^>]*>", "", tallies).startswith("0 begun 0 contested 0 decided")
    rooms.close()


def test_the_first_page_tells_what_is_unjudged_and_contested(news, tmp_path):
    rooms, owner = visited(news)
    place = sent(owner, owner.get("/c/brook-news/q/nq-105?systems=bm25").text)
    room = rooms.room("brook-news-queries")
    room.set_plan(replace(room.plan(), each=2))
    before = owner.get("/c/brook-news/q/nq-105.json?systems=bm25").json()
    first, *_ = owner.get(f"{place}.json").json()["pairs"]
    for judge, grade in (("ann", 0.0), ("ben", 1.0)):
        room.answer(judge, room.pair(str(first["number"])), Answer("graded", grade))
    [pool] = [one for one in owner.get("/index.json").json()["pools"] if one["name"] == room.name]
    assert (pool["judged"], pool["contested"]) == (1, 1)
    assert f'href="/judge/{room.name}/decide">1</a>' in owner.get("/").text
    after = owner.get("/c/brook-news/q/nq-105.json?systems=bm25").json()
    [told] = [one["aside"] for one in after["columns"][0]["answers"] if one["document"] == first["document"]]
    assert (told["grade"], told["pool"]) == (0, room.name)  # of a disagreement the lowest
    assert after["columns"][0]["value"] == before["columns"][0]["value"]
    rooms.close()


def test_results_without_judgments_get_scores_of_what_people_judge(tmp_path):
    corpus = {f"d{n}": f"river {'weir ' * n}" for n in range(4)}
    whole = weir.Dataset.of(corpus, {"q1": "weir", "q2": "river"}, {"q1": {"d0": 1}}, "mine")
    shutil.copytree(whole.layout.root, tmp_path / "mine")
    shutil.rmtree(tmp_path / "mine" / "qrels")
    weir.Experiment([str(tmp_path / "mine")], ["bm25", "bm25(b=0)"]).execute(tmp_path / "results")
    rooms, owner = visited(tmp_path / "results")
    start = owner.get("/index.json").json()
    assert (start["measure"], start["collections"][0]["queries"]) == ("", 2)
    assert "Nothing is judged yet" in owner.get("/c/mine").text
    listed = html.unescape(re.search(r'name="list" value="([^"]*)"', owner.get("/c/mine").text)[1])
    fields = {"csrf": csrf_of("o" * 32), "collection": "mine", "list": listed}
    place = owner.post("/judge", data=fields).headers["location"]
    while (pair := owner.get(f"{place}.json").json()["pair"]) is not None:
        given = {"csrf": csrf_of("o" * 32), "number": pair["number"], "key": pair["key"]}
        owner.post(f"{place}/answer", data={**given, "grade": int(pair["document"] == "d1")})
    told = owner.get(f"{place}/changed.json").json()
    qrels = read_qrels(tmp_path / "results-judging" / "mine-1" / "judgments.sqlite")
    assert (told["changes"]["first"], told["changes"]["queries"], told["changes"]["judged"]) == (
        True, len(qrels), len(qrels.doc)
    )  # fmt: skip
    runs = {one["system"]: one["after"] for one in told["changes"]["rows"]}
    for name, mean in runs.items():
        run = weir.system(name).index(whole.corpus).search(whole.all_queries, 1000)
        assert mean == weir.evaluate(qrels, run, ["nDCG@10"]).mean("nDCG@10")
    assert "What" in owner.get(f"{place}/changed").text
    rooms.close()


def test_grades_of_a_new_pool_are_those_of_its_collection(tmp_path):
    rooms, _, ann, *_ = visitors(tmp_path)
    assert ann.read()["pool"]["grades"] == [0, 1, 2, 3]
    assert "**3**: answers" in ann.read()["pool"]["guidelines"]
    rooms.close()
    about = tmp_path / "pool" / "pool.json"
    for grades, expected, said in (
        ([0, 1], [0, 1], "**1**: answers"),
        ([], [0, 1, 2, 3], "**2**"),
        ("x", [0, 1, 2, 3], "**2**"),
    ):
        about.write_text(json.dumps({**json.loads(about.read_text()), "grades": grades}))
        rooms = Rooms.of_pools(tmp_path / "pool", judges=("ann",))
        pool = Visitor(rooms, "a" * 32).read()["pool"]
        assert pool["grades"] == expected
        assert said in pool["guidelines"]
        rooms.close()


def test_markdown_shows_html_as_text_and_loads_nothing():
    shown = markdown_html(
        "# Grade\n\n<script>alert(1)</script> **so** [here](javascript:alert(1)) ![x](http://elsewhere/x.png)\n\n- <b>1</b>"
    )
    assert "<script" not in shown
    assert "<b>" not in shown
    assert "<img" not in shown
    assert 'href="javascript' not in shown
    assert "<strong>so</strong>" in shown
    assert "<h3>Grade</h3>" in shown


def test_a_read_only_server_takes_no_judgment(tmp_path):
    rooms = Rooms.of_pools(pool_of(tmp_path))
    visitor = Visitor(rooms, "a" * 32, read_only=True)
    for names in (("answer",), ("undo",), ("prefer",), ("back",), ("put-back",), ("plan",)):
        assert visitor.post(*names).status_code in (404, 405)
    assert Visitor(rooms, "o" * 32, read_only=True).get("progress").status_code == 200
    rooms.close()


def test_the_command_opens_a_pool_for_judges_and_ends_in_one_line_without_one(tmp_path, capsys):
    assert main(["open", str(tmp_path / "nowhere"), "--no-browser"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.fixture
def files(tmp_path):
    """Results of two run files, on a collection with documents and on its judgments alone."""
    folder = tmp_path
    collection = folder / "shop"
    (collection / "qrels").mkdir(parents=True)
    documents = [{"_id": f"d{n}", "title": "", "text": f"a boot of size {n}"} for n in range(4)]
    for name, rows in (("corpus", documents), ("queries", [{"_id": "q1", "text": "boot"}])):
        (collection / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (collection / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td0\t1\n")
    (folder / "judged.csv").write_text("query,document,grade\nq1,d0,1\n")
    for name, order in (("before", "0123"), ("after", "3210")):
        rows = [f"q1,d{doc},{9 - rank}" for rank, doc in enumerate(order)]
        (folder / f"{name}.csv").write_text("\n".join(["query_id,doc_id,score", *rows]) + "\n")
    systems = [f'run("{(folder / name).as_posix()}.csv")' for name in ("before", "after")]
    for name, place in (("whole", collection), ("bare", folder / "judged.csv")):
        weir.benchmark([str(place)], systems, ["nDCG@10"], out=folder / name)
    return folder


def test_run_files_are_judged_where_their_documents_are(files):
    rooms, whole = visited(files / "whole")
    html = whole.get("/c/shop").text
    assert "Make a pool" in html
    sent = {"collection": "shop", "list": "/?systems=before,after", "csrf": csrf_of("o" * 32)}
    made = whole.post("/judge", data=sent)
    assert made.status_code == 303, made.text
    assert "Judge the 3 unjudged documents" in whole.get("/c/shop/q/q1").text
    place = made.headers["location"]
    pair = whole.get(f"{place}.json").json()["pair"]
    given = {"csrf": csrf_of("o" * 32), "number": pair["number"], "key": pair["key"], "grade": 1}
    whole.post(f"{place}/answer", data=given)
    told = whole.get(f"{place}/changed.json").json()["systems"]
    start = whole.get("/index.json").json()["systems"]
    assert sorted(told, key=str) == sorted(start, key=str)  # the marks and names that they have elsewhere
    rooms.close()


def test_without_documents_nothing_is_offered_that_cannot_be_done(files):
    rooms, bare = visited(files / "bare")
    listed, shown = bare.get("/c/judged").text, bare.get("/c/judged/q/q1").text
    assert "Make a pool" not in listed
    assert 'action="/judge' not in shown
    assert "judgments without documents" in shown
    assert "judgments without documents" in listed
    tried = bare.get("/try.json?collection=judged&query=q").json()
    assert {column["failure"] for column in tried["columns"]} == {NO_SEARCH}
    funnel = bare.get("/c/judged/questions/funnel.json").json()
    assert funnel["command"].endswith("judged.csv first.trec reranked.trec")
    rooms.close()


def test_labels_of_texts_that_changed_since_are_told(tmp_path):
    """By the pool's sheet, beside the journal."""
    rooms, _, ann, *_ = visitors(tmp_path)
    for _ in range(3):
        ann.answer(ann.read(), grade=2)
    rooms.close()
    journal, targets = (
        tmp_path / "pool" / "judgments.sqlite",
        [tmp_path / "qrels.tsv", *tmp_path.glob("*.trec")],
    )

    def told():
        shown = weir.labels.relabel(journal, *targets, collection=tmp_path / "shop").notes()
        scored = weir.evaluate(journal, targets[1], "AP", collection=tmp_path / "shop").notes()
        return ["have another text" in " ".join(map(str, notes)) for notes in (shown, scored)]

    assert told() == [False, False]
    shop(tmp_path, {name: text.replace("boots", "sandals") for name, text in DOCS.items()})
    assert told() == [True, True]
