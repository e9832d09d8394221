"""Help for programs, which pay for every character; and mistakes, answered with what was meant."""

from __future__ import annotations

import re
import shlex

import pytest

from teams_cli import commands, extensions
from teams_cli.cli import guide, mistakes
from teams_cli.cli.parse import parse
from teams_cli.commands.declaration import AS, JSON, ROOT, STORE, TEAM
from tests.docs.pages import text_of
from tests.support.cli import Cli, make_team

EVERY = list(commands.every().values())


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    return make_team(tmp_path_factory.mktemp("help") / "root", "bob")


def test_the_guide_shows_the_commands_that_carry_the_work(cli: Cli) -> None:
    """In some dozen lines, without those that are off in this team; --all shows every command in its group."""
    bare, help = cli(), cli("help")
    assert (bare.status, help.status, help.stderr) == (2, 0, "")
    assert bare.stdout == help.stdout == cli("--help").stdout
    shown = commands_in(help.stdout)
    assert len(shown) == 12 and "claim-task" in shown and "ask-others" not in shown
    whole = cli("help", "--all").stdout
    assert commands_in(whole) == {command.name for command in EVERY}
    assert "\nQuestions (off in this team; " in whole and "\nTasks\n" in whole
    refused = cli("ask-others", "Why?", agent="bob")
    assert refused.status == 13
    assert "lea or the human can turn questions on: teams set broadcast agents" in refused.stderr
    cli.ok("set", "broadcast", "agents", agent="lea")
    assert "ask-others" in commands_in(cli("help").stdout) and "(off in" not in cli("help", "--all").stdout
    cli.ok("set", "broadcast", "false", agent="lea")
    one = cli("help", "claim-task").stdout
    assert one == cli("claim-task", "--help").stdout == cli("claim-task", "-h").stdout
    assert one.startswith("Usage: teams claim-task [ID] [OPTIONS]\n") and "--next" in one and "\nExit 11: " in one


def commands_in(help: str) -> set[str]:
    return {line.replace(":", " ").split()[0] for line in help.splitlines() if line.startswith("  ")}


def test_the_help_of_each_command_is_whole() -> None:
    """All that is its own, every exit status, and an example that is right; nothing of what every command takes."""
    for command in EVERY:
        text = guide.of_command(command)
        assert text.startswith(f"Usage: teams {command.name}")
        assert all(f"{flag} " in text for parameter in command.own for flag in parameter.flags)
        said, refusals = guide.told_of(command)
        assert all(refusal in text.splitlines() for refusal in refusals)
        assert " ".join(said.split()) in " ".join(text.split())
        assert not re.search(r"\*\w+\*", text)  # options are named as they are written
        assert not re.search(r"\b[A-Z][a-z]+[A-Z]\w+: ", text)  # and no class of the program
        own = {flag for parameter in command.own for flag in parameter.flags}
        for flag in {flag for parameter in (JSON, ROOT, STORE, TEAM, AS) for flag in parameter.flags} - own:
            assert f"\n  {flag}" not in text
        assert text.count("Example: ") == 1 and f"\nExample: teams {command.example}\n" in text
        words = shlex.split(command.example)
        found = parse(words)
        assert found and found[0] is command


def test_the_manual_page_has_every_command(cli: Cli) -> None:
    """With its parameters; made of lines that begin with no macro but those of man."""
    page = cli("--man")
    assert page.status == 0 and page.stderr == ""
    lines = page.stdout.splitlines()
    heads = {line.split('"')[1].replace("\\-", "-").split()[1] for line in lines if line.startswith(".SS ")}
    assert heads == {command.name for command in EVERY}
    flags = {flag for command in EVERY for parameter in command.own for flag in parameter.flags if flag[0] == "-"}
    assert all(flag.replace("-", "\\-") in page.stdout for flag in flags)
    macros = {line.split()[0] for line in lines if line.startswith((".", "'"))}
    assert macros == {".TH", ".SH", ".SS", ".PP", ".TP", ".IP", ".B"}
    assert all(f"\\fB{status}\\fR" in page.stdout for status in (0, 1, 2, 3, 10, 11, 12, 13, 14, 15, 130))


def test_a_text_that_starts_with_a_dash_follows_two(cli: Cli) -> None:
    assert cli("send-message", "bob", "--", "-x is wrong", agent="lea").status == 0
    assert cli.ok("read-messages", agent="bob")[0]["message"] == "-x is wrong"


def test_a_word_of_the_glossary_leads_to_a_command() -> None:
    """Each word of its first column that somebody may type."""
    rows = re.findall(r"^\| ([a-z, -]+) \|", text_of("docs/glossary.md"), re.MULTILINE)
    words = {word for row in rows for word in row.split(", ") if " " not in word and word != "word"}
    assert len(words) > 30
    if not set(extensions.BROUGHT_BY) <= set(commands.every()):
        return  # a missing extension takes its words with it
    for word in words - set(commands.every()):
        assert (mistakes.unknown(word).hint or "").startswith("Write: teams "), word
