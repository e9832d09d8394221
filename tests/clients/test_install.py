"""Hooks in the settings of clients: shown first, added, and removed without a trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from teams_cli.clients import known, own_entries
from teams_cli.store import json_edits
from tests.clients.homes import SETTINGS, Home, hooks_in, in_project, refused
from tests.support.cli import TIMEOUT, make_team, program, tree
from tests.support.terminal import Terminal

OTHERS = {
    "empty object": "{}",
    "nothing": "",
    "tabs": '{\n\t"model": "opus",\n\t"env": {"A": "\u00e4 \\u2028"}\n}',
    "four spaces": '{\n    "hooks": {\n        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}',
    "one line": '{"zeta": 1, "alpha": [1.50, 2e3, true, null], "hooks": {"enabled": true, "Other": []}}\n',
    "returns": '{\r\n  "theme": "dark"\r\n}\r\n',
}


def test_settings_of_a_fresh_home_are_made_and_removed(home: Home) -> None:
    for client in SETTINGS:
        before = tree(home.path)
        done = home.change("install", client)
        assert done["changed"] and done["path"] == str(home.file(client)) and done["diff"].startswith("--- /dev/null\n")
        assert sorted(hooks_in(home.file(client))) == sorted(known.get(client).hook_entries("teams hook"))
        assert home.change("install", client)["changed"] is False
        assert home.change("uninstall", client)["changed"] is True
        assert tree(home.path) == before
        assert home.change("uninstall", client)["changed"] is False


@pytest.mark.parametrize(
    ("client", "text"), [("claude", "\n"), ("gemini", " \r\n"), ("gemini", "// mine\n"), ("gemini", "/* mine */")]
)
def test_a_file_without_any_value_gets_our_entries_and_comes_back(home: Home, client: str, text: str) -> None:
    path = home.file(client, text)
    assert home.change("install", client)["changed"]
    written = path.read_text()
    assert written.startswith(text.strip()) and known.get(client).hook_command(sys.executable)[:20] in written
    home.change("uninstall", client)
    assert path.read_bytes() == text.encode()


@pytest.mark.slow
def test_what_is_there_stays_and_comes_back_byte_for_byte(home: Home) -> None:
    for text in OTHERS.values():
        path = home.file("claude", text)
        path.chmod(0o640)
        home.change("install", "claude")
        merged = json.loads(path.read_text())
        for key, value in json.loads(text or "{}").items():
            if key != "hooks":
                assert merged[key] == value
        assert any("say done" in command for command in hooks_in(path)["Stop"]) is ("say done" in text)
        home.change("install", "claude")
        ours = {event: sum(map(own_entries.is_our_hook, found)) for event, found in hooks_in(path).items() if found}
        expected = known.get("claude").hook_entries("teams hook")
        assert ours == {event: len(entry["hooks"]) for event, entry in expected.items()}
        assert path.stat().st_mode & 0o777 == 0o640
        home.change("uninstall", "claude")
        assert path.read_bytes() == text.encode() and path.stat().st_mode & 0o777 == 0o640


def test_rules_that_spare_the_dialogs_are_added_and_taken_out(home: Home) -> None:
    """The user's own rules stay, also if the user changed other settings in between."""
    allowed = '"allow": ["Bash(make:*)", "Bash(teams:*)"]'
    text = f'{{\n  "": "mine",\n  "permissions": {{\n    {allowed},\n    "deny": []\n  }}\n}}\n'
    path = home.file("claude", text)
    home.change("install", "claude")
    rules = ["Bash(make:*)", "Bash(teams:*)", "mcp__team"]
    assert json.loads(path.read_text())["permissions"] == {"allow": rules, "deny": []}
    path.write_text(path.read_text().replace('"deny": []', '"deny": ["WebFetch"]'))
    home.change("uninstall", "claude")
    assert path.read_text() == text.replace('"deny": []', '"deny": ["WebFetch"]')


COMMENTED = """\
{
   // the model of every day
   "model": "scripted/m1", /* not the large one */
   "mcp": {
      "docs": {"type": "local", "command": ["docs", "//"]}, // ours
   },
   "keybinds": {},
}
"""


def test_comments_and_indentation_stay(home: Home) -> None:
    path = home.path / ".config/opencode/opencode.json"
    path.parent.mkdir(parents=True)
    path.write_text(COMMENTED)
    diff = home.change("install", "opencode")["diff"]
    assert '+      "team": {' in diff and not [line for line in diff.splitlines() if line.startswith("-  ")]
    changed = path.read_text().replace("{\n   //", '{\n   "$schema": "https://opencode.ai/config.json",\n   //', 1)
    path.write_text(changed)
    assert home.change("install", "opencode")["changed"] is False
    home.change("uninstall", "opencode")
    assert path.read_text() == COMMENTED.replace("{\n", '{\n   "$schema": "https://opencode.ai/config.json",\n', 1)


SEVERAL_LINES = """\
{
  "theme": "dark" /* not the light one,
    which nobody can read */
}
"""


def test_nothing_is_put_into_a_comment_of_several_lines(home: Home) -> None:
    path = home.file("gemini", SEVERAL_LINES)
    home.change("install", "gemini")
    changed = path.read_text()
    assert changed.startswith(SEVERAL_LINES.removesuffix("\n}\n").replace('"dark"', '"dark",'))
    assert home.change("install", "gemini")["changed"] is False
    path.write_text(changed.replace('"dark", /*', '"dark", /* mine:'))
    home.change("uninstall", "gemini")
    assert path.read_text() == SEVERAL_LINES.replace("/*", "/* mine:")


def test_comments_that_were_written_beside_our_entries_stay(home: Home) -> None:
    path = home.file("gemini", '{\n  "theme": "dark"\n}\n')
    home.change("install", "gemini")
    text = path.read_text()
    for entry in ('  "hooks": {', '  "mcpServers": {'):
        text = text.replace(entry, f'  // of {entry[3]}: "not": "used",\n{entry}')
    text = text.replace('"dark",', '"dark", /* both\n  lines */').replace("\n}\n", ",\n  // the last\n}\n")
    path.write_text(text)
    home.change("uninstall", "gemini")
    assert path.read_text() == (
        '{\n  "theme": "dark", /* both\n  lines */\n  // of h: "not": "used",\n'
        '  // of m: "not": "used",\n  // the last\n}\n'
    )


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{\n  "our": 1,\n  // b\n  "b": 2\n}', '{\n  // b\n  "b": 2\n}'),
        ('{\n  "our": 1 // b\n  , "b": 2\n}', '{\n  // b\n   "b": 2\n}'),
        ('{"a": 1, // a\n "our": 1, "b": 2}', '{"a": 1, // a\n "b": 2}'),
        ('{"a": 1, // a\n "our": 1}', '{"a": 1 // a\n }'),
        ('{"a": 1,\n// b\n"our": 1, "b": 2}', '{"a": 1,\n// b\n "b": 2}'),
        ('{"a": 1, /* b\n*/ "our": 1}', '{"a": 1 /* b\n*/ }'),
        ('{"our": 1 // c\n,}', "{ // c\n}"),
        ('{"our": 1,\n// c\n}', "{\n// c\n}"),
    ],
)
def test_a_comment_is_never_taken_for_a_part_of_an_entry(text: str, left: str) -> None:
    changed = json_edits.without_member(text, ("our",))
    read = json.loads(json_edits.without_comments(text))
    del read["our"]
    assert json.loads(json_edits.without_comments(changed)) == read
    assert changed.split() == left.split()


def test_bytes_that_are_not_utf_8_stay(home: Home) -> None:
    before = b'{\n  "name": "Andr\xe9",\n  "emoji": "\xed\xa0\xbd"\n}\n'
    path = home.file("claude", "")
    path.write_bytes(before)
    home.change("install", "claude")
    assert path.read_bytes().startswith(before.removesuffix(b"\n}\n"))
    path.write_bytes(path.read_bytes().replace(b"name", b"nick"))
    home.change("uninstall", "claude")
    assert path.read_bytes() == before.replace(b"name", b"nick")


def test_print_shows_and_changes_nothing(home: Home) -> None:
    home.file("claude", "{}")
    before = tree(home.path)
    shown = home.cli("install", "claude", "--print")
    assert shown.status == 0 and "+++ " in shown.stdout and "PostToolBatch" in shown.stdout
    assert tree(home.path) == before and not home.cli.root.exists()
    assert home.cli("uninstall", "claude", "--print").stdout.endswith("nothing to change\n")


def test_settings_that_no_client_could_read_are_left_alone(home: Home) -> None:
    no_list = ['{"permissions": {"allow": null}}', '{"permissions": {"allow": {}}}']
    for text in ["{", "[]", "// mine\n{}", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"a": 1, "a": 2}', *no_list]:
        home.file("claude", text)
        answer = refused(home, "install", "claude")
        assert answer.status == 15 and str(home.file("claude")) in answer.stderr


def test_elsewhere_by_the_clients_own_variables(home: Home, tmp_path: Path) -> None:
    places = {"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "opencode": "OPENCODE_CONFIG_DIR"}
    for client, variable in places.items():
        answer = home.cli("install", client, "--json", **{variable: str(tmp_path / client)})
        assert answer.json["path"].startswith(str(tmp_path / client))
    xdg = home.cli("install", "opencode", "--json", XDG_CONFIG_HOME=str(tmp_path / "xdg")).json["path"]
    assert xdg.startswith(str(tmp_path / "xdg/opencode/"))


def test_the_loop_is_written_into_agents_md_and_taken_out(home: Home, tmp_path: Path) -> None:
    """The text around our block stays, even if it was written after the block."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("# Rules\n\nUse tabs.")
    in_project(home, project, "install", "claude", "--agents-md")
    text = (project / "AGENTS.md").read_text()
    assert text.startswith("# Rules\n\nUse tabs.\n\n<!-- teams: begin -->\n") and "teams join-team --claim" in text
    (project / "AGENTS.md").write_text(f"{text}\nNo emojis.\n")
    in_project(home, project, "uninstall", "claude")
    assert tree(project) == {"AGENTS.md": b"# Rules\n\nUse tabs.\n\nNo emojis.\n"}
    assert refused(home, "install", "claude", "--agents-md").status == 2


def test_the_line_breaks_of_agents_md_stay(home: Home, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    before = b"# Rules\r\n\r\nUse tabs.\r\n"
    (project / "AGENTS.md").write_bytes(before)
    in_project(home, project, "install", "claude", "--agents-md")
    changed = (project / "AGENTS.md").read_bytes()
    for after in (changed, changed.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")):  # as some editors store it
        (project / "AGENTS.md").write_bytes(after.replace(b"tabs", b"blanks"))
        in_project(home, project, "uninstall", "claude")
        assert (project / "AGENTS.md").read_bytes() == before.replace(b"tabs", b"blanks")


def test_a_link_out_of_a_project_is_not_followed(home: Home, tmp_path: Path) -> None:
    """A project may come from anybody, so its links must not lead us to the user's own files."""
    project, own = tmp_path / "project", home.file("claude", "{}")
    (project / ".claude").mkdir(parents=True)
    (project / ".claude/settings.json").symlink_to(own)
    assert "link out of the project" in in_project(home, project, "install", "claude", status=13)
    (project / ".codex").symlink_to(home.path)
    in_project(home, project, "install", "codex", status=13)
    assert own.read_text() == "{}" and tree(home.path) == {".claude": "directory", ".claude/settings.json": b"{}"}


def test_the_installed_command_answers(home: Home, tmp_path: Path) -> None:
    """The command in the settings works even in a directory with files named like modules."""
    cli = make_team(tmp_path / "root", "bob")
    cli.ok("send-message", "bob", "hi", agent="lea")
    home.change("install", "gemini")
    trap = tmp_path / "trap"
    trap.mkdir()
    for name in ("json", "teams_cli", "typing", "re"):
        (trap / f"{name}.py").write_text("raise SystemExit('trapped')")
    command = min({command for found in hooks_in(home.file("gemini")).values() for command in found}, key=len)
    event = json.dumps({"hook_event_name": "AfterTool"})
    options = {"env": cli.environ("bob"), "cwd": trap, "input": event, "timeout": TIMEOUT}
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, **options)
    assert (done.returncode, done.stderr) == (0, "") and "| hi" in done.stdout


def test_opencode_gets_a_plugin(home: Home) -> None:
    path = home.path / ".config/opencode/plugin/teams.js"
    before = tree(home.path)
    home.change("install", "opencode")
    (line,) = [line for line in path.read_text().splitlines() if line.startswith("const command")]
    assert json.loads(line.partition("= ")[2]) == known.get("opencode").hook_command(sys.executable)
    assert home.change("install", "opencode")["changed"] is False
    path.write_text(path.read_text() + "// changed\n")
    home.change("uninstall", "opencode")
    assert tree(home.path) == before
    path.parent.mkdir(parents=True)
    path.write_text("// somebody else's\n")
    assert refused(home, "install", "opencode").status == 2
    assert home.change("uninstall", "opencode")["changed"] is False and path.exists()


@pytest.mark.slow
def test_a_version_that_is_too_old_or_differs_is_named(home: Home, tmp_path: Path) -> None:
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    for client, version, what in (
        ("opencode", "2.0.32", "opencode 2.0.32 runs our plugin only in a server of its own"),
        ("claude", "1.0.9 (Claude Code)", "claude 1.0.9 is older than 2.1.197"),
        ("claude", "2.1.332 (Claude Code)", ""),
    ):
        program(tmp_path / "bin" / client, f"echo '{version}'\n")
        assert what in home.cli("install", client, PATH=path).stderr
        first = json.loads(home.cli("doctor", "--client", client, "--json", PATH=path).stdout)["findings"][0]
        assert (what in first["what"]) and first["level"] == ("warning" if what else "good")


def test_wrong_words(home: Home) -> None:
    assert refused(home, "install", "emacs").status == 2
    assert refused(home, "install", "claude", "--user", "--project").status == 2
    assert home.cli("install", "claude", HOME="").status == 2


def test_a_link_in_a_circle_is_refused(home: Home) -> None:
    path = home.file("claude", "{}")
    path.unlink()
    path.symlink_to(path)
    answer = refused(home, "install", "claude")
    assert answer.status == 13 and str(path) in answer.stderr


def test_a_damaged_note_of_what_was_before_is_told(home: Home) -> None:
    """If our note of the former settings is damaged, the settings are left as they are."""
    home.change("install", "claude")
    for kept in ["[1]", '{"a": 1}', '{"before": null, "after": 5, "made": []}', '{"after": "x"}']:
        for path in (home.cli.root / "installed").glob("*.json"):
            path.write_text(kept)
        for command in ("install", "uninstall"):
            answer = refused(home, command, "claude")
            assert answer.status == 15 and "installed" in answer.stderr


@pytest.mark.slow
def test_several_installations_at_once(home: Home) -> None:
    home.file("claude", '{"model": "opus"}')
    started = [home.cli.start("install", "claude", "--json") for _ in range(6)]
    for process in started:
        stdout, stderr = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, (stdout, stderr)
    assert home.change("install", "claude")["changed"] is False
    home.change("uninstall", "claude")
    assert home.file("claude").read_text() == '{"model": "opus"}'


@pytest.mark.parametrize(("said", "made"), [("n", False), ("y", True)])
def test_at_a_terminal_installing_asks_first(home: Home, said: str, made: bool) -> None:
    terminal = Terminal(home.cli, "install", "claude", agent="", has_jobs=made)
    terminal.until("[y/N]")
    assert "+++ " in terminal.text and not home.file("claude").exists()
    terminal.type(f"{said}\n")
    assert terminal.end() == 0
    assert home.file("claude").exists() is made
    assert ("next: restart the client" if made else "left as it is") in terminal.text
