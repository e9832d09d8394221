"""News counts as told once it was written out; what could not be written is told again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import ALPHA, TIMEOUT, Cli, add_tasks, make_team
from tests.support.mcp_client import Line
from tests.support.serving import serving

FULL = Path("/dev/full")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A team in which bob has a message that asks for nothing, and is therefore shown only once."""
    made = make_team(tmp_path / "root", "bob")
    made.ok("send-message", "bob", "LETTER", "--fyi", agent="lea")
    return made


def lost(cli: Cli, *words: str) -> None:
    with FULL.open("wb") as full:
        process = cli.start(*words, agent="bob", stdout=full)
        error = process.communicate(timeout=TIMEOUT)[1]
    assert process.returncode == 1 and b"only its answer is lost" in error


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_what_a_full_disk_takes_is_told_again(cli: Cli) -> None:
    cli.ok("share", "PAGE", "text", agent="lea")
    add_tasks(cli, "one")
    for words in (("wait", "--timeout", "0"), ("read-messages",), ("brief",)):
        lost(cli, *words)
    found = cli.ok("wait", "--timeout", "0", agent="bob")
    assert {each["id"] for each in found["happened"]} == {"PAGE", "task-1"}
    assert [each["message"] for each in found["messages"]] == ["LETTER"]
    assert cli.refused("wait", "--timeout", "0", agent="bob")[0] == 14


def test_what_nobody_reads_from_a_pipe_is_told_again(cli: Cli) -> None:
    process = cli.start("wait", "--timeout", "60", agent="bob")
    process.stdout.close()
    process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    assert "LETTER" in cli("read-messages", agent="bob").stdout


def test_a_cancelled_call_takes_no_letter(cli: Cli) -> None:
    with Line(cli, "bob") as line:
        line.hello()
        line.notify("notifications/cancelled", {"requestId": line.use("read_messages")})
        last = line.use("read_messages")
        said = [line.read()]
        while said[-1].get("id") != last:
            said.append(line.read())
        assert "LETTER" in str(said)
        again = line.use("read_messages")
        assert (answer := line.read())["id"] == again and "LETTER" not in str(answer)


def test_a_letter_is_read_once_over_http(cli: Cli) -> None:
    with serving(cli) as server:
        found = [server.ask("POST", f"/api/read-messages?as=bob&team={ALPHA}", {}).body for _ in range(2)]
    assert [b"LETTER" in each for each in found] == [True, False]
