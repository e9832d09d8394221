"""Help, the manual page and completion."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from teams_cli import commands, extensions
from teams_cli.cli import completing, guide, mistakes
from teams_cli.cli.command_line import parse
from teams_cli.commands.declaration import AS, JSON, ROOT, STORE, TEAM
from tests.docs.pages import text_of
from tests.support.cli import Cli, add_tasks, make_team

EVERY = list(commands.every().values())


def test_the_guide_shows_the_commands_that_carry_the_work(cli: Cli) -> None:
    """The guide leaves out commands that are off or not allowed; with `--all` it shows every command."""
    bare, help = cli(), cli("help")
    assert (bare.status, help.status, help.stderr) == (2, 0, "")
    assert bare.stdout == help.stdout == cli("--help").stdout
    shown = commands_in(help.stdout)
    assert len(shown) == 13 and "claim-task" in shown and "ask-others" not in shown
    whole = cli("help", "--all").stdout
    assert commands_in(whole) == {command.name for command in EVERY}
    assert "\nQuestions (off in this team; " in whole and "\nTasks\n" in whole
    cli.ok("set", "broadcast", "agents", agent="lea")
    assert "ask-others" in commands_in(cli("help").stdout) and "(off in" not in cli("help", "--all").stdout
    cli.ok("set", "broadcast", "false", agent="lea")
    assert shown - commands_in(cli("help", agent="bob").stdout) == {"close-team", "create-task", "spawn-team"}
    one = cli("help", "claim-task").stdout
    assert one == cli("claim-task", "--help").stdout == cli("claim-task", "-h").stdout
    assert one.startswith("Usage: teams claim-task [ID] [OPTIONS]\n") and "--next" in one and "\nExit 11: " in one


def commands_in(help: str) -> set[str]:
    return {line.replace(":", " ").split()[0] for line in help.splitlines() if line.startswith("  ")}


def test_the_help_of_each_command_is_whole() -> None:
    """The help has every option, exit status and a valid example, but no option that all commands take."""
    for command in EVERY:
        text = guide.of_command(command)
        assert text.startswith(f"Usage: teams {command.name}")
        assert all(f"{flag} " in text for parameter in command.own for flag in parameter.flags)
        for parameter in command.own:
            row = next(row for row in text.splitlines() if row.startswith(f"  {parameter.flags[0]}"))
            assert all(choice in row for choice in parameter.choices), (command.name, row)
        paragraphs, refusals = guide.parts_of_help(command)
        assert {*paragraphs, *refusals} <= {*text.splitlines()}
        assert not re.search(r"\*\w+\*", text)  # options are named as they are written
        assert not re.search(r"\b[A-Z][a-z]+[A-Z]\w+: ", text)  # and no class of the program is named
        own = {flag for parameter in command.own for flag in parameter.flags}
        for flag in {flag for parameter in (JSON, ROOT, STORE, TEAM, AS) for flag in parameter.flags} - own:
            assert f"\n  {flag}" not in text
        assert text.count("Example: ") == 1 and f"\nExample: teams {command.example}\n" in text
        assert parse(shlex.split(command.example))[0] is command


def test_the_manual_page_has_every_command(cli: Cli) -> None:
    page = cli("--man")
    assert page.status == 0 and page.stderr == ""
    lines = page.stdout.splitlines()
    heads = {line.split('"')[1].replace("\\-", "-").split()[1] for line in lines if line.startswith(".SS ")}
    assert heads == {command.name for command in EVERY}
    flags = {flag for command in EVERY for parameter in command.own for flag in parameter.flags if flag[0] == "-"}
    assert all(flag.replace("-", "\\-") in page.stdout for flag in flags)


def test_a_word_of_the_glossary_leads_to_a_command() -> None:
    rows = re.findall(r"^\| ([a-z, -]+) \|", text_of("docs/glossary.md"), re.MULTILINE)
    words = {word for row in rows for word in row.split(", ") if " " not in word and word != "word"}
    assert len(words) > 30
    if not set(extensions.BROUGHT_BY) <= set(commands.every()):
        return  # a missing extension takes its words with it
    for word in words - set(commands.every()):
        assert (mistakes.unknown(word).hint or "").startswith("Write: teams "), word


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    cli = make_team(tmp_path_factory.mktemp("completing") / "root", "bob", "mia")
    add_tasks(cli, "Write the parser", "Test: it's $HOME")
    return cli


OFFERED = [
    (("cl",), ["claim-task", "close-team"]),
    (("claim-task", ""), ["task-1", "task-2"]),
    (("claim-task", "--as", ""), ["lea", "bob", "mia"]),
    (("send-message", "bob", "m"), ["mia"]),
    (("--team", "alpha", "show-task", ""), ["task-1", "task-2"]),
    (("get-task", ""), ["task-1", "task-2"]),
    (("list-tasks", "--status", "c"), ["completed", "cancelled"]),
    (("get-tasks", "--status", "c"), ["completed", "cancelled"]),
    (("get-tasks", "--te"), ["--team"]),
    (("show-team", ""), ["alpha"]),
    (("run", ""), ["code-review", "council", "feature-factory", "parallel-refactor"]),
    (("set", "delivery", ""), ["queue", "interject"]),
    (("get-tasks", "--team", "none", "--owner", ""), []),
]


def test_what_completion_offers(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workflow whose name a shell would obey is not offered; nor can it be run by its name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows/$(reboot).md").touch()
    assert "reboot" not in cli("run", "nope").stderr
    for (*words, begun), expected in OFFERED:
        offered = completing.offers(words, begun, cli.environ("", "alpha"))
        assert sorted(value for value, _ in offered) == sorted(expected), words


def test_each_shell_is_answered_in_its_words(cli: Cli) -> None:
    line = "teams claim-task task-"
    bash = cli(_TEAMS_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD="2")
    assert (bash.status, bash.stdout.split()) == (0, ["task-1", "task-2"])
    zsh = cli(_TEAMS_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line)
    assert zsh.stdout.startswith('_arguments \'*: :(("task-1":"Write the parser"') and "it's" not in zsh.stdout
    assert r"its \$HOME" in zsh.stdout and zsh.stdout.count("'") == 2
    fish = {"_TEAMS_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": line}
    assert cli(_TYPER_COMPLETE_FISH_ACTION="get-args", **fish).stdout.splitlines()[0] == "task-1\tWrite the parser"
