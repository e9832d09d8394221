"""Texts that can't be, and the longest that can."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from teams_cli.tasks import claims
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, COMMAND, Cli, add_tasks, make_team, tree

TEXTS = [
    ("send-message", "bob", "TEXT"),
    ("broadcast-message", "TEXT"),
    ("announce", "TEXT"),
    ("reply", "1", "TEXT"),
    ("create-task", "TEXT"),
    ("update-task", "1", "--title", "TEXT"),
    ("propose-plan", "TEXT"),
    ("reject-plan", "1", "--feedback", "TEXT"),
    ("reject-plan", "1", "TEXT"),
    ("reject-shutdown", "1", "--reason", "TEXT"),
    ("update-task", "1", "--result", "TEXT"),
    ("update-task", "1", "--description", "TEXT"),
    ("release-task", "1", "--reason", "TEXT"),
    ("create-task", "t", "--description", "TEXT"),
    ("approve-plan", "1", "--note", "TEXT"),
    ("request-shutdown", "bob", "--reason", "TEXT"),
    ("define-role", "r", "--description", "TEXT"),
]
_ASKERS = {"reply": "bob", "update-task": "bob", "release-task": "bob", "propose-plan": "bob", "reject-shutdown": "mia"}
_OPTIONAL = ("--result", "--description", "--note", "--reason")
_ABOVE = {"announce": 300, "create-task TEXT": 500, "--title": 500, "propose-plan": 2**20, "--result": 2**20}


@pytest.mark.slow
def test_bad_texts(cli: Cli) -> None:
    """Blank, too long, or no Unicode: by argument and by standard input."""
    for words in TEXTS:
        agent = _ASKERS.get(words[0], "lea")
        piped = ["-" if word == "TEXT" else word for word in words]
        if words[-2] not in _OPTIONAL or words[0] == "reject-shutdown":
            assert cli.refused(*piped, agent=agent, stdin=b" \n\t\n") == (2, "invalid_value")
        limit = next((n for key, n in _ABOVE.items() if key in " ".join(words)), 2**16)
        assert cli.refused(*piped, agent=agent, stdin=b"x" * (limit + 1)) == (2, "invalid_value")
        bad = [b"\xff\xfe" if word == "TEXT" else word for word in words]
        assert cli.refused(*bad, agent=agent) == (2, "invalid_value")
        assert cli.refused(*piped, agent=agent, stdin=b"ok \xff") == (2, "wrong_usage")


def test_a_text_beyond_every_limit_is_not_cut(cli: Cli) -> None:
    """Three bytes a character, so that the place of a cut would be inside one."""
    flood = "\u20ac".encode() * 2**20
    for words, agent in ((["propose-plan", "-"], "bob"), (["create-task", "t", "--run", "-"], "lea")):
        before = tree(cli.root)
        answer = cli(*words, agent=agent, stdin=flood)
        assert answer.status == 2 and "bytes" in answer.stderr and answer.stdout == "", answer
        assert tree(cli.root) == before


def test_standard_input_that_is_closed(cli: Cli) -> None:
    shell = ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND]
    words = ["send-message", "bob", "-", "--json"]
    done = subprocess.run([*shell, *words], env=cli.environ("lea"), capture_output=True, timeout=60)
    assert done.returncode == 2 and json.loads(done.stderr)["error"]["code"] == "wrong_usage"


def test_the_longest_texts_are_taken_whole(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, "t")
    claims.claim(cli.store(), ALPHA, Caller("bob"), "1")
    text = "\u00e4" * 2**15
    assert cli.ok("send-message", "bob", "-", agent="lea", stdin=text.encode())["message"] == text
    result = "y" * 2**20
    done = cli.ok("update-task", "1", "--status", "completed", "--result", "-", agent="bob", stdin=result.encode())
    assert done["result"] == result
