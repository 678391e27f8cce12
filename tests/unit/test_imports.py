from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from weir.cli.main import all_commands
from weir.experiment.experiment import Experiment
from weir.systems import parse_system
from weir.systems.warm import kernels_of, prepare

HEAVY = {
    "numba",
    "llvmlite",
    "pyarrow",
    "orjson",
    "Stemmer",
    "scipy",
    "pandas",
    "polars",
    "torch",
    "requests",
}


def modules_after(code: str) -> set[str]:
    """Names of sys.modules after running code in a fresh interpreter."""
    program = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.strip().split("\n")[-1]))


def test_import_weir_is_almost_free():
    assert not modules_after("import weir") & (HEAVY | {"numpy", "click"})


def test_scoring_needs_numpy_alone(tmp_path):
    (tmp_path / "q").write_text("q1 0 d1 1\n")
    (tmp_path / "r").write_text("q1 Q0 d1 1 2.5 x\n")
    code = f"""
import weir
scores = weir.evaluate({str(tmp_path / "q")!r}, {str(tmp_path / "r")!r}, ["nDCG@10"])
assert scores.mean_values().tolist() == [1.0]
"""
    loaded = modules_after(code)
    assert not loaded & HEAVY
    assert "numpy" in loaded


def test_scoring_files_imports_nothing_of_collections_comparisons_and_charts(tmp_path):
    (tmp_path / "q").write_text("q1 0 d1 1\n")
    (tmp_path / "r").write_text("q1 Q0 d1 1 2.5 x\n")
    code = f"""
from weir.cli import main
assert main(["eval", {str(tmp_path / "q")!r}, {str(tmp_path / "r")!r}, "-m", "AP"]) == 0
"""
    assert not modules_after(code) & {
        *("weir.datasets.load", "weir.files.layouts", "weir.core.corpus", "weir.core.filters"),
        *("weir.stats.compare", "weir.stats.significance", "weir.stats.threshold", "weir.core.charts"),
        *("weir.cli.fusing", "sqlite3", "zipfile", "tomllib", "html", "secrets"),
    }


@pytest.mark.parametrize("given", [None, "7"])
def test_idle_threads_of_openblas_sleep_soon_unless_the_user_says_how_long_they_spin(monkeypatch, given):
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    if given is not None:
        monkeypatch.setenv("OPENBLAS_THREAD_TIMEOUT", given)
    code = f"""
import os, sys
from weir.cli import entry
sys.argv = ["weir", "--help"]
try:
    entry()
except SystemExit:
    assert os.environ["OPENBLAS_THREAD_TIMEOUT"] == {given or "20"!r}
"""
    modules_after(code)


def test_reading_and_comparing_results_needs_numpy_alone(tmp_path):
    Experiment(("brook-facts",), ("bm25", "rm3"), ("RR",), k=5).execute(tmp_path)
    code = f"""
from weir.cli import main
assert main(["results", {str(tmp_path)!r}]) == 0
assert main(["compare", {str(tmp_path)!r}, "-m", "RR"]) == 0
"""
    assert not modules_after(code) & HEAVY


@pytest.mark.parametrize(
    "name",
    [
        "bm25",
        'bm25 >> cross("minilm-cross")',
        'rrf(bm25, dense("minilm"))',
        'splade("splade")',
        'colbert("colbert")',
    ],
)
def test_reading_the_name_of_a_system_imports_neither_compiler_nor_model(name):
    code = f"from weir.systems import parse_system\nassert str(parse_system({name!r})) == {name!r}"
    assert not modules_after(code) & HEAVY


def test_a_lexical_system_imports_no_encoder_no_reranker_and_no_collections():
    code = "from weir.systems import parse_system\nassert str(parse_system('bm25')) == 'bm25'"
    assert not modules_after(code) & {
        *("weir.models.encoder", "weir.models.checkpoints", "weir.systems.rerank.reranking"),
        *("weir.systems.vectors.store", "weir.datasets.load"),
    }


def test_collections_measures_and_summaries_need_no_compiler_and_no_network():
    code = """
import weir, weir.measures, weir.stats.score_rows
ds = weir.load("brook-medical")
assert len(ds.corpus) and len(ds.queries) and len(ds.qrels.queries)
"""
    assert not modules_after(code) & (HEAVY - {"orjson"} | {"ssl"})


def test_bm25_with_kernels_that_are_kept_imports_no_compiler(tmp_path):
    prepare(kernels_of(parse_system("bm25"), 100))
    code = f"""
from weir.cli import main
assert main(["run", "-q", "-d", "brook-medical", "-s", "bm25", "-o", {str(tmp_path)!r}]) == 0
"""
    assert not modules_after(code) & {"numba", "scipy", "pyarrow", "torch"}


def test_help_imports_nothing_heavy():
    loaded = modules_after("from weir.cli import main\nassert main(['--help']) == 0")
    assert not loaded & (HEAVY | {"numpy"})
    assert "click" in loaded


HELPED = """
import json, os, sys
from weir.cli import main
for command in sys.argv[1:]:
    sys.stdout.flush()
    if not os.fork():  # a process that has imported nothing of the command
        code = main([*command.split(), "--help"])
        print(json.dumps([command, code, sorted(sys.modules)]), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each help is shown in a fork")
def test_help_of_a_command_imports_nothing_heavy():
    commands = sorted(all_commands())
    done = subprocess.run(
        [sys.executable, "-c", HELPED, *commands], capture_output=True, text=True, check=True
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["')]
    assert [(command, code) for command, code, _ in found] == [(command, 0) for command in commands]
    heavy = HEAVY | {"numpy"}
    assert {command: heavy & set(loaded) for command, _, loaded in found if heavy & set(loaded)} == {}


def test_public_names_resolve():
    import weir
    from weir import labels, measures, stats, systems

    for module in (weir, labels, measures, stats, systems):
        assert set(module.__all__) <= set(dir(module))
        for name in module.__all__:
            assert getattr(module, name) is not None
    with pytest.raises(AttributeError):
        weir.nothing  # noqa: B018 - looking it up is the test


def test_every_registered_measure_is_a_name_of_weir():
    import weir
    from weir.measures import MEASURES, Measure, library

    of_plugins = {"Leak", "Stale", "Superseded"}
    assert {getattr(weir, name).name for name in [*library.__all__, *of_plugins]} == set(MEASURES.names())
    assert Measure("P") == weir.P
    weir.measure("RegisteredByATest")(lambda j, *, k=None: j)
    assert str(weir.RegisteredByATest @ 3) == "RegisteredByATest@3"
    del MEASURES._known["RegisteredByATest"]


def test_names_resolve_where_the_package_is_in_an_archive(tmp_path):
    import weir

    archive = shutil.make_archive(str(tmp_path / "weir"), "zip", Path(weir.__file__).parents[1], "weir")
    code = f"import sys\nsys.path.insert(0, {archive!r})\nimport weir\nassert '.zip' in weir.__file__\nweir.WeirError"
    assert "weir" in modules_after(code)
