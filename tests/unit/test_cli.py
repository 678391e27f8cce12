from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

import weir as weir_python
from tests.unit.brooklet import write_collection
from weir.api.progress import Progress
from weir.cli import main
from weir.cli.main import (
    GROUPS,
    SUBCOMMANDS,
    TOP,
    all_commands,
    example,
    load_command,
    other_commands,
    plugin_commands,
    weir,
)

QRELS = "q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 2\n"
RUN = "q1 Q0 d1 1 2.5 x\nq1 Q0 d9 2 1.5 x\nq3 Q0 d1 1 1.0 x\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "q").write_text(QRELS)
    (tmp_path / "r").write_text(RUN)
    return str(tmp_path / "q"), str(tmp_path / "r")


def refused(capsys, *arguments: str) -> str:
    """The one line of an error that ends with exit code 2 and prints nothing else."""
    assert main(list(arguments)) == 2
    out, err = capsys.readouterr()
    lines = [line for line in err.split("\n") if line]
    assert out == ""
    assert lines[-1].startswith("weir: ")
    assert "Traceback" not in err
    return lines[-1]


def test_help_lists_every_command_with_its_own_first_sentence(capsys):
    for arguments, commands in (
        (
            ["--help"],
            {n: t for section in TOP.values() for n, t in section.items()} | GROUPS | other_commands(),
        ),
        *(
            ([group], SUBCOMMANDS.get(group, {}) | other_commands(group))
            for group in [*GROUPS, "labels", "submit"]
        ),
    ):
        assert main(arguments) == 0
        shown = " ".join(capsys.readouterr().out.split())
        for name, sentence in commands.items():
            assert f" {name} {sentence}" in shown
    for name, sentence in all_commands().items():
        assert (load_command(name).help or "").startswith(sentence)
        assert main([*name.split(), "--help"]) == 0


SINGLE = [
    (name, option.opts[-1])
    for name in all_commands()
    for option in load_command(name).params
    if isinstance(option, click.Option) and not (option.multiple or option.is_flag or option.count)
]


@pytest.mark.parametrize(("name", "option"), SINGLE, ids=lambda one: one.replace(" ", "-"))
def test_an_option_of_one_value_is_not_given_twice(name, option, capsys):
    assert refused(capsys, *name.split(), option, "1", option, "2").endswith(
        f"is given 2 times; expected once: weir {name} takes one value of it"
    )


def test_help_is_one_screen_that_begins_with_where_to_start(capsys):
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 23  # one is the prompt's
    assert max(map(len, lines)) <= 80
    assert lines[2] == "Start here"
    assert len(weir.list_commands(click.Context(weir))) <= 21


def test_an_option_means_the_same_in_every_command():
    meanings: dict[str, set[tuple[str, ...]]] = {}
    kinds: dict[str, set[object]] = {}
    wider = {"choice": "text", "file": "path", "directory": "path"}
    for name in all_commands():
        for option in load_command(name).params:
            if not isinstance(option, click.Option):
                continue
            long = [spelling for spelling in option.opts if spelling.startswith("--")]
            for spelling in option.opts:
                meanings.setdefault(spelling, set()).add(tuple(long))
                switch = option.is_flag or isinstance(
                    option.flag_value, str
                )  # else it has another value by version
                kinds.setdefault(spelling, set()).add((switch, wider.get(option.type.name, option.type.name)))
    assert {spelling: found for spelling, found in meanings.items() if len(found) > 1} == {}
    switches = {spelling for spelling, found in kinds.items() if len({flag for flag, _ in found}) > 1}
    assert switches == {"--fit"}  # of audit a question, of fuse judgments
    types = {
        s: found for s, found in kinds.items() if s != "--json" and len({t for f, t in found if not f}) > 1
    }
    assert types == {}


def test_help_refers_to_no_function():
    found = set()
    for name in all_commands():
        command = load_command(name)
        helps = {
            "": command.help or "",
            **{p.opts[-1]: getattr(p, "help", None) or "" for p in command.params},
        }
        found |= {
            (name, option, words)
            for option, words in helps.items()
            if re.search(r"(?:^|[.,;:(] ?)see (?:`|\w+_\w)", words, re.I)
        }
    assert found == set()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["fetsh"], "data fetch"),
        (["data", "fetsh"], "data fetch"),
        (["data", "measures"], "list measures"),
        (["evall"], "eval"),
        (["lables"], "labels"),
    ],
)
def test_an_unknown_command_suggests_todays_name(words, name, capsys):
    assert refused(capsys, *words).endswith(f"did you mean {name}?")


def test_every_module_of_a_command_is_listed():
    import weir.cli

    folder = Path(weir.cli.__file__).parent
    modules = {p.stem for p in folder.glob("*.py")}
    files = {
        load_command(name).callback.__module__ for name in all_commands() if name not in plugin_commands()
    }
    assert {
        f"weir.cli.{name}"
        for name in modules - {"__init__", "declared", "fault_report", "main", "options", "terminal"}
    } == files


def test_eval_prints_a_table_and_says_who_did_not_answer(files, capsys):
    assert main(["eval", *files, "-m", "nDCG@10", "-m", "R@100"]) == 0
    out, err = capsys.readouterr()
    assert "0.5000 [-]" in out
    assert "1/2" in out
    assert "1 of 2 judged queries are not answered and score 0" in err
    assert "1 query of the run has no judgments and is ignored" in err


def test_eval_json_has_the_promised_keys_at_full_precision(files, capsys):
    assert main(["eval", *files, "-m", "P@3", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    keys = ["dataset", "system", "measure", "mean", "low", "high", "queries", "answered", "judged_at_10"]
    assert [list(r) for r in rows] == [keys]
    assert rows[0]["mean"] == (1 / 3) / 2
    assert (rows[0]["queries"], rows[0]["answered"]) == (2, 1)


def test_eval_per_query(files, capsys):
    assert main(["eval", *files, "-m", "RR", "--per-query", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        {"query": "q1", "measure": "RR", "value": 1.0},
        {"query": "q2", "measure": "RR", "value": 0.0},
    ]
    assert main(["eval", *files, "-m", "RR", "--per-query"]) == 0
    assert capsys.readouterr().out == "RR\tq1\t1.0\nRR\tq2\t0.0\n"


def test_run_and_results(tmp_path, capsys):
    collection, results = str(write_collection(tmp_path / "brooklet")), str(tmp_path / "results")
    arguments = ["run", "-d", collection, "-s", "bm25", "-m", "nDCG@10", "-o", results]
    assert main(arguments) == 0
    table, progress = capsys.readouterr()
    assert "brooklet" in table
    assert "3/4" in table
    assert "brooklet  bm25  index" in progress
    assert main([*arguments, "--json", "--quiet"]) == 0
    row = capsys.readouterr().out
    for form, expected in (
        ("--json", row),
        ("--csv", "dataset,system,measure"),
        ("--latex", "\\begin{tabular}"),
    ):
        assert main(["results", results, form]) == 0
        assert expected in capsys.readouterr().out


def test_run_takes_an_experiment_file_and_options_replace_its_entries(tmp_path, capsys):
    collection = write_collection(tmp_path / "brooklet")
    (tmp_path / "grid.toml").write_text(
        f'datasets = ["{collection}"]\nsystems = ["bm25"]\nmeasures = ["AP"]\nk = 3\n'
    )
    arguments = ["run", str(tmp_path / "grid.toml"), "-o", str(tmp_path / "results"), "--json"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["measure"] == "AP"
    assert main([*arguments, "-m", "RR", "-s", "rm3"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["measure"], row["system"]) == ("RR", "rm3")


def test_measures_systems_datasets(capsys):
    for arguments, expected in (
        (["list", "measures"], "nDCG[@k]   settings: gain='linear'"),
        (["list", "measures", "--json"], '"measure": "AP"'),
        (["list", "systems"], 'bm25("lucene-multifield"): Anserini'),
        (["list", "systems", "bm25(k1=1.2)"], '"k1": 1.2'),
        (["list", "datasets"], "brook-medical"),
        (["list", "datasets", "--json"], '"name": "scifact"'),
    ):
        assert main(arguments) == 0
        assert expected in capsys.readouterr().out


def test_stats(tmp_path, capsys):
    collection = str(write_collection(tmp_path / "brooklet"))
    assert main(["data", "stats", collection]) == 0
    out = capsys.readouterr().out
    assert "1 by text, 0 by title and text" in out
    assert main(["data", "stats", collection, "--json"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert (card["documents"], card["empty"], card["zero"], card["positive"]) == (6, 1, 1, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "-d", "scifatc", "-s", "bm25"], "did you mean scifact"),
        (["run", "-d", "brook-medical", "-s", "bm52"], "did you mean bm25"),
        (["run", "-d", "brook-medical", "-s", "bm25", "-m", "nDGC@10"], "did you mean nDCG"),
        (["run", "-d", "brook-medical", "-s", "bm25", "-m", "nDCG@0"], "expected a whole number from 1"),
        (["run", "-d", "brook-medical", "-s", "bm25", "-k", "0"], "k is 0; expected a whole number from 1"),
        (["run", "-d", "bm25(b=1)", "-s", "brook"], "'bm25(b=1)' is a system; expected a dataset there"),
        (["plan", "-s", "brook", "-d", "brook-facts"], "'brook' is a dataset; expected a system there"),
        (["run", "-s", "bm25"], "found no dataset; expected one or more, as in -d scifact"),
        (["run", "-d", "nq", "-s", "bm25"], "weir data fetch nq"),
        (["run", "-d", "robust04", "-s", "bm25"], "robust04 cannot be downloaded"),
        (["data", "fetch", "bioasq"], "bioasq cannot be downloaded"),
        (["data", "fetch", "scifatc"], "did you mean scifact"),
        (["data", "stats", "no/such/folder"], "no/such/folder"),
        (["results", "no/such/folder"], "no such folder"),
        (["eval", "no-qrels", "no-run"], "no-qrels"),
        (["evl"], "no command named 'evl'; did you mean eval?"),
        (["eval"], "Missing argument 'QRELS'"),
        (["list", "systems", "bm25(k1=)"], "is not a system"),
        (["list", "systems", "rrf(bm25 rm3)"], "a comma may be missing"),
        (["list", "systems", "rrf(bm25, rm3"], "a bracket is never closed"),
        (
            ["eval", "brook-nws", "run"],
            "no file, folder or collection named 'brook-nws'; did you mean brook-news",
        ),
        (["eval", "nothing-like-it", "run"], "found no such file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_mistake_is_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        ("q1 0 d1 relevant\n", RUN, "q, line 1: found"),
        ("q1 0 d1 nan\n", RUN, "q, line 1: found"),
        ("q1 0 d1 1\nq1 0 d1 0\n", RUN, "line 2"),
        ("", RUN, "q"),
        (QRELS, RUN + "q1 Q0 d1 3 0.5 x\n", "twice"),
        (QRELS, RUN + "q1 Q0 d4 3 nan x\n", "r, line 4: found"),
        (QRELS, RUN + "q1 Q0 d4 3 inf x\n", "r, line 4: found"),
        (QRELS, RUN + "q1 Q0 d4 3 high x\n", "r, line 4: found"),
        (QRELS, RUN + "q1 d4\n", "r, line 4: found"),
        (QRELS, '{"q1": {"d1": NaN}}', "r"),
        (QRELS, '{"q1": {"d1": 1.0, "d1": 2.0}}', "d1"),
        (QRELS, '{"q1": [1.5]}', "r"),
    ],
)
def test_bad_files_are_one_line(tmp_path, capsys, qrels, run, message):
    (tmp_path / "q").write_text(qrels)
    (tmp_path / "r").write_text(run)
    assert message in refused(capsys, "eval", str(tmp_path / "q"), str(tmp_path / "r"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"_id": "x", "text": "cut', "corpus.jsonl, line 7"),
        ('{"text": "no id"}', "corpus.jsonl, line 7"),
        ('{"_id": "d1", "text": "again"}', "d1"),
        ("[]", "corpus.jsonl, line 7"),
    ],
)
def test_a_bad_corpus_is_one_line_and_leaves_nothing(tmp_path, capsys, line, message):
    collection = write_collection(tmp_path / "brooklet")
    with (collection / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    before = sorted(tmp_path.rglob("*"))
    arguments = ["run", "-d", str(collection), "-s", "bm25", "-o", str(tmp_path / "results"), "-q"]
    assert message in refused(capsys, *arguments)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_zip_that_points_outside_is_refused(tmp_path, capsys):
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../evil.txt", "x")
        archive.writestr("evil/corpus.jsonl", "{}")
    arguments = ["run", "-d", str(tmp_path / "evil.zip"), "-s", "bm25", "-o", str(tmp_path / "results"), "-q"]
    assert "evil.zip" in refused(capsys, *arguments)
    assert not (tmp_path.parent / "evil.txt").exists()


def test_a_damaged_store_is_built_again(tmp_path, capsys):
    collection = write_collection(tmp_path / "brooklet")
    arguments = ["data", "stats", str(collection), "--json"]
    assert main(arguments) == 0
    card = capsys.readouterr().out
    for part in sorted(p for p in collection.glob("*.weir/*") if p.is_file()):
        part.write_bytes(b"damaged")
        assert main(arguments) == 0
        found = capsys.readouterr()
        assert found.out == card
        assert "built again" in found.err


def test_interrupting_says_that_the_same_command_continues(tmp_path, capsys, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    collection = str(write_collection(tmp_path / "brooklet"))
    monkeypatch.setattr("weir.experiment.experiment.Experiment.complete", interrupted)
    assert main(["run", "-d", collection, "-s", "bm25"]) == 130
    assert "run the same command to resume" in capsys.readouterr().err


def test_the_installed_command_exits_with_2(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "weir", "run", "-k", "0"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert len(done.stderr.strip().split("\n")) == 1


def test_output_that_nobody_reads_is_no_error():
    done = subprocess.run(
        f"'{sys.executable}' -m weir list datasets --json | head -n 1; exit ${{PIPESTATUS[0]}}",
        check=False, shell=True, executable="/bin/bash", capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_bare_weir_prints_the_help_with_its_groups(capsys):
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert set(TOP) <= set(out.split("\n"))
    assert all(len(line) <= 80 for line in out.split("\n"))


@pytest.mark.parametrize(
    ("words", "offered", "not_offered"),
    [
        (["ev"], {"eval"}, {"run"}),
        (["eval", "q", "r", "-m", "nd"], {"nDCG", "nDCG@10"}, {"P@10"}),
        (["eval", "q", "r", "-m", "P"], {"P@10"}, {"P"}),
        (["compare", "q", "a", "b", "-m", "nDCG@"], {"nDCG@10", "nDCG@100"}, {"P@10"}),
        (["run", "-s", "den"], {"dense"}, {"bm25"}),
        (["results", "-d", "sci"], {"scifact", "scidocs"}, {"brook"}),
        (["data", "stats", "broo"], {"brook", "brook-news"}, {"scifact"}),
        (["list", "measures", "err"], {"ERR"}, {"AP"}),
        (["list", "systems", "rm"], {"rm3"}, {"bm25"}),
        (["eval", "--ti"], {"--ties"}, {"--json"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_shell_completes_names(words, offered, not_offered):
    found = {
        item.value
        for item in ShellComplete(weir, {}, "weir", "_WEIR_COMPLETE").get_completions(words[:-1], words[-1])
    }
    assert offered <= found
    assert not not_offered & found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_switched_on_by_the_line_of_the_documentation(shell):
    page = (Path(__file__).resolve().parents[2] / "docs" / "quickstart.md").read_text()
    assert f"_WEIR_COMPLETE={shell}_source weir" in page
    environment = {**os.environ, "_WEIR_COMPLETE": f"{shell}_source"}
    done = subprocess.run(
        [sys.executable, "-c", "from weir.cli import main; import sys; sys.exit(main())"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert f"{shell}_complete" in done.stdout, done.stderr
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_while_click_is_imported_is_one_line():
    program = (
        "import os, runpy, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'click':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.argv = ['weir', '--help']\n"
        "runpy.run_module('weir', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nweir: interrupted\n")


def test_a_signal_whose_exception_gets_lost_ends_the_command_as_terminated(monkeypatch, capsys):
    """As where it strikes while Python compiles, which turns it into an error of its own."""

    def lost(*_: object, **__: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        except BaseException:  # noqa: BLE001  as a compiler does
            raise SystemError("a result with an exception set") from None

    monkeypatch.setattr(weir, "main", lost)
    assert main(["doctor"]) == 143
    assert "terminated; finished work is kept" in capsys.readouterr().err


@pytest.mark.parametrize("name", all_commands())
def test_the_example_of_every_command_is_one_that_it_takes(name):
    command = load_command(name)
    context = click.Context(command, info_name=f"weir {name}")
    words = example(context).split()
    assert words[: 1 + len(name.split())] == ["weir", *name.split()]
    command.make_context(f"weir {name}", words[1 + len(name.split()) :])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["eval", "brook-news"], "Missing argument 'RUN...'; such as weir eval qrels.tsv run.trec"),
        (["compare"], "Missing argument 'PATHS...'; such as weir compare results/"),
        (["power", "results/"], "Missing argument 'FIRST'; such as weir power qrels.tsv a.trec b.trec"),
        (
            ["fuse", "rrf", "a", "b"],
            "Missing option '-o' / '--out'; such as weir fuse rrf a.trec b.trec -o out",
        ),
        (["verify", "a", "b"], "Got unexpected extra argument (b); such as weir verify"),
        (
            ["run", "brook-news", "bm25(k1=2)", "-m", "nDCG@10"],
            "Got unexpected extra argument (bm25(k1=2)); such as weir run -d brook-news -s 'bm25(k1=2)' -m nDCG@10",
        ),
        (
            ["run", "-d", "brook", "rm3"],
            "Got unexpected extra argument (rm3); such as weir run -d brook -s rm3",
        ),
        (
            ["plan", "scifact:train"],
            "Got unexpected extra argument (scifact:train); such as weir plan -d scifact:train",
        ),
        (["run", "grid.tml"], "grid.tml: found no such file; expected an experiment file"),
        (
            ["report", "r/", "page.html"],
            "Got unexpected extra argument (page.html); such as weir report r/ -o page.html",
        ),
        (
            ["doctor", "measures"],
            "kinds of kernels are named for --compile: weir doctor --compile KERNELS",
        ),
        (["verify", "a", "b" * 300], f"Got unexpected extra argument ({'b' * 300}); such as weir verify"),
    ],
)
def test_a_call_that_lacks_something_is_told_one_that_does_not(arguments, message, capsys):
    assert refused(capsys, *arguments) == f"weir: {message}"


@pytest.mark.parametrize("command", ["compare", "report", "results", "verify"])
def test_two_results_folders_are_told_what_compares_them(command, tmp_path, capsys):
    for name in ("main", "changed"):
        weir_python.benchmark("brook-news", ["bm25"], ["nDCG@10"], out=tmp_path / name)
    told = refused(capsys, command, str(tmp_path / "main"), str(tmp_path / "changed"))
    for form in ("gate", "compare brook-news"):
        assert f"weir {form} {tmp_path / 'main'} {tmp_path / 'changed'} compares" in told
    with pytest.raises(weir_python.WeirError, match="found two results folders"):
        weir_python.compare(tmp_path / "main", tmp_path / "changed")


def test_progress_says_rate_and_time_left(monkeypatch, capsys):
    moments = iter([0.0, 40.0, 80.0])
    monkeypatch.setattr("time.monotonic", lambda: next(moments))
    progress = Progress()
    for done in (0, 50, 100):
        progress("index", done, 200)
    assert capsys.readouterr().err.split("\n")[1] == "index  50/200  1.25/s, 0:02:00 left"


def test_what_is_missing_of_a_grid_is_named(tmp_path, capsys):
    for arguments, missing in (
        (["-d", "brook-news"], "system"),
        ([], "dataset and no system"),
    ):
        for command in (["run", "-o", str(tmp_path / "out")], ["plan"]):
            assert main([*command, *arguments, "-q"]) == 2
            assert f"found no {missing}; expected one or more" in capsys.readouterr().err


def test_the_option_that_other_tools_have_for_a_split_leads_to_the_name(capsys):
    assert "a split stands after the collection" in refused(
        capsys, "run", "-d", "x", "--split", "dev", "-s", "bm25"
    )
