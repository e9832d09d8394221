"""A machine runs only what it was itself told to run, whatever others write into the database."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from teams_cli.agents import sessions
from teams_cli.agents.sessions import SESSION, Session
from teams_cli.store.contract import update
from tests.support.agents import end_all, lines, team_of_agents
from tests.support.cli import ALPHA, Cli
from tests.support.waits import until


@pytest.fixture
def cli(on_postgres: str, tmp_path: Path) -> Iterator[Cli]:
    made = team_of_agents(tmp_path, "bob")
    yield made
    end_all(made.root)


OPTION = "--dangerously-skip-permissions"
TOLD = [
    ("prompt", "echo mine >>$D/ran"),
    ("permissions", "all"),
    ("acp_command", "touch evil"),
    ("session_id", OPTION),
    ("session_id", "of-another-session"),
]
"""Fields of a session, and what another machine writes into them."""


@pytest.mark.slow
@pytest.mark.parametrize(("field", "told"), TOLD)
def test_an_agent_is_not_resumed_with_what_another_wrote(cli: Cli, field: str, told: object) -> None:
    """A session that another machine has changed is not resumed, as its fields are words of the command."""
    assert cli("run-agent", "echo ours >>$D/ran", "--agent-id", "ann", agent="lea").status == 0
    update(cli.store(), ALPHA, SESSION, "ann", lambda session: session.having(**{field: told}))
    cli.ok("send-message", "ann", "go on", agent="bob")
    session = until(lambda: failed(cli))
    why = "is not valid" if told == OPTION else "differs from how this machine started it"
    assert why in (session.failure or "")
    time.sleep(1.5)
    again = until(lambda: failed(cli))
    assert again.generation <= 3  # the sender and this machine's waker each tried once
    assert lines(cli, "ran") == ["ours"]


@pytest.mark.slow
def test_an_agent_is_not_copied_with_what_another_wrote(cli: Cli) -> None:
    fork = ["sh", "-c", 'echo "$0" "$PWD" >>$D/ran; echo copied', "{session_id}"]
    copied = {"start": ["sh", "-c", "echo ours"], "resume": ["true"], "fork": fork, "output": {"from": "stdout"}}
    (cli.root / "config.json").write_text(json.dumps({"harness": {"copied": copied}}))
    cli.ok("set", "broadcast", "agents", agent="lea")
    assert cli("run-agent", "go", "--agent-id", "ann", "--harness", "copied", agent="lea").status == 0
    asked = cli.ok("ask-others", "where?", "--to", "ann", "--timeout", "100", agent="bob")
    assert [said["content"] for said in asked["responses"]] == ["copied"]
    ran = lines(cli, "ran")
    update(cli.store(), ALPHA, SESSION, "ann", lambda session: session.having(session_id=OPTION))
    asked = cli.ok("ask-others", "and now?", "--to", "ann", "--timeout", "3", agent="bob")
    assert asked["responses"] == [] and lines(cli, "ran") == ran


def failed(cli: Cli) -> Session | None:
    """The session of ann once resuming it has failed, else None."""
    found = sessions.find(cli.store(), ALPHA, "ann")
    return found if found and found.ended and found.outcome == "failed" else None


@pytest.mark.slow
def test_an_agent_answers_by_its_command_where_it_joined(cli: Cli) -> None:
    cli.ok("set", "broadcast", "agents", agent="lea")
    there = Cli(cli.root, team=ALPHA, TEAMS_HOST="there")
    there.ok("join-team", "--answer", "echo from the shelf", agent="librarian")
    asked = there.ok("ask-others", "where?", "--to", "librarian", "--timeout", "100", agent="bob")
    assert [said["content"] for said in asked["responses"]] == ["from the shelf"]
    asked = cli.ok("ask-others", "where?", "--to", "librarian", "--timeout", "1", agent="bob")
    assert asked["status"] == "timeout" and asked["responses"] == []
    assert [row["type"] for row in there.ok("read-messages", agent="librarian")][-1] == "question"
