"""Agents with permissions below `all` may run the commands that their work needs, and no others."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from teams_cli import commands
from teams_cli.commands import held
from teams_cli.commands.call import Call
from teams_cli.commands.declaration import Parameter
from teams_cli.environment import HELD
from teams_cli.errors import NotAllowed
from teams_cli.teams.config import Config
from teams_cli.teams.permission import Caller
from tests.support.agents import NEEDS_PROC, place, team_of_agents
from tests.support.cli import ALPHA, Cli, add_tasks, make_team, program
from tests.support.mcp_client import Line
from tests.support.serving import serving
from tests.support.waits import until

WHY = "its client does not allow it"
CLIENT = {
    "start": ["sh", "{prompt}"],
    "resume": ["true"],
    "modes": {"ask": [], "edit": [], "all": []},
}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = make_team(tmp_path / "root", "bob", "ann")
    made.agent = "bob"
    made.more[HELD] = "edit"
    return made


def value_of(parameter: Parameter) -> Any:
    """A value of the parameter that is not its default."""
    one: Any = True if parameter.flag else parameter.choices[-1] if parameter.choices else parameter.type("7")
    return (one,) if parameter.many else one


@pytest.mark.parametrize("level", ["ask", "edit"])
def test_every_command_and_every_option_is_open_by_its_declaration_or_refused(cli: Cli, level: str) -> None:
    environ = cli.environ(TEAMS_PERMISSIONS=level)
    call = Call(cli.store(), Config(), Caller("bob"), ALPHA, environ=environ, directory=str(cli.root))
    for command in commands.every().values():
        for parameter in (None, *command.own):
            values = {each.name: each.default for each in command.own}
            if parameter:
                values[parameter.name] = value_of(parameter)
            opened = (command.held or "").split()
            if command.held is not None and (parameter is None or parameter.name in opened):
                held.allowed_values(command, call, values)
                continue
            with pytest.raises(NotAllowed, match=WHY):
                held.allowed_values(command, call, values)


REFUSED = [
    ("create-task", "x", "--check", "touch pwned"),
    ("update-task", "1", "--evidence", "/etc/hostname"),
    ("get-evidence", "1", "x", "--out", "new"),
    ("join-team", "--as", "second"),
    ("send-message", "lea", "I am ann", "--as", "ann"),
    ("worktree", "remove", "ann", "--force"),
    ("get-tasks", "--root", "/own"),
    ("get-tasks", "--store", "postgresql://localhost/teams"),
    ("spawn", "echo out", "--harness", "shell"),
    ("spawn", "x", "--harness", "mine", "--permissions", "all"),
    ("spawn", "x", "--harness", "free"),
    ("set", "permissions", "all"),
    ("announce", "I am the person", "--as", "human"),
]


def test_each_way_out_of_a_level_is_refused(cli: Cli) -> None:
    for words in REFUSED:
        answer = cli(*words)
        assert answer.status == 13 and WHY in answer.stderr, answer
        assert "teams ask-others --human QUESTION" in answer.stderr
    cli.more[HELD] = "ask"
    assert "write a file with --out" in cli("get-evidence", "1", "x", "--out", "new").stderr


def test_a_held_agent_that_left_comes_back_in_no_other_role(cli: Cli) -> None:
    with Line(cli, "bob") as line:
        line.hello()
        line.use("leave_team")
        line.read()
        line.use("join_team", memberInfo={"agentId": "bob", "agentType": "task-manager", "agentName": "lea"})
        assert "'role': 'team-member'" in str(line.read())
        line.use("create_task", title="x")
        assert "not_allowed" in str(line.read())


@NEEDS_PROC
@pytest.mark.slow
def test_an_agent_is_held_whatever_its_processes_say_and_wherever_they_are(tmp_path: Path) -> None:
    """Every process below the agent's keeper is held, and so is one that outlives its parents."""
    cli = team_of_agents(tmp_path)
    (cli.root / "config.json").write_text(json.dumps({"harness": {"mine": CLIENT}}))
    own, here = tmp_path / "own", place(cli)
    (here / "secret").symlink_to("/etc/hostname")
    home = f"TEAMS_HOME={cli.root} TEAMS_TEAM={ALPHA}"
    attempts = [
        "$T create-task x --check true",
        f"env -i {home} TEAMS_AGENT_ID=ann $T create-task x --check true",
        f"env -i {home} TEAMS_AGENT_ID=lea $T send-message ann hi",
        f"env -i {home} $T join-team",
        f"TEAMS_PERMISSIONS=all TEAMS_HOME={own} $T spawn-team evil",
        f"XDG_CONFIG_HOME={own} $T get-tasks",
        "cd / && $T update-task 1 --evidence etc/hostname",
        "$T update-task 1 --evidence secret",
        "$T spawn x --cwd /",
        f"echo {{}} | env -i {home} TEAMS_AGENT_ID=ann $T hook claude --ask",
    ]
    allowed = ["$T update-task 1 --evidence file", "$T get-tasks"]
    lines = [f"({line}) >>$D/said 2>&1; echo $? >>$D/statuses" for line in (*attempts, *allowed)]
    orphan = f"(setsid env -i {home} D=$D sh -c '(sleep 0.3; $D/escape; touch $D/over) &' &) >/dev/null 2>&1"
    program(here / "escape", f"{cli.more['T']} create-task x --check true --as lea 2>$D/escaped\n")
    (here / "file").write_text("so it is")
    (here / "work").write_text("\n".join([*lines, orphan, "until test -e $D/over; do sleep 0.05; done"]))
    add_tasks(cli, "first", owner="ann")
    words = ("--harness", "mine", "--permissions", "edit", "--agent-id", "ann", "--cwd", str(here))
    done = cli("run-agent", "work", *words, agent="lea")
    assert done.status == 0, done
    statuses = (here / "statuses").read_text().split()
    said = (here / "said").read_text()
    assert statuses == ["13"] * (len(attempts) - 1) + ["2"] + ["0"] * len(allowed), said
    assert WHY in (here / "escaped").read_text()


@NEEDS_PROC
@pytest.mark.slow
def test_git_obeys_no_repository_that_a_held_agent_made(tmp_path: Path) -> None:
    """Checks and worktrees run no command from the configuration of a repository that the agent made."""
    cli = team_of_agents(tmp_path)
    (cli.root / "config.json").write_text(json.dumps({"harness": {"mine": CLIENT}}))
    top, ran = place(cli), tmp_path / "ran"
    for words in ("init -q", "-c user.name=n -c user.email=e commit -q --allow-empty -m first"):
        subprocess.run(["git", "-C", str(top), *words.split()], check=True)
    script = f"""
    git init -q in; cd in; echo 1 >a; echo '* filter=x' >.gitattributes; git add .
    git -c user.name=n -c user.email=e commit -qm a
    git config core.fsmonitor 'touch {ran}'; git config filter.x.smudge 'touch {ran}; cat'
    $T claim-task 1
    $T update-task 1 --status completed
    $T spawn work --worktree
    cd ..
    $T spawn work --worktree --cwd in
    """
    (top / "work").write_text(script)
    cli.ok("create-task", "t", "--check", "true", agent="lea")
    words = ("--harness", "mine", "--permissions", "edit", "--agent-id", "ann", "--cwd", str(top))
    said = cli("run-agent", "work", *words, agent="lea")
    assert not ran.exists(), said
    assert cli.ok("show-task", "1")["status"] == "completed" and "may not give --cwd in" in said.stdout


@NEEDS_PROC
@pytest.mark.slow
def test_an_agent_is_held_over_mcp_and_http_too(tmp_path: Path) -> None:
    """Over MCP the processes above the server show that an agent is held, over HTTP its session."""
    cli = team_of_agents(tmp_path, "bob")
    (cli.root / "config.json").write_text(json.dumps({"harness": {"mine": CLIENT}}))
    cli.more[HELD] = "edit"
    with Line(cli, "bob") as line:
        line.hello()
        line.use("set", key="harness", value="mine")
        assert WHY in str(line.read())
        line.use("create_task", title="x", check="true")
        assert WHY in str(line.read())
        line.send("tools/list")
        assert "define_role" not in str(line.read())
    del cli.more[HELD]
    (place(cli) / "work").write_text("touch $D/ready; until test -e $D/over; do sleep 0.05; done")
    words = ("--harness", "mine", "--agent-id", "ann", "--cwd", str(place(cli)), "--detach")
    cli.ok("run-agent", "work", *words, agent="lea")
    until(lambda: (place(cli) / "ready").exists())
    with serving(cli) as server:
        for agent, status in (("ann", 403), ("lea", 200)):
            answer = server.ask("POST", f"/api/create-task?as={agent}", {"title": "x", "check": "true"})
            assert answer.status == status, answer
    (place(cli) / "over").touch()
    cli("wait", "--agent", "ann", agent="lea")
