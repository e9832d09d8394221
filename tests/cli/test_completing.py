"""Completion: what is offered, in the words of each shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from teams_cli.cli import completing
from tests.support.cli import Cli, add_tasks, make_team


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    cli = make_team(tmp_path_factory.mktemp("completing") / "root", "bob", "mia")
    add_tasks(cli, "Write the parser", "Test: it's $HOME")
    return cli


def offered(cli: Cli, *words: str) -> list[str]:
    """What stands behind these words; of the last one the beginning."""
    environ = cli.environ("", "alpha")
    return [value for value, _ in completing.offers(list(words[:-1]), words[-1], environ)]


OFFERED = [
    (("cl",), ["claim-task", "close-team"]),
    (("claim-task", ""), ["task-1", "task-2"]),
    (("claim-task", "--as", ""), ["lea", "bob", "mia"]),
    (("update-task", "1", "--blocked-by", "task-"), ["task-1", "task-2"]),
    (("send-message", "m"), ["mia"]),
    (("send-message", "bob", "m"), ["mia"]),
    (("--team", "alpha", "show-task", ""), ["task-1", "task-2"]),
    (("get-tasks", "--status", "c"), ["completed", "cancelled"]),
    (("get-tasks", "--te"), ["--team"]),
    (("show-team", ""), ["alpha"]),
    (("run", ""), ["code-review", "council", "feature-factory", "parallel-refactor"]),
    (("set", "staleA"), ["staleAfterSeconds"]),
    (("set", "delivery", ""), ["queue", "interject"]),
    (("create-task", ""), []),
    (("get-tasks", "--team", "none", "--owner", ""), []),
]


def test_what_is_offered(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words, expected in OFFERED:
        assert sorted(offered(cli, *words)) == sorted(expected), words


def test_each_shell_is_answered_in_its_words(cli: Cli) -> None:
    line = "teams claim-task task-"
    bash = cli(_TEAMS_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD="2")
    assert (bash.status, bash.stdout.split()) == (0, ["task-1", "task-2"])
    zsh = cli(_TEAMS_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line)
    assert zsh.stdout.startswith('_arguments \'*: :(("task-1":"Write the parser"') and "it's" not in zsh.stdout
    assert r"its \$HOME" in zsh.stdout and zsh.stdout.count("'") == 2
    fish = {"_TEAMS_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": line}
    assert cli(_TYPER_COMPLETE_FISH_ACTION="get-args", **fish).stdout.splitlines()[0] == "task-1\tWrite the parser"
    assert cli(_TYPER_COMPLETE_FISH_ACTION="is-args", **fish).status == 0
    typed = {"_TYPER_COMPLETE_ARGS": "teams cla", "_TYPER_COMPLETE_WORD_TO_COMPLETE": "cla"}
    powershell = cli(_TEAMS_COMPLETE="complete_powershell", **typed)  # by Typer
    assert powershell.stdout.startswith("claim-task:::Claim a free task")
