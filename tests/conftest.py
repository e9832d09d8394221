"""What all tests share: every engine in turn, a clock that stands still, and no access to the real home."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from teams_cli.membership import joining
from teams_cli.store.files.engine import FileStore
from teams_cli.teams.permission import Caller
from tests.support import forks, postgres, rotation
from tests.support.cli import ALPHA, Cli, make_team
from tests.support.lacking import skip_without
from tests.support.postgres import Postgres
from tests.support.shop import shop as shop

if TYPE_CHECKING:
    from teams_cli.store.contract import Store


settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs behind ignores it, with all that it starts


class FakeClock:
    """A clock that moves only when the test moves it. `epoch` is the start of the machine."""

    def __init__(self) -> None:
        self.wall = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
        self.seconds = 1000.0
        self.epoch = "boot-1"

    def now(self) -> datetime:
        return self.wall

    def steady(self) -> tuple[str, float]:
        return self.epoch, self.seconds

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self.wall += timedelta(seconds=seconds)
        self.seconds += seconds

    def restart(self) -> None:
        """Restart the machine: the steady clock begins again, in another epoch."""
        self.epoch, self.seconds = f"{self.epoch}+", 0.0


_server: Postgres | None = None


def server() -> Postgres:
    """Return the one PostgreSQL server of this test process. It is started at the first call."""
    global _server
    skip_without("postgres")
    if why := postgres.missing():
        if os.environ.get("REQUIRE_POSTGRES"):
            pytest.fail(why)
        pytest.skip(why)
    if _server is None:
        _server = Postgres()
    return _server


def new_address() -> str:
    """Return the address of an empty store, which is a schema of its own."""
    return server().address(schema=f"t{os.urandom(6).hex()}")


def postgres_store(directory: Path, clock: FakeClock | None) -> Store:
    from teams_cli.extensions.postgres.engine import PostgresStore

    return PostgresStore(new_address(), str(directory / "root"), clock, lock_timeout=2.0)


# A new engine is one more line here: how to make an empty store in a directory of its own.
ENGINES: dict[str, Callable[[Path, FakeClock], Store]] = {
    "files": lambda directory, clock: FileStore(str(directory / "root"), clock, lock_timeout=2.0),
    "postgres": postgres_store,
}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print the name of a failed test at once, so that a run that is ended early names what failed."""
    if report.failed and not os.environ.get("PYTEST_XDIST_WORKER"):
        print(f"\nfailed: {report.nodeid}", flush=True)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In turns, keep only the marked tests of the files that are due: a fifth of the slow ones, half of those in a
    browser. Put the longest tests at the beginning of the workers' shares, so that no worker begins one when the others
    are done.
    """
    for mark, shares in (("slow", 5), ("browser", 2)):
        files = sorted({item.path for item in items if item.get_closest_marker(mark)})
        due = set(rotation.due_now(files, shares))
        items[:] = [item for item in items if item.path in due or not item.get_closest_marker(mark)]
    workers = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    longest = [item for item in items if (slow := item.get_closest_marker("slow")) and slow.kwargs.get("first")]
    rest = [item for item in items if item not in longest]
    size = -(-len(rest) // workers)
    shares = [longest[number::workers] + rest[number * size : (number + 1) * size] for number in range(workers)]
    items[:] = [item for share in shares for item in share]


def pytest_unconfigure() -> None:
    forks.end()
    if _server is not None:
        _server.stop()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["files", pytest.param("postgres", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    """Provide an empty store of every engine in turn."""
    made = ENGINES[request.param](tmp_path, clock)
    yield made
    made.close()


@pytest.fixture
def team(store: Store) -> Store:
    """Provide a store of every engine in turn, with the team alpha, which lea leads and in which bob is a member."""
    joining.spawn_team(store, ALPHA, Caller("lea"))
    joining.join(store, ALPHA, Caller("bob"))
    return store


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Provide a team of files with the leader lea and the members bob and mia."""
    return make_team(tmp_path / "root", "bob", "mia")


@pytest.fixture
def on_postgres(no_real_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Provide an empty store in PostgreSQL on which `Cli` works. The processes that use it are ended with the test."""
    address = new_address()
    monkeypatch.setenv("TEAMS_STORE", address)
    yield address
    postgres.end_users_of(address)


@pytest.fixture(params=["files", pytest.param("postgres", marks=pytest.mark.slow)])
def each_engine(request: pytest.FixtureRequest) -> str:
    """Provide every engine that processes can share, in turn. PostgreSQL is slow, and so left to the slow tests, except
    in tests of the store's contract.
    """
    if request.param == "postgres":
        request.getfixturevalue("on_postgres")
    return str(request.param)


@pytest.fixture
def file_store(tmp_path: Path, clock: FakeClock) -> FileStore:
    return FileStore(str(tmp_path / "root"), clock, lock_timeout=2.0)


_SETTINGS = tuple({os.environ.get("XDG_CONFIG_HOME") or "", os.path.expanduser("~/.config")} - {""})
_guarded = False


def _refuse_real_settings(event: str, arguments: tuple[object, ...]) -> None:
    if _guarded and event in ("open", "os.mkdir", "os.rename", "os.listdir", "os.scandir") and arguments:
        path = arguments[0]
        if isinstance(path, str) and path.startswith(_SETTINGS):
            raise AssertionError(f"a test touched the real home: {event} {path}")


sys.addaudithook(_refuse_real_settings)


@pytest.fixture(autouse=True)
def no_real_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Provide an empty home without settings from outside, and fail a test that opens the real one."""
    global _guarded
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("TEAMS_", "OPENCODE_")) or name == "PYTHONUNBUFFERED":  # unbuffered hides failing flushes
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    _guarded = True
    yield home
    _guarded = False
