"""Examining and fixing a file store for `doctor`: the root, damaged files, leftovers, marks and locks."""

from __future__ import annotations

import os
import time

from teams_cli import errors, processes
from teams_cli.names import is_name
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind
from teams_cli.store.files import disk, watches, whole_team
from teams_cli.store.files.locks import holder_of
from teams_cli.store.files.message_log import Packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from teams_cli.store.contract import Finding
    from teams_cli.store.files.engine import FileStore

_LEFTOVER_AGE = 36 * 3600.0


def examine(store: FileStore, kinds: Sequence[Kind[Record]], fix: bool, only: str) -> Iterator[Finding]:
    """Yield what is wrong with the files, of *only* that team if it is named. With *fix*, repair what can be repaired
    without losing anything.

    Damaged files are moved to `quarantine`, never changed.
    """
    yield from _root(store)
    yield from _leftovers(store, fix)
    yield from _remains(store)
    for team in [only] if only else store.teams():
        for kind in kinds:
            yield from _records(store, team, kind, fix)
            if kind.label:
                yield from _marks(store, team, kind, fix)
            if kind.name == "message":
                yield from _packed(store, team)
        yield from _strays(store, team)
        yield from _locks(store, team)


def finding(where: str, what: str, remedy: str = "", fixed: bool = False, warning: bool = False) -> Finding:
    level = "fixed" if fixed else "warning" if warning else "problem"
    return {"level": level, "where": where, "what": what, "remedy": remedy}


def _root(store: FileStore) -> Iterator[Finding]:
    network = disk.network_file_system(store.address)
    if network:
        yield finding(store.address, f"is on {network}, where locks do not exclude other machines", "Use a local disk.")
    if watches.is_exhausted():
        remedy = "Raise them: sysctl fs.inotify.max_user_instances=1024"
        yield finding("fs.inotify", "no watch is left, so who waits sees changes late", remedy, warning=True)
    try:
        open_to_others = os.path.isdir(store.address) and os.stat(store.address).st_mode & 0o077
    except OSError as error:
        yield finding(store.address, f"can't be looked at: {error.strerror}", "Check the disk.")
        return
    if open_to_others:
        yield finding(store.address, "others may read it", f"Run: chmod 700 {store.address}", warning=True)


def _leftovers(store: FileStore, fix: bool) -> Iterator[Finding]:
    """Find temporary files of crashed processes. Younger ones may be in use."""
    for name in disk.names_in(f"{store.address}/tmp"):
        path = f"{store.address}/tmp/{name}"
        try:
            old = time.time() - os.lstat(path).st_mtime > _LEFTOVER_AGE
        except FileNotFoundError:
            continue
        if old and name != "config.checked":
            if fix:
                _remove(path)
            yield finding(path, "is left over from a crash", "Remove it, or use --fix.", fixed=fix, warning=True)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        whole_team.empty(path)
    else:
        disk.discard(path)


def _remains(store: FileStore) -> Iterator[Finding]:
    """Find teams without `team.json`, which no list shows."""
    known = set(store.teams())
    found = {name for part in ("teams", "tasks") for name in disk.names_in(f"{store.address}/{part}") if is_name(name)}
    for name in sorted(found - known):
        if remains := _remainder(store, name):
            what = f"its team.json is missing, while there is {remains}"
            yield finding(f"team {name}", what, "Bring it back from a backup, or move the others away.")


def _remainder(store: FileStore, team: str) -> str:
    """Return what is left of a team without `team.json`; empty if nothing is, as after a crash while it was created."""
    directory, tasks = store.layout.team(team), store.layout.tasks(team)
    own = [f"{directory}/{name}" for name in disk.names_in(directory)]
    own += [f"{tasks}/{name}" for name in disk.names_in(tasks) if name.endswith(".json")]
    return min(own, default="")


def _records(store: FileStore, team: str, kind: Kind[Record], fix: bool) -> Iterator[Finding]:
    for problem in _problems(store, team, kind):
        path = problem.path if isinstance(problem, errors.DamagedRecord) else ""
        movable = fix and kind.name != "team" and os.path.lexists(path)
        if movable:
            store.reserve(team, kind, store.last(team, kind))  # the number of what is moved away is not given again
            _quarantine(store, team, path)
            key = os.path.basename(path).removesuffix(".json")
            store.mark_anew(team, kind, [key])
        yield finding(f"team {team}", problem.message, problem.hint, fixed=movable)


def _problems(store: FileStore, team: str, kind: Kind[Record]) -> list[errors.TeamsError]:
    problems: list[errors.TeamsError] = []
    try:
        if kind.name == "team":
            store.get(team, kind, team)
        elif kind.name == "message":
            store.read(team, kind, None, 0, problems)
        else:
            list(store.scan(team, kind, problems))
    except errors.TeamsError as problem:
        problems.append(problem)
    return problems


def _quarantine(store: FileStore, team: str, path: str) -> None:
    aside = f"{store.address}/quarantine/{os.path.relpath(path, store.address).replace('/', '.')}.{int(time.time())}"
    disk.make_directories(os.path.dirname(aside), store.address)
    disk.commit(path, aside)
    disk.confirm(os.path.dirname(path), path)


def _packed(store: FileStore, team: str) -> Iterator[Finding]:
    """Find files of packed messages, which older versions made, from which somebody has taken messages out."""
    log = store.log(team)
    for segment in log.segments():
        here = Packed(f"{log.directory}/{segment}")
        if here.announced != len(here):
            what = f"has {len(here)} messages and says that there are {here.announced}"
            yield finding(here.path, what, "Bring it back from a backup, or correct its first line.")


def _marks(store: FileStore, team: str, kind: Kind[Record], fix: bool) -> Iterator[Finding]:
    """Find records that are not found by their label, and marks of labels that records no longer have.

    Edits by hand leave both: `claim-task --next` sees such records last, and looks in vain at such marks each time.
    """
    assert kind.label is not None
    wanted: dict[str, list[str]] = {}
    for record, _ in store.scan(team, kind, []):
        wanted.setdefault(kind.label(record) or "", []).append(getattr(record, kind.key))
    for label in sorted({*store.layout.labels(team, kind), *wanted} - {""}):
        marked, here = dict.fromkeys(store.labelled(team, kind, label)), wanted.get(label, [])
        if missing := [key for key in here if key not in marked]:
            store.mark_anew(team, kind, missing if fix else ())
            others = f", nor are {len(missing) - 1} others" if missing[1:] else ""
            what = f"{missing[0]} is not in the index of {label}{others}"
            yield finding(f"team {team}", what, "Use --fix.", fixed=fix, warning=True)
        belong = set(here)
        stale = [key for key in marked if key not in belong and _is_stale(store, team, kind, label, key)]
        if stale:
            store.mark_anew(team, kind, stale if fix else ())
            what = f"{len(stale)} marks of {label} are of records that are not, as {stale[0]}"
            yield finding(f"team {team}", what, "Use --fix.", fixed=fix, warning=True)


def _is_stale(store: FileStore, team: str, kind: Kind[Record], label: str, key: str) -> bool:
    """Whether the record lacks that label. A record that cannot be read may have it."""
    assert kind.label is not None
    try:
        return kind.label(store.get(team, kind, key)[0]) != label
    except errors.NotFound:
        return True
    except errors.TeamsError:
        return False


def _strays(store: FileStore, team: str) -> Iterator[Finding]:
    """Find messages that another program put beside ours. Nobody reads them."""
    directory = f"{store.address}/teams/{team}/messages"
    for name in disk.names_in(directory):
        if name.endswith(".json"):
            yield finding(f"{directory}/{name}", "is in no inbox", "Send it anew: teams send-message.", warning=True)


def _locks(store: FileStore, team: str) -> Iterator[Finding]:
    for directory, _, files in os.walk(f"{store.address}/teams/{team}"):
        if ".lock" in files and (holder := holder_of(f"{directory}/.lock")):
            what = f"is held by process {holder}{' which is stopped' if processes.is_stopped(holder) else ''}"
            yield finding(f"{directory}/.lock", what, f"If it hangs, end process {holder}.", warning=True)
