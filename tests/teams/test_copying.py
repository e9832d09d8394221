"""Copying teams between stores in files: no copy replaces what was done later, or another team of the same name."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from teams_cli import copying
from teams_cli.errors import Conflict
from teams_cli.store.files.engine import FileStore
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, Cli, add_tasks, make_team

LEA = Caller("lea")


@pytest.fixture
def here(tmp_path: Path) -> Cli:
    cli = make_team(tmp_path / "here", "bob")
    add_tasks(cli, "one")
    return cli


@pytest.fixture
def there(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "there", agent="lea", team=ALPHA)


def copy(source: Cli, target: Cli) -> dict[str, int]:
    copied: dict[str, int] = source.ok("copy-team", "--to", str(target.root), agent="lea")["copied"]
    return copied


def refusal(source: Cli, target: Cli) -> dict[str, str]:
    return source("copy-team", "--to", str(target.root), "--json", agent="lea").error


def titles(cli: Cli) -> list[str]:
    return [task["title"] for task in cli.ok("get-tasks")]


class Hooked(FileStore):
    """A store in files that calls *meanwhile* once, before the records of the kind *kind* are read or written."""

    def __init__(self, root: Path, kind: str, meanwhile: Callable[[], object]) -> None:
        super().__init__(str(root))
        self.kind = kind
        self.meanwhile = meanwhile

    def _call(self, kind: str) -> None:
        if kind == self.kind:
            meanwhile, self.meanwhile = self.meanwhile, lambda: None
            meanwhile()

    def pack(self, team: str, kind: Any, *more: Any) -> Iterator[tuple[str, bytes]]:
        self._call(kind.name)
        return super().pack(team, kind, *more)

    def put(self, team: str, kind: Any, *record: Any) -> None:
        self._call(kind.name)
        super().put(team, kind, *record)


def kill() -> None:
    raise KeyboardInterrupt


def copy_killed_at_the_end(source: Cli, target: Cli) -> None:
    """Copy all records but that of the team."""
    with pytest.raises(KeyboardInterrupt):
        copying.copy(source.store(), Hooked(target.root, "team", kill), ALPHA, LEA)


def test_the_command_to_go_on_with_works_where_another_store_is_set(here: Cli, there: Cli) -> None:
    elsewhere = {"TEAMS_STORE": "postgresql://nosuch.invalid/x"}
    words = ("copy-team", "--to", str(there.root), "--store", "files")
    command = here(*words, agent="lea", **elsewhere).stdout.rpartition("continue there: teams ")[2]
    assert here(*shlex.split(command), agent="lea", **elsewhere).status == 0


def test_a_copy_that_was_copied_on_is_not_replaced(here: Cli, there: Cli, tmp_path: Path) -> None:
    copy(here, there)
    there.ok("update-task", "1", "--title", "changed")
    third = Cli(tmp_path / "third", agent="lea", team=ALPHA)
    copy(there, third)
    assert refusal(here, there)["code"] == "wrong_state"
    assert titles(there) == titles(third) == ["changed"]
    assert there.ok("show-team")["state"] == "closed"
    third.ok("create-task", "two")
    copy(third, here)
    copy(here, there)
    assert titles(there) == ["changed", "two"]


def test_what_is_being_copied_back_is_not_replaced(here: Cli, there: Cli) -> None:
    copy(here, there)
    there.ok("join-team", agent="new")
    there.ok("update-task", "1", "--title", "changed")
    copy_killed_at_the_end(there, here)
    assert refusal(here, there)["code"] == "wrong_state"
    assert titles(there) == ["changed"] and there.ok("show-team")["members"][-1]["agentId"] == "new"
    copy(there, here)
    assert titles(here) == ["changed"] and here.ok("show-team")["members"][-1]["agentId"] == "new"


def test_a_killed_copy_over_an_older_one_can_be_repeated(here: Cli, there: Cli) -> None:
    copy(here, there)
    copy(there, here)
    here.ok("update-task", "1", "--title", "changed", agent="lea")
    copy_killed_at_the_end(here, there)
    assert copy(here, there)["task"] == 1
    assert titles(there) == ["changed"] and there.ok("show-team")["state"] == "active"


def test_a_copy_that_has_more_tasks_is_not_replaced(here: Cli, there: Cli, tmp_path: Path) -> None:
    """The original was opened again, and is copied once more."""
    copy(here, there)
    there.ok("create-task", "two")
    copy(there, Cli(tmp_path / "third"))
    assert here("restore-team", ALPHA, agent="lea").status == 0
    error = refusal(here, there)
    assert error["code"] == "already_exists" and f"copied to {tmp_path}/third" in error["hint"]
    assert here.ok("show-team")["state"] == "active" and titles(there) == ["one", "two"]


def test_another_team_of_the_same_name_is_not_replaced(here: Cli, there: Cli, tmp_path: Path) -> None:
    copy(here, there)
    other = make_team(tmp_path / "other")
    assert refusal(other, here)["code"] == "already_exists"
    assert titles(here) == ["one"] and other.ok("show-team")["state"] == "active"


def test_work_in_a_copy_that_was_finished_meanwhile_is_kept(here: Cli, there: Cli) -> None:
    """Two copies begin at once; the second one closes the team after the first one was finished."""

    def copied_and_at_work() -> None:
        copy(here, there)
        there.ok("claim-task", "1", agent="bob")

    assert copying.copy(Hooked(here.root, "task", copied_and_at_work), there.store(), ALPHA, LEA) == {}
    assert there.ok("show-task", "1")["owner"] == "bob"


def test_a_team_that_is_opened_again_is_not_opened_elsewhere(here: Cli, there: Cli) -> None:
    def opened_again() -> None:
        here("restore-team", ALPHA, agent="lea")

    with pytest.raises(Conflict, match="alpha was opened here again"):
        copying.copy(here.store(), Hooked(there.root, "task", opened_again), ALPHA, LEA)
    assert there.ok("discover-teams", "--all") == []
    assert copy(here, there)["task"] == 1
