"""Shell completion, as docs/quickstart.md describes it: the command answers shells without being run."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def asked(**environment):
    answer = subprocess.run(
        [sys.executable, "-c", "from weir.cli import entry; entry()"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    return answer.stdout


@pytest.mark.parametrize(
    ("shell", "begins"), [("zsh", "#compdef weir"), ("fish", "function _weir_completion")]
)
def test_each_shell_gets_its_script(shell, begins):
    assert asked(_WEIR_COMPLETE=f"{shell}_source").startswith(begins)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("weir ev", ["plain,eval"]),
        ("weir eval --tie", ["plain,--ties"]),
        ("weir eval --ties ", ["plain,trec", "plain,trec9", "plain,expected", "plain,bounds"]),
        ("weir eval qre", ["file,qre"]),
    ],
)
def test_commands_options_choices_and_files_are_completed(words, offered):
    place = str(len(words.split(" ")) - 1)
    found = asked(_WEIR_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=place)
    assert found.split() == offered
