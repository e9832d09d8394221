"""Writers that pause at any system call while the team is closed, copied or handed over, and then go on.

An acknowledged write is where the team is, and a write that comes too late is refused.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from teams_cli import closing, copying
from teams_cli.errors import Busy, Conflict, NotAllowed, TeamsError
from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import claims, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence, settings
from teams_cli.teams.permission import Caller
from teams_cli.teams.teams import TEAM
from tests.store.faults import Signal
from tests.support.cli import ALPHA, add_tasks, make_team

pytestmark = pytest.mark.slow

LEA, BOB = Caller("lea"), Caller("bob")
LATE = "LATE"
WRITERS: dict[str, Callable[[FileStore], Any]] = {
    "send": lambda store: messages.send(store, ALPHA, LEA, "bob", LATE),
    "create": lambda store: tasks.create(store, ALPHA, LEA, Task(team_name=ALPHA, title=LATE, created_at="")),
    "claim": lambda store: claims.claim(store, ALPHA, BOB, "1"),
    "announce": lambda store: presence.announce(store, ALPHA, BOB, LATE),
    "set": lambda store: settings.change(store, ALPHA, LEA, "staleAfterSeconds", "77"),
}
ACKNOWLEDGED, REFUSED = 0, 7


def content(root: Path) -> dict[str, bytes]:
    """The files of the team, except for its record and its history."""
    places = [root / "teams" / ALPHA, root / "tasks" / ALPHA]
    files = [path for place in places for path in place.rglob("*.json") if path.name != "team.json"]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def begun(root: Path, change: Callable[[FileStore], Any], nth: int, number: int) -> tuple[int, str]:
    """Start a process that makes the change and gets the signal at its *nth* call; returns its id, and whether
    it was stopped, killed or done.
    """
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            with Signal(nth, number):
                change(FileStore(str(root), lock_timeout=5.0))
            status = ACKNOWLEDGED
        except TeamsError:
            status = REFUSED
        finally:
            os._exit(status)
    _, how = os.waitpid(pid, os.WUNTRACED)
    return pid, "stopped" if os.WIFSTOPPED(how) else "killed" if os.WIFSIGNALED(how) else "done"


def gone_on(pid: int) -> int:
    """Let the stopped process go on, and return its exit status."""
    os.kill(pid, signal.SIGCONT)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def close(store: FileStore, target: FileStore) -> None:
    closing.close(store, ALPHA, LEA, force=True)


def copy(store: FileStore, target: FileStore) -> None:
    copying.copy(store, target, ALPHA, LEA)


def hand_over(store: FileStore, target: FileStore) -> None:
    joining.hand_over(store, ALPHA, LEA, "bob")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    cli = make_team(tmp_path / "base", "bob")
    add_tasks(cli, "one", "two")
    messages.send(cli.store(), ALPHA, LEA, "bob", "hello")
    presence.announce(cli.store(), ALPHA, BOB, "at it")
    presence.announce(cli.store(), ALPHA, LEA, "at it")
    return cli.root


@pytest.mark.parametrize("during", [close, copy])
@pytest.mark.parametrize("writer", WRITERS)
def test_a_write_that_paused_is_acknowledged_only_where_the_team_is(
    base: Path, tmp_path: Path, writer: str, during: Callable[[FileStore, FileStore], None]
) -> None:
    told = {ACKNOWLEDGED: 0, REFUSED: 0, "had to wait": 0}
    for nth in range(1, 1000):
        root, other = tmp_path / f"root{nth}", tmp_path / f"other{nth}"
        shutil.copytree(base, root)
        pid, how = begun(root, WRITERS[writer], nth, signal.SIGSTOP)
        if how == "done":
            break
        target = FileStore(str(other))
        try:
            during(FileStore(str(root), lock_timeout=0.05), target)
        except Busy:  # the writer holds a lock, so it finishes before the team is closed
            told["had to wait"] += 1
            assert gone_on(pid) == ACKNOWLEDGED
            continue
        except Conflict:  # the task was claimed, so the copy is refused
            assert (during, gone_on(pid)) == (copy, ACKNOWLEDGED)
            continue
        before = content(root), content(other), FileStore(str(root)).get(ALPHA, TEAM, ALPHA)[0]
        answer = gone_on(pid)
        after = content(root), content(other), FileStore(str(root)).get(ALPHA, TEAM, ALPHA)[0]
        assert after == before, f"changed after the team was closed, at call {nth}"
        told[answer] += 1
    # Some calls are left out where a file is old enough to be remembered, so their number varies.
    assert told["had to wait"] + told[REFUSED] > 0


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL], ids=["stopped", "killed"])
@pytest.mark.parametrize("closer", [close, copy, hand_over])
def test_closing_that_pauses_or_dies_leaves_the_team_in_one_piece(
    base: Path, tmp_path: Path, closer: Callable[[FileStore, FileStore], None], number: int
) -> None:
    """Meanwhile other writers succeed or are told to wait; repeating the command completes it with all that was
    acknowledged.
    """
    for nth in range(1, 3000):
        root, other = tmp_path / f"root{nth}", tmp_path / f"other{nth}"
        shutil.copytree(base, root)
        target = FileStore(str(other))
        pid, how = begun(root, partial(closer, target=target), nth, number)
        if how == "done":
            break
        said = sent_meanwhile(root)
        if how == "stopped":
            assert gone_on(pid) in (ACKNOWLEDGED, REFUSED)
        with suppress(Conflict, NotAllowed):  # the change was made already
            closer(FileStore(str(root)), target)
        team = FileStore(str(root)).get(ALPHA, TEAM, ALPHA)[0]
        assert [member.agent_id for member in team.members if member.role == "team-leader"] == [team.leader]
        place = FileStore(str(other if closer is copy else root))
        found = {message.message for message in place.read(ALPHA, messages.MESSAGE, "bob", 0, [])}
        assert {"hello", *said} <= found, f"acknowledged and not there, at call {nth}"
    assert nth > 5


def sent_meanwhile(root: Path) -> set[str]:
    """The message that another agent could send while the first process is stopped."""
    try:
        return {messages.send(FileStore(str(root), lock_timeout=0.05), ALPHA, LEA, "bob", "meanwhile").message}
    except TeamsError:
        return set()
