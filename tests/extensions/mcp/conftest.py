"""A team whose agents use the MCP server; tests may be asynchronous."""

from __future__ import annotations

from inspect import iscoroutinefunction
from pathlib import Path

import pytest

from tests.support.cli import Cli, make_team
from tests.support.mcp_client import within


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return make_team(tmp_path / "root", "bob", "mia", roles={"mia": "task-manager"})


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an asynchronous test in an event loop, with a time limit."""
    if not iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    within(lambda: pyfuncitem.obj(**given))
    return True
