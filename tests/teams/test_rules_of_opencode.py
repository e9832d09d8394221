"""What OpenCode's own configuration says of roles and tools, and who makes teams by what the files say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.cli import make_team

SPECIALIST = {
    "extends": "team-member",
    "skill": ["team-coordination", "security-review"],
    "description": "Security-focused team member",
}
OTHERS = {"build": {"mode": "primary", "prompt": "You build."}}


def opencode(home: Path, text: str | dict[str, Any], name: str = "opencode.json") -> None:
    directory = home / ".config/opencode"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text if isinstance(text, str) else json.dumps(text))


def test_opencode_s_own_file_lies_below_the_user_s(no_real_home: Path, tmp_path: Path) -> None:
    """Its rules and roles count; of what `config.json` says too, that stands; what is OpenCode's own is passed over."""
    cli = make_team(tmp_path / "root", "bob")
    rules = {"send-message": {"*": "deny"}, "claim-task": "deny", "odd": 7}
    opencode(no_real_home, {"permission": {"edit": "allow", "tool": rules}, "agent": {"qa": SPECIALIST, **OTHERS}})
    assert cli.refused("send-message", "lea", "hi", agent="bob") == (13, "not_allowed")
    assert cli.refused("claim-task", "--next", agent="bob") == (13, "not_allowed")
    assert cli.refused("join-team", "--role", "build", agent="zoe") == (2, "invalid_value")
    assert cli.ok("join-team", "--role", "qa", agent="sue")["role"] == "qa"
    (cli.root / "config.json").write_text(
        json.dumps({"permission": {"tool": {"send-message": {"team-member": "allow"}}}})
    )
    assert cli.ok("send-message", "lea", "hi", agent="bob")["id"] == "msg-1"
    assert cli.refused("send-message", "bob", "hi", agent="lea") == (13, "not_allowed")
    cli.ok("set", "--user", "broadcast", "agents", agent="human")
    assert "claim-task" not in (cli.root / "config.json").read_text()


def test_opencode_s_file_beside_the_usual_root(no_real_home: Path) -> None:
    """With comments, and commas before an end."""
    opencode(
        no_real_home,
        '{ // mine\n "permission": {"tool": {"announce": {"*": "deny",},}, /* "edit": "deny" */ "bash": "ask", }, }',
        "opencode.jsonc",
    )
    cli = make_team(no_real_home / ".config/opencode/opencode-teams", "bob")
    assert cli("announce", "// busy", agent="bob", TEAMS_HOME="").status == 13
    opencode(no_real_home, "{ not JSON", "opencode.jsonc")
    assert cli("announce", "// busy", agent="bob", TEAMS_HOME="").status == 0


def test_words_for_all_roles_and_for_all_tools(tmp_path: Path) -> None:
    """What is said of a tool by its name comes before what is said of all; looking can be denied too."""
    cli = make_team(tmp_path / "root", "bob")
    rules: dict[str, Any]
    for rules, refused in (
        ({"claim-task": "deny"}, "claim-task --next"),
        ({"*": "deny", "claim-task": {"team-leader": "deny"}}, "claim-task --next"),
        ({"*": {"team-member": "deny"}, "claim-task": {"team-member": "allow"}}, "announce busy"),
        ({"get-tasks": "deny"}, "get-tasks"),
    ):
        (cli.root / "config.json").write_text(json.dumps({"permission": {"tool": rules}}))
        cli.ok("settings", agent="human")  # after which it is known that the file is of the form
        assert cli.refused(*refused.split(), agent="bob") == (13, "not_allowed")


def test_a_refusal_names_those_whom_the_rules_allow_it(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    (cli.root / "config.json").write_text('{"permission": {"tool": {"send-message": {"team-member": "deny"}}}}')
    hint = cli("send-message", "lea", "hi", "--json", agent="bob").error["hint"]
    assert hint == "Allowed to: team-leader, task-manager, human."


def test_members_make_no_teams_whatever_they_say_of_themselves(tmp_path: Path) -> None:
    """Their role is that of the files; the environment can only take from it."""
    cli = make_team(tmp_path / "root", "bob")
    assert cli.refused("spawn-team", "second", agent="bob") == (13, "not_allowed")
    assert cli("spawn-team", "second", agent="bob", team="", TEAMS_AGENT_TYPE="leader").status == 13
    assert cli("spawn-team", "second", agent="lea", TEAMS_AGENT_TYPE="member").status == 13
    assert cli.ok("spawn-team", "second", agent="lea")["leader"] == "lea"
    cli.ok("join-team", "second", agent="bob", team="second")
    cli.ok("leave-team", agent="bob", team="second")
    cli.ok("leave-team", agent="bob")
    assert cli.ok("spawn-team", "third", agent="bob")["leader"] == "bob"


def test_an_agent_is_told_what_its_role_makes_of_it(tmp_path: Path) -> None:
    """In `whoami`, in its first brief, and by its client's hook when that begins."""
    cli = make_team(tmp_path / "root")
    entry = {**SPECIALIST, "workflow": "code-review"}
    (cli.root / "config.json").write_text(json.dumps({"agent": {"security": entry}}))
    cli.ok("join-team", "--role", "security", agent="sue")
    about = "Your role: security: Security-focused team member. Your skills: security-review, team-coordination."
    about += " You follow the workflow code-review: teams list-workflows has its file."
    assert about in cli("whoami", agent="sue").stdout
    assert cli.ok("whoami", agent="sue")["skills"] == ["security-review", "team-coordination"]
    started = json.dumps({"hook_event_name": "SessionStart", "session_id": "s"}).encode()
    assert about in cli("hook", "claude", agent="sue", stdin=started).stdout
    assert about in cli("brief", agent="sue").stdout and about not in cli("brief", agent="sue").stdout


def test_doctor_names_what_was_meant_and_does_not_count(no_real_home: Path, tmp_path: Path) -> None:
    """A misspelt word would else allow what it was to forbid, and nobody would know."""
    cli = make_team(tmp_path / "root")
    opencode(no_real_home, {"permission": {"tool": {"send-message": "denied", "announce": {"*": "deny"}}}})
    warning, refused = cli.ok("doctor")["findings"]
    assert warning["level"] == "warning" and warning["where"].endswith("opencode.json: permission.tool.send-message")
    assert refused["where"].endswith("opencode.json: permission.tool.announce")
    assert refused["remedy"] == f"Move it to {cli.root}/config.json."
    opencode(no_real_home, '{"permission": {"tool": ')
    (warning,) = cli.ok("doctor")["findings"]
    assert "it is not valid JSON" in warning["what"]
