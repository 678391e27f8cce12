"""weir judge when something ends it: failures that pass and that do not, a budget, a kill; nothing is asked twice."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

import weir
from tests.kills import killed_unanswered
from tests.unit.embedding_place import forget_spending
from tests.unit.judge_place import judging, lines
from tests.unit.model_servers import chat_serving, cut, status
from weir.cli import main
from weir.errors import ServiceError


def test_what_passes_is_asked_again_and_what_does_not_leaves_labels_that_the_next_run_completes(
    judge_server, judge_pool, tmp_path
):
    model, manners = judge_server
    manners.faults = [status(429, Retry_After="0"), status(500), None, cut, status(200, b'{"choices": [')]
    settings = weir.labels.JudgeSettings(probes=0, concurrency=1)
    weir.judge(judge_pool, model=model, out=tmp_path / "labels", settings=settings)
    assert len(manners.asked) == 27 + 4
    manners.asked.clear()
    manners.faults = [None] * 5 + [status(500)] * 3
    with pytest.raises(
        ServiceError, match=r"1 of 27 prompts have no answer.*holds 2[34] labels of 24 pairs so far"
    ):
        weir.judge(judge_pool, model=model + "2", out=tmp_path / "other", settings=settings)
    told = json.loads((tmp_path / "other" / "judge.json").read_text())
    assert (told["complete"], told["unanswered"]) == (False, 1)
    assert len(lines(tmp_path / "other" / "judgments.jsonl")) == 26
    before = len(manners.asked)
    [report] = weir.judge(judge_pool, model=model + "2", out=tmp_path / "other", settings=settings)
    assert (report.labelled, len(manners.asked)) == (24, before + 1)
    manners.faults = [status(401)]
    with pytest.raises(ServiceError, match="401"):
        weir.judge(judge_pool, model=model + "3", out=tmp_path / "none", settings=settings)
    assert not (tmp_path / "none").exists()


def test_the_budget_is_a_hard_stop_and_the_same_command_goes_on(judge_pool, tmp_path, capsys):
    forget_spending()
    with chat_serving() as (url, manners):
        manners.say = judging
        command = [
            "judge",
            str(judge_pool),
            "--model",
            f"{url}/v1#small",
            "-o",
            str(tmp_path / "labels"),
            "--probes",
            "0",
            "-q",
        ]
        assert main([*command, "--budget", "10 requests"]) == 2
        said = capsys.readouterr().err
        assert re.search(r"the budget of 10 requests ends here.*holds \d+ labels of 24 pairs so far", said)
        assert len(manners.asked) == 10
        assert len(lines(tmp_path / "labels" / "judgments.jsonl")) == 10
        forget_spending()
        assert main([*command, "--budget", "1 dollars", "--price", "0.5 in, 2 out"]) == 0
        said = capsys.readouterr()
        assert len(manners.asked) == 27
        assert "24 of 24 pairs of 6 queries are labelled by small with umbrela" in said.out
        assert f"cost: 27 answers, 351 tokens, {27 * (11 * 0.5 + 2 * 2) / 1e6:.4g} dollars" in said.out
        assert main([*command, "--budget", "much"]) == 2
        assert "WEIR_API_BUDGET is 'much'" in capsys.readouterr().err
    forget_spending()


def test_killed_in_the_middle_it_asks_only_for_what_is_missing(judge_pool, tmp_path):
    with chat_serving() as (url, manners):
        manners.say = judging
        out = tmp_path / "labels"
        command = [
            sys.executable,
            "-m",
            "weir",
            "judge",
            str(judge_pool),
            "--model",
            f"{url}/v1#small",
            "-o",
            str(out),
        ]
        command += ["--samples", "3", "--concurrency", "2", "-q"]
        killed_unanswered(command, manners, answers=20, at_once=2)
        assert not out.exists()
        assert subprocess.run(command, env=os.environ, stdout=subprocess.DEVNULL, check=False).returncode == 0
        answers = len(lines(out / "judgments.jsonl")) + len(lines(out / "probes.jsonl"))
        assert len(lines(out / "judgments.jsonl")) == 3 * (24 + 3)
        assert answers <= len(manners.asked) <= answers + 2  # what was out when it was killed
