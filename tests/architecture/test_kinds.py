"""Kinds that are known by their names where the module that has one is imported only when there are records of it."""

from __future__ import annotations

from teams_cli import kinds
from teams_cli.commands import waiting
from teams_cli.views import concerns, facts


def test_there_are_kinds_of_these_names() -> None:
    assert {waiting._LANDING, concerns._SESSION, concerns._PAGE, facts.SHUTDOWN} <= kinds.BY_NAME.keys()
