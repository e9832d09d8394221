"""A client that runs below the client of a member is not that member, whatever it inherits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.agents import NEEDS_PROC
from tests.support.cli import COMMAND, TIMEOUT, Cli, make_team, program

pytestmark = NEEDS_PROC

CLIENT = """
import json, subprocess, sys
for kind, *words in json.loads(sys.argv[-1]):
    given = None
    if kind == "hook":
        given, words = json.dumps(words[1]), [*{command}, "hook", words[0]]
    done = subprocess.run(words, input=given, capture_output=True, text=True, start_new_session=kind == "leave")
    print(json.dumps([kind, done.stdout + done.stderr]) if kind != "run" else done.stdout, flush=True)
"""
"""A client that takes the steps it is given: it runs hooks, commands and other clients."""
MODELS = {
    "claude": ("UserPromptSubmit", "SessionEnd", ["-p"]),
    "codex": ("UserPromptSubmit", "SessionEnd", ["exec"]),
    "gemini": ("BeforeAgent", "SessionEnd", ["-p"]),
    "qwen": ("UserPromptSubmit", "SessionEnd", ["-p"]),
    "opencode": ("UserPromptSubmit", "TerminalState", ["run"]),
}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = make_team(tmp_path / "root", "bob")
    for name in MODELS:
        program(tmp_path / "bin" / name, f"#!{sys.executable}\n{CLIENT.replace('{command}', repr(COMMAND))}")
    made.more["PATH"] = f"{tmp_path}/bin:{os.environ['PATH']}"
    return made


def hook(client: str, event: str, session: str, **more: str) -> list[object]:
    return ["hook", client, {"hook_event_name": event, "session_id": session, **more}]


def run(cli: Cli, directory: Path, agent: str, steps: list[object]) -> list[str]:
    """Run a client that takes these steps, and return what each step printed."""
    environ = cli.environ(agent, None if agent else "")
    done = subprocess.run(
        ["claude", json.dumps(steps)], env=environ, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert done.returncode == 0, done
    return [str(json.loads(line)[1]) for line in done.stdout.splitlines() if line]


def nested(client: str) -> list[object]:
    begins, ends, words = MODELS[client]
    steps = [hook(client, begins, client, prompt="x"), hook(client, ends, client, reason="other", state="idle")]
    return ["run", client, *words, json.dumps(steps)]


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["bob", ""], ids=["by its name", "by its directory"])
def test_a_client_below_that_of_a_member_is_nobody(cli: Cli, tmp_path: Path, agent: str) -> None:
    cli.ok("here", "alpha", agent="lea") if not agent else None
    name = agent or "agentA"
    steps = [
        hook("claude", "SessionStart", "outer", source="startup"),
        ["command", *COMMAND, "send-message", name, "for the outer one alone", "--as", "lea", "--team", "alpha"],
        *map(nested, MODELS),
        ["command", *COMMAND, "list-agents", "--json", "--as", "lea", "--team", "alpha"],
        hook("claude", "PostToolBatch", "outer"),
    ]
    begun, _, *inner, listed, told = run(cli, Path.cwd(), agent, steps)
    assert f"You are {name}" in begun and "for the outer one alone" in told
    assert inner == [""] * (2 * len(MODELS))
    rows = {row["name"]: row["state"] for row in json.loads(listed)["agents"]}
    assert rows[name] != "gone" and set(rows) <= {"lea", "bob", name}


@pytest.mark.slow
def test_a_nested_client_that_outlives_its_shell_is_nobody_too(cli: Cli, tmp_path: Path) -> None:
    """A client that a member's client has left behind is no member, although it inherited a name."""
    alone = json.dumps([hook("claude", "UserPromptSubmit", "inner", prompt="x")])
    script = f"(claude -p '{alone}' >{tmp_path}/said; touch {tmp_path}/over) & exit"
    steps = [
        hook("claude", "SessionStart", "outer", source="startup"),
        ["command", *COMMAND, "send-message", "bob", "for the outer one alone", "--as", "lea"],
        ["leave", "sh", "-c", f"setsid sh -c {json.dumps(script)} >/dev/null 2>&1 </dev/null"],
        ["command", "sh", "-c", f"until test -e {tmp_path}/over; do sleep 0.05; done"],
        hook("claude", "PostToolBatch", "outer"),
    ]
    told = run(cli, tmp_path, "bob", steps)[-1]
    assert json.loads((tmp_path / "said").read_text()) == ["hook", ""] and "for the outer one alone" in told
