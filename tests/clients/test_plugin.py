"""The plugin: its committed files are up to date, and the clients' own commands install it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.homes import Home
from tests.support.cli import program, tree

TOP = Path(__file__).parents[2]
SKILL = TOP / "plugins/teams/skills/teams/SKILL.md"
FAKE = """\
#!/bin/sh
# A client that notes what its command for plugins is told, and leaves its settings as Claude Code 2.1.332 does.
if [ "$1" = --version ]; then echo 2.1.332; exit; fi
if [ "$2" = list ]; then grep -qs '"a"' "$HOME/.claude/settings.json" && echo teams@teams; exit; fi
echo "$*" >> "$HOME/ran"
case "$*" in
*" add "*|*" install "*) echo '{"model": "opus", "enabledPlugins": {"a": true}}' > "$HOME/.claude/settings.json";;
*) echo '{"model": "opus", "enabledPlugins": {}, "extraKnownMarketplaces": {}}' > "$HOME/.claude/settings.json";;
esac
"""


def test_what_is_committed_is_what_the_source_makes(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "plugins.generate", str(tmp_path)]
    subprocess.run(words, cwd=TOP, env={**os.environ, "PYTHONPATH": str(TOP)}, check=True)
    made = {path: data for path, data in tree(tmp_path).items() if data != "directory"}
    assert made == {path: (TOP / path).read_bytes() for path in made}
    for place in ("plugins/teams", "plugins/portable"):
        assert {f"{place}/{path}" for path, data in tree(TOP / place).items() if data != "directory"} <= made.keys()


def clients_on(place: Path, claude: str) -> str:
    """A PATH with a client of that text, and with the `teams` of the installation that runs the test."""
    program(place / "claude", claude)
    (place / "teams").symlink_to(Path(sys.executable).parent / "pytest")  # a program is recognized by its directory
    return f"{place}:{os.environ['PATH']}"


@pytest.mark.slow
def test_the_clients_own_command_installs_and_removes_the_plugin(home: Home, tmp_path: Path) -> None:
    """Hooks in the client's settings are removed first, and in the end the settings are what they were."""
    path = clients_on(tmp_path / "bin", FAKE)
    text = '{\n   "model": "opus"\n}'
    settings = home.file("claude", text)
    before = tree(home.path)
    home.change("install", "claude")
    shown = home.cli("install", "claude", "--plugin", "--print", PATH=path)
    assert shown.stdout.startswith("would run: claude plugin marketplace add /") and "hooks" in settings.read_text()
    done = home.cli("install", "claude", "--plugin", "--json", PATH=path).json
    assert done["changed"] and home.cli("install", "claude", "--plugin", "--json", PATH=path).json["changed"] is False
    assert home.cli("install", "claude", "--json", PATH=path).json["changed"] is False
    ran = (home.path / "ran").read_text().splitlines()
    assert ran == [f"plugin marketplace add {done['path']}", "plugin install teams@teams"]
    assert json.loads(settings.read_text())["permissions"] == {"allow": ["Bash(teams:*)", "mcp__plugin_teams_team"]}
    assert "hooks" not in settings.read_text()
    assert home.cli("uninstall", "claude", "--json", PATH=path).json["changed"] is True
    (home.path / "ran").unlink()
    assert tree(home.path) == before
    assert home.cli("install", "gemini", "--plugin", PATH=path).status == 2
    assert "not on PATH" in home.cli("install", "claude", "--plugin", PATH="/usr/bin:/bin").stderr


def test_the_plugin_is_installed_where_client_and_program_can_have_it(home: Home, tmp_path: Path) -> None:
    """If the plugin can't be installed, the client's settings are changed; an older plugin is replaced."""
    path = clients_on(tmp_path / "bin", FAKE)
    settings = home.file("claude", '{"model": "opus"}\n')
    before = tree(home.path)
    home.change("install", "claude", "--user")
    assert "hooks" in settings.read_text()
    assert home.cli("install", "claude", "--json", PATH=path).json["changed"] is False
    home.change("uninstall", "claude")
    assert tree(home.path) == before
    done = home.cli("install", "claude", "--json", PATH=path).json
    assert done["changed"] and "plugin install teams@teams" in done["commands"][1]
    record = home.cli.root / "installed/claude.plugin"
    record.write_text(json.dumps({"files": json.loads(record.read_text())["files"]}))
    (home.path / "ran").unlink()
    assert home.cli("install", "claude", "--json", PATH=path).json["changed"]
    ran = [line.split()[1] for line in (home.path / "ran").read_text().splitlines()]
    assert ran == ["uninstall", "marketplace", "marketplace", "install"]
    assert home.cli("uninstall", "claude", "--json", PATH=path).json["changed"]
    (home.path / "ran").unlink()
    assert tree(home.path) == before
    (tmp_path / "bin/claude").write_text("#!/bin/sh\n[ $1 = --version ] && echo 2.1.332\nexit 0\n")
    answer = home.cli("install", "claude", PATH=path)
    assert "claude plugin list does not show the plugin. Its settings are changed instead" in answer.stderr
    assert "hooks" in settings.read_text()
    home.change("uninstall", "claude")
    (tmp_path / "bin/claude").write_text(FAKE)
    (tmp_path / "bin/teams").unlink()
    program(tmp_path / "bin/teams", "")
    assert home.cli("install", "claude", PATH=path).status == 0 and "hooks" in settings.read_text()
    program(tmp_path / "bin/copilot", "echo 1.0.102\n")
    shown = home.cli("install", "copilot", "--print", PATH=path)  # no settings of Copilot are changed instead
    assert shown.stdout.startswith("would run: copilot plugin marketplace add /"), shown


SQUEEZING = """\
#!/bin/sh
# A client that writes its settings in another form, and prints a byte that is not UTF-8.
if [ "$1" = --version ]; then echo 2.1.332; exit; fi
printf 'teams@teams \\351\\n'
if [ "$2" = list ]; then exit; fi
f="$HOME/.claude/settings.json"
LC_ALL=C tr -s ' ' < "$f" > "$f.new" && mv "$f.new" "$f"
"""


def test_settings_that_are_not_utf_8_come_back(home: Home, tmp_path: Path) -> None:
    path = clients_on(tmp_path / "bin", SQUEEZING)
    before = b'{"model":   "Andr\xe9"}'
    settings = home.file("claude", "")
    settings.write_bytes(before)
    assert home.cli("install", "claude", "--plugin", PATH=path).status == 0
    assert b'{"model": "Andr\xe9", ' in settings.read_bytes()
    record = home.cli.root / "installed/claude.plugin"
    kept = record.read_bytes()
    record.write_text("{")
    answer = home.cli("uninstall", "claude", PATH=path)
    assert answer.status == 15 and f"{record}: is not a record" in answer.stderr, answer
    record.write_bytes(kept)
    assert home.cli("uninstall", "claude", PATH=path).status == 0
    assert settings.read_bytes() == before
