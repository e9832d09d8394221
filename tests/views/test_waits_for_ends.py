"""What a leader that asked members to end hears of it, where they end while it looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from teams_cli.store.files.engine import FileStore
from teams_cli.teams.permission import Caller
from teams_cli.views.concerns import Lookout, Wanted
from tests.support.cli import ALPHA, make_team
from tests.support.waits import at_once


class Meanwhile(FileStore):
    """A store in which something else happens before it is read who was asked to end."""

    happens: Callable[[], Any] | None = None

    def scan(self, team, kind, problems, keys=None):  # type: ignore[no-untyped-def]
        happens, self.happens = (self.happens, None) if kind.name == "shutdown" else (None, self.happens)
        if happens:
            happens()
        return super().scan(team, kind, problems, keys)


def test_the_last_end_is_told_with_those_before_it_when_it_comes_in_the_middle_of_a_look(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob", "mia")
    for name in ("bob", "mia"):
        cli.ok("request-shutdown", name, agent="lea")
    cli.ok("approve-shutdown", agent="bob")
    store = Meanwhile(str(cli.root))
    store.happens = lambda: cli.ok("approve-shutdown", agent="mia")
    found = Lookout(store, ALPHA, Caller("lea"), at_once, Wanted(needed=True)).look()
    assert store.happens is None
    assert [each["message"] for each in found["messages"]] == ["bob approved shutdown-1", "mia approved shutdown-2"]
