"""What agents may do: chosen by call, profile and team, and refused where a client can't be held to it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from teams_cli.clients import known, permissions, profiles
from tests.support.cli import Cli, make_team, program

OWN = {
    "start": ["sh", "-c", 'echo "$0 $TEAMS_PERMISSIONS $MORE"', "{permissions}"],
    "resume": ["sh"],
    "modes": {"ask": "it has no voice", "edit": ["pen"], "all": {"words": ["axe"], "set": {"MORE": "fire"}}},
}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = make_team(tmp_path / "root", "bob")
    configure(made, {"own": OWN, "free": {**OWN, "permissions": "all"}})
    return made


def configure(cli: Cli, harness: object) -> None:
    (cli.root / "config.json").write_text(json.dumps({"harness": harness}))
    cli.ok("whoami", agent="lea")  # notes that the file is valid


def run(cli: Cli, *words: str) -> str:
    """Start an agent, and return what it prints."""
    return cli("run-agent", "x", *words, "--json", agent="lea").json["output"].strip()


@pytest.mark.slow
def test_edit_is_the_default_and_call_beats_profile_beats_team(cli: Cli) -> None:
    assert run(cli, "--harness", "own") == "pen edit"
    assert run(cli, "--harness", "own", "--permissions", "all") == "axe all fire"
    assert run(cli, "--harness", "free") == "axe all fire"
    assert run(cli, "--harness", "free", "--permissions", "edit") == "pen edit"
    cli.ok("set", "permissions", "all", agent="lea")
    assert run(cli, "--harness", "own") == "axe all fire"
    assert cli.refused("set", "permissions", "most", agent="lea") == (2, "invalid_value")


@pytest.mark.slow
def test_what_a_client_can_not_be_held_to_is_refused_with_why(cli: Cli) -> None:
    answer = cli("run-agent", "x", "--harness", "own", "--permissions", "ask", "--json", agent="lea")
    assert answer.status == 2 and "it has no voice" in answer.error["message"]
    assert "--permissions edit or all" in answer.error["hint"]
    cli.ok("set", "permissions", "ask", agent="lea")
    assert cli.refused("run-agent", "x", "--harness", "own", agent="lea") == (2, "invalid_value")
    answer = cli("run-agent", "x", "--permissions", "edit", "--json", agent="lea")
    assert answer.status == 2 and "shell" in answer.error["message"]
    assert cli("run-agent", "echo out", "--json", agent="lea").json["output"] == "out\n"


def test_codex_has_the_network_in_its_sandbox_for_a_database_alone(cli: Cli, tmp_path: Path) -> None:
    codex = program(tmp_path / "bin/codex", f"printf '%s\\n' \"$@\" > {tmp_path}/said\n")
    cli("run-agent", "x", "--harness", "codex", agent="lea", PATH=f"{codex.parent}:{os.environ['PATH']}")
    said = (tmp_path / "said").read_text(encoding="utf-8").splitlines()
    assert "sandbox_workspace_write.network_access=false" in said
    assert profiles.of_place("/r", {"TEAMS_STORE": "postgresql://h/d"})["network"] == "true"


def test_nothing_that_skips_every_approval_or_sandbox_is_in_the_words_of_edit() -> None:
    for client in known.installable():
        profile = profiles.get(client, None)
        for level in ("ask", "edit"):
            if isinstance(profile.modes[level], str):
                continue
            mode = permissions.mode(profile, level)
            words = profiles.fill(profile.start, {}, {"permissions": mode.words})
            said = " ".join([*words, *mode.set.values()])
            for skips in ("yolo", "bypassPermissions", "dangerously", "danger-full-access", "--auto "):
                assert skips not in f"{said} "


def test_only_calls_of_teams_need_no_permission() -> None:
    for tool, input, ours in [
        ("mcp__team__claim_task", {}, True),
        ("mcp__teams__rm", {}, False),
        ("Bash", {"command": "teams announce 'a; b'"}, True),
        ("Bash", {"command": 'teams reply 3 "a (b) & c"'}, True),
        ("Bash", {"command": "teams announce a; rm -r ."}, False),
        ("Bash", {"command": "teams announce a && rm -r ."}, False),
        ("Bash", {"command": "teams announce $(rm -r .)"}, False),
        ("Bash", {"command": 'teams announce "`rm -r .`"'}, False),
        ("Bash", {"command": "teams announce a#b; rm -r ."}, False),
        ("Bash", {"command": "teams announce 'a'#b && rm -r ."}, False),
        ("Bash", {"command": "teams announce a#b"}, True),
        ("Bash", {"command": "teams whoami > /etc/passwd"}, False),
        ("Bash", {"command": "teams whoami\nrm -r ."}, False),
        ("Bash", {"command": "teams 'unclosed"}, False),
        ("Bash", {"command": "teamsx"}, False),
        ("Write", {"file_path": "teams"}, False),
        ("Bash", None, False),
    ]:
        assert permissions.is_ours(tool, input) is ours


def test_the_transcript_in_the_documentation_is_true(cli: Cli) -> None:
    document = Path("docs/permissions.md").read_text(encoding="utf-8")
    command, said = re.findall(r"^```console\n\$ teams (.*?)\n(.*?)```$", document, re.MULTILINE | re.DOTALL)[0]
    assert cli(*command.split(), agent="lea").stdout == said
    harness = json.loads(re.findall(r"^```json\n(.*?)```$", document, re.MULTILINE | re.DOTALL)[0])
    configure(cli, harness["harness"])
    assert "can't ask" in cli("run-agent", "x", "--harness", "mine", agent="lea").stderr
