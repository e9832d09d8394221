"""Texts that can't be, and the longest that can."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from teams_cli.tasks import claims
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, COMMAND, Cli, add_tasks, make_team, tree


def test_bad_texts(cli: Cli) -> None:
    """Blank, too long, or no Unicode: by argument and by standard input."""
    for agent, limit, *words in (
        ("lea", 2**16, "send-message", "bob"),
        ("lea", 500, "create-task"),
        ("mia", 2**16, "reject-shutdown", "1", "--reason"),
    ):
        for text in (b" \n\t\n", b"x" * (limit + 1)):
            assert cli.refused(*words, "-", agent=agent, stdin=text) == (2, "invalid_value")
        assert cli.refused(*words, b"\xff\xfe", agent=agent) == (2, "invalid_value")
        assert cli.refused(*words, "-", agent=agent, stdin=b"ok \xff") == (2, "wrong_usage")


def test_a_text_beyond_every_limit_is_not_cut(cli: Cli) -> None:
    """Three bytes a character, so that the place of a cut would be inside one."""
    before = tree(cli.root)
    answer = cli("propose-plan", "-", agent="bob", stdin="\u20ac".encode() * 2**20)
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
