"""Two machines that use the same database create the tasks of a tracker or of a roster only once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from teams_cli.extensions.exchange import importing
from teams_cli.extensions.exchange.items import Item
from teams_cli.membership import joining
from teams_cli.runs import rosters
from teams_cli.store.contract import Store
from teams_cli.tasks import creating, tasks
from teams_cli.teams.config import Config
from teams_cli.teams.permission import Caller
from tests.conftest import new_address
from tests.support.cli import ALPHA

pytestmark = pytest.mark.slow

LEA = Caller("lea")


@pytest.fixture
def machines(tmp_path: Path) -> list[Store]:
    from teams_cli.extensions.postgres.engine import PostgresStore

    address = new_address()
    return [PostgresStore(address, str(tmp_path / name)) for name in ("one", "two")]


def first(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Let the *other* machine do the same just before this one stores its tasks."""
    stored = creating.create_all

    def overtaken(*args: Any) -> Any:
        monkeypatch.setattr(creating, "create_all", stored)
        other()
        return stored(*args)

    monkeypatch.setattr(creating, "create_all", overtaken)


def titles(store: Store) -> list[str]:
    return [task.title for task in tasks.all_of(store, ALPHA, [])]


def test_imports_at_once(machines: list[Store], monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = machines
    joining.spawn_team(here, ALPHA, LEA)
    items = [Item(key=str(n), title=f"issue {n}", status="pending") for n in (1, 2)]
    first(monkeypatch, lambda: importing.bring(there, ALPHA, LEA, "github", items[:1]))
    outcome = importing.bring(here, ALPHA, LEA, "github", items)
    assert ([task.title for task in outcome.created], outcome.unchanged) == (["issue 2"], 1)
    assert titles(here) == ["issue 1", "issue 2"]


def test_rosters_at_once(machines: list[Store], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here, there = machines
    roster = tmp_path / "teams.yaml"
    roster.write_text(f"name: {ALPHA}\ntasks: [{{id: a, title: one}}, {{id: b, title: two, blockedBy: [a]}}]\n")

    def up(store: Store) -> Any:
        return rosters.up(store, LEA, str(roster), Config(), {})

    first(monkeypatch, lambda: up(there))
    assert up(here)["tasks"] == [] and titles(here) == ["one", "two"]
