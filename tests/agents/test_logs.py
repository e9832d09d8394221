"""What agents print: shown and followed; and how those that failed are listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.agents import ended, team_of_agents, until
from tests.support.cli import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return team_of_agents(tmp_path)


def test_the_last_lines_that_an_agent_printed(cli: Cli) -> None:
    cli.ok("run-agent", "seq 5; echo oh >&2", "--agent-id", "ann", "--detach", agent="lea")
    ended(cli, "ann")
    assert cli.ok("logs", "ann", agent="lea") == {"agent": "ann", "lines": ["1", "2", "3", "4", "5", "oh"]}
    assert cli.ok("logs", "ann", "--lines", "2", agent="lea")["lines"] == ["5", "oh"]
    assert cli.ok("logs", "ann", "-n", "0", agent="lea")["lines"] == []
    assert cli("logs", "ann", "-n", "1", agent="lea").stdout == "oh\n"
    assert cli.refused("logs", "nobody", agent="lea") == (10, "agent_not_found")
    assert cli.refused("logs", "lea", agent="lea") == (10, "agent_not_found")
    assert cli.refused("logs", "ann", "-n", "-1", agent="lea")[0] == 2


def test_an_agent_is_followed_until_it_is_done(cli: Cli) -> None:
    """Over its turns, each line as it comes, a last one without an end too."""
    script = 'echo "turn $TEAMS_RESUME"; while [ ! -e "$D/go" ]; do sleep 0.05; done; echo gone; printf end'
    cli.ok("run-agent", script, "--agent-id", "ann", "--detach", agent="lea")
    follower = cli.start("logs", "ann", "--follow", "--json", agent="lea")
    lines: list[str] = []
    while "turn " not in lines:
        lines += json.loads(follower.stdout.readline())["lines"]
    cli.ok("send-message", "ann", "go on", agent="lea")
    Path(cli.more["D"], "go").touch()
    rest, _ = follower.communicate(timeout=60)
    lines += [line for part in rest.splitlines() for line in json.loads(part)["lines"]]
    assert follower.returncode == 0 and lines == ["turn ", "gone", "end", "turn 1", "gone", "end"]


def test_a_failed_agent_is_listed_as_failed(cli: Cli) -> None:
    cli.ok("run-agent", "exit 3", "--agent-id", "ann", "--detach", agent="lea")
    ended(cli, "ann")
    cli.ok("run-agent", "exit 0", "--agent-id", "ben", "--detach", agent="lea")
    ended(cli, "ben")
    rows = {row["name"]: row for row in cli.ok("list-agents", agent="lea")["agents"]}
    assert (rows["ann"]["state"], rows["ben"]["state"]) == ("failed", "idle")
    assert " failed " in next(line for line in cli("list-agents", agent="lea").stdout.splitlines() if "ann" in line)


def test_who_calls_may_be_said_in_the_words_of_janus(cli: Cli) -> None:
    environ = {"JANUS_AGENT_NAME": "lea"}
    assert cli("whoami", "--json", agent="", **environ).json["agentId"] == "lea"
    cli("run-agent", 'echo "<$JANUS_AGENT_NAME>"', "--agent-id", "ann", "--detach", agent="", **environ)
    ended(cli, "ann")
    assert until(lambda: cli.ok("logs", "ann", agent="lea")["lines"]) == ["<>"]
