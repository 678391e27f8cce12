"""The front page says what the code, the records and the picture say; each claim names a command that is there."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from weir.cli.main import all_commands
from weir.core.charts import text_width
from weir.core.short_names import short_names

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import claims  # noqa: E402 - after the path of scripts is set
import front_picture  # noqa: E402 - after the path of scripts is set

README = (ROOT / "README.md").read_text(encoding="utf-8")
RECORD = json.loads(front_picture.NUMBERS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda claim: claim.command)
def test_a_claim_stands_in_the_front_page_with_the_figures_of_now(claim):
    assert claim.match(README).groups() == claim.figures(), "run python scripts/claims.py"


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda claim: claim.command)
def test_the_command_of_a_claim_is_there(claim):
    program, *words = shlex.split(claim.command)
    if program == "weir":
        assert any(" ".join(words).startswith(name) for name in all_commands())
    elif program == "make":
        assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    else:
        assert program in ("python", "pip")
        assert all((ROOT / word).exists() for word in words if word.endswith(".py"))


def test_the_page_of_claims_is_current():
    page = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    assert page == claims.claims_page(), "run python scripts/claims.py"


def test_a_sentence_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="0 times: Weir has"):
        claims.Claim("Weir has {} wings.", lambda: ("two",), "", "").match(README)


def test_figures_are_written_into_sentences_that_are_broken_over_lines():
    claim = claims.Claim("it has {} legs and {} wings", lambda: ("four", "no"), "", "")
    assert (
        claim.written_into("Here it has two\nlegs and two wings.") == "Here it has four\nlegs and no wings."
    )


@pytest.mark.parametrize("file", front_picture.pictures())
def test_the_picture_is_drawn_from_its_numbers(file):
    drawn = (ROOT / "docs" / file).read_text(encoding="utf-8")
    assert drawn == front_picture.pictures()[file], "run python scripts/front_picture.py"
    assert f'srcset="docs/{file}"' in README or f'src="docs/{file}"' in README
    assert text_width(front_picture.CLAIM, 16) < front_picture.WIDTH - 16
    assert (
        max(text_width(part, 16) for part in front_picture.CLAIM.split("; "))
        < front_picture.NARROW_WIDTH - 16
    )
    assert max(text_width(name, 13) for name in short_names(front_picture.SYSTEMS)) < front_picture.LABELS


@pytest.mark.parametrize("name", front_picture.COLLECTIONS)
def test_the_picture_says_what_the_verdicts_are(name):
    """Both fusions are better than each of their parts, and neither than the other; ranks follow from verdicts."""
    against, systems = RECORD[name]["against"], RECORD[name]["systems"]
    first, second = front_picture.FUSIONS
    for part in (front_picture.BASELINE, front_picture.MINILM):
        assert {against[part][fusion] for fusion in (first, second)} == {"better"}
    assert against[second][first] == "not separable"
    assert len({row[3] for row in systems.values()}) > 2
    assert all(row[1] < row[0] < row[2] for row in systems.values())


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("name", front_picture.COLLECTIONS)
def test_the_numbers_of_the_picture_come_out_again(shared, tmp_path, name):
    """Those of its systems that take seconds; the encoder takes minutes."""
    import weir

    lexical = [one for one in front_picture.SYSTEMS if "dense" not in one]
    rows = weir.benchmark(shared / "data" / name, lexical, front_picture.MEASURE).rows
    found = {r.system: [round(v, 4) for v in (r.mean, r.low, r.high)] for r in rows if r.measure == "nDCG@10"}
    assert found == {one: RECORD[name]["systems"][one][:3] for one in lexical}
