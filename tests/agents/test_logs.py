"""The output of agents: showing it, following it, and removing what is old."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teams_cli.agents import logs
from tests.support.agents import detach, ended
from tests.support.cli import ALPHA, Cli


@pytest.mark.slow
def test_the_last_lines_that_an_agent_printed(cli: Cli) -> None:
    detach(cli, "ann", "seq 5; echo oh >&2")
    ended(cli, "ann")
    assert cli.ok("logs", "ann", agent="lea") == {"agent": "ann", "lines": ["1", "2", "3", "4", "5", "oh"]}
    assert cli.ok("logs", "ann", "--lines", "2", agent="lea")["lines"] == ["5", "oh"]
    assert cli.ok("logs", "ann", "-n", "0", agent="lea")["lines"] == []
    assert cli("logs", "ann", "-n", "1", agent="lea").stdout == "  oh\n"
    assert cli.refused("logs", "nobody", agent="lea") == (10, "agent_not_found")
    assert cli.refused("logs", "lea", agent="lea") == (10, "agent_not_found")
    assert cli.refused("logs", "ann", "-n", "-1", agent="lea")[0] == 2


@pytest.mark.slow
def test_the_output_of_an_agent_on_another_machine_is_not_taken_for_empty(on_postgres: str, tmp_path: Path) -> None:
    here, there = (Cli(tmp_path / name, team=ALPHA, TEAMS_HOST=name) for name in ("here", "there"))
    here.ok("spawn-team", ALPHA, agent="lea")
    assert there("run-agent", "echo done", "--agent-id", "ann", agent="lea").status == 0
    assert there.ok("logs", "ann", agent="lea")["lines"] == ["done"]
    refused = here("logs", "ann", agent="lea")
    assert refused.status == 11 and "teams recall ann --output" in refused.stderr
    assert "done" in here("recall", "ann", "--output", agent="lea").stdout


def test_an_agent_is_followed_until_it_is_done(cli: Cli) -> None:
    script = 'echo "turn $TEAMS_RESUME"; while [ ! -e "$D/go" ]; do sleep 0.05; done; echo gone; printf end'
    detach(cli, "ann", script)
    follower = cli.start("logs", "ann", "--follow", "--json", agent="lea")
    lines: list[str] = []
    while "turn " not in lines:
        lines += json.loads(follower.stdout.readline())["lines"]
    cli.ok("send-message", "ann", "go on", agent="lea")
    Path(cli.more["D"], "go").touch()
    rest, _ = follower.communicate(timeout=60)
    lines += [line for part in rest.splitlines() for line in json.loads(part)["lines"]]
    assert follower.returncode == 0 and lines == ["turn ", "gone", "end", "turn 1", "gone", "end"]


def of_turns(cli: Cli) -> list[int]:
    found = (cli.root / "logs" / ALPHA).glob("ann.*.out")
    return sorted(int(path.name.split(".")[1]) for path in found)


def test_logs_of_old_turns_are_removed_when_a_turn_is_over(cli: Cli) -> None:
    detach(cli, "ann", "echo one")
    ended(cli, "ann")
    store = cli.store()
    for turn in range(1, 151):
        for part in ("out", "err", "messages.json"):
            Path(f"{logs.turn_of(store, ALPHA, 'ann', turn)}.{part}").write_text(f"{turn}\n")
    logs.rotate(store, ALPHA, "ann", 150)
    assert of_turns(cli) == list(range(51, 151))
    assert logs.tail(store, ALPHA, "ann", 150, 4) == ["149", "149", "150", "150"]


def test_the_logs_of_an_agent_have_bounded_room(cli: Cli) -> None:
    """A turn that prints too much keeps the end of its output, and the logs of earlier turns are removed."""
    printing = f'head -c {logs.ALL} /dev/zero | tr "\\0" x; echo "the end"'
    detach(cli, "ann", f'if [ -n "$TEAMS_RESUME" ]; then {printing}; fi; echo')
    ended(cli, "ann")
    assert of_turns(cli) == [1]
    cli.ok("send-message", "ann", "go on", agent="lea")
    ended(cli, "ann", 2)
    assert of_turns(cli) == [2]
    path = cli.root / "logs" / ALPHA / "ann.2.out"
    assert path.stat().st_size == logs.ALL and path.read_bytes().endswith(b"xthe end\n\n")
    assert path.stat().st_mode & 0o777 == 0o600


def test_logs_go_with_their_agent(cli: Cli) -> None:
    detach(cli, "ben", "echo hi")
    ended(cli, "ben")
    detach(cli, "ann", "$T leave-team; echo bye")
    ended(cli, "ann")
    kept = {path.name for path in (cli.root / "logs" / ALPHA).iterdir()}
    assert kept == {"ben.log", "ben.1.out", "ben.1.err", "ben.1.messages.json"}
    cli.ok("leave-team", agent="ben")
    assert list((cli.root / "logs" / ALPHA).iterdir()) == []
    assert cli.ok("logs", "ann", agent="lea")["lines"] == []
