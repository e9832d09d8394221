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
    """Yield what is wrong with the files of all teams, or only of the team *only* if that is not empty. With *fix*,
    repair what can be repaired without losing anything.

    Damaged files are moved to `quarantine`, and never changed.
    """
    yield from _problems_of_root(store)
    yield from _leftovers(store, fix)
    yield from _teams_without_record(store)
    for team in [only] if only else store.teams():
        for kind in kinds:
            yield from _damaged_records(store, team, kind, fix)
            if kind.label:
                yield from _wrong_marks(store, team, kind, fix)
            if kind.name == "message":
                yield from _incomplete_packs(store, team)
        yield from _stray_messages(store, team)
        yield from _held_locks(store, team)


def _finding(where: str, what: str, remedy: str, level: str = "problem") -> Finding:
    return {"level": level, "where": where, "what": what, "remedy": remedy}


def _problems_of_root(store: FileStore) -> Iterator[Finding]:
    root = store.address
    if network := disk.network_file_system(root):
        yield _finding(root, f"is on {network}, where locks do not exclude other machines", "Use a local disk.")
    if watches.is_exhausted():
        what = "no watch is left, so who waits sees changes late"
        yield _finding("fs.inotify", what, "Raise them: sysctl fs.inotify.max_user_instances=1024", "warning")
    try:
        is_open_to_others = os.path.isdir(root) and os.stat(root).st_mode & 0o077
    except OSError as error:
        yield _finding(root, f"can't be looked at: {error.strerror}", "Check the disk.")
        return
    if is_open_to_others:
        yield _finding(root, "others may read it", f"Run: chmod 700 {root}", "warning")


def _leftovers(store: FileStore, fix: bool) -> Iterator[Finding]:
    """Yield a finding for each temporary file of a crashed process, and remove the file with *fix*. Young files are
    ignored: they may be in use.
    """
    for name in disk.names_in(f"{store.address}/tmp"):
        path = f"{store.address}/tmp/{name}"
        try:
            is_old = time.time() - os.lstat(path).st_mtime > _LEFTOVER_AGE
        except FileNotFoundError:
            continue
        if is_old and name != "config.checked":  # that file is kept as long as the configuration is the same
            if fix:
                if os.path.isdir(path) and not os.path.islink(path):
                    whole_team.delete_trash(path)
                else:
                    disk.discard(path)
            yield _finding(path, "is left over from a crash", "Remove it, or use --fix.", "fixed" if fix else "warning")


def _teams_without_record(store: FileStore) -> Iterator[Finding]:
    """Yield a finding for each team without `team.json`. A team that has no other files either is ignored: only its
    creation was interrupted.
    """
    names = {*disk.names_in(f"{store.address}/teams"), *disk.names_in(f"{store.address}/tasks")}
    for team in sorted(filter(is_name, names.difference(store.teams()))):
        directory, tasks = store.layout.team(team), store.layout.tasks(team)
        files = [f"{directory}/{name}" for name in disk.names_in(directory)]
        files += [f"{tasks}/{name}" for name in disk.names_in(tasks) if name.endswith(".json")]
        if files:
            what = f"its team.json is missing, while there is {min(files)}"
            yield _finding(f"team {team}", what, "Bring it back from a backup, or move the others away.")


def _damaged_records(store: FileStore, team: str, kind: Kind[Record], fix: bool) -> Iterator[Finding]:
    """Yield a finding for each record of a kind that can't be read. With *fix*, the record's file is moved to
    `quarantine`. The file of the team's own record stays: without it the other files would belong to no team.
    """
    problems: list[errors.TeamsError] = []
    try:
        if kind.name == "team":
            store.get(team, kind, team)
        elif kind.name == "message":
            store.read(team, kind, None, 0, problems)
        else:
            list(store.scan(team, kind, problems))
    except errors.TeamsError as failure:
        problems.append(failure)
    for problem in problems:
        path = problem.path if isinstance(problem, errors.DamagedRecord) else ""
        moves = fix and kind.name != "team" and os.path.lexists(path)
        if moves:
            # First note the highest number, so that the number of the moved file is not given again.
            store.reserve(team, kind, store.last(team, kind))
            name = os.path.relpath(path, store.address).replace("/", ".")
            new_path = f"{store.address}/quarantine/{name}.{int(time.time())}"
            disk.make_directories(os.path.dirname(new_path), store.address)
            disk.commit(path, new_path)
            disk.confirm(os.path.dirname(path), path)
            store.correct_hints(team, kind, [os.path.basename(path).removesuffix(".json")])
        yield _finding(f"team {team}", problem.message, problem.hint, "fixed" if moves else "problem")


def _incomplete_packs(store: FileStore, team: str) -> Iterator[Finding]:
    """Yield a finding for each file of packed messages that has fewer or more messages than its first line says."""
    log = store.log(team)
    for segment in log.segments():
        packed = Packed(f"{log.directory}/{segment}")
        if packed.announced != len(packed):
            what = f"has {len(packed)} messages and says that there are {packed.announced}"
            yield _finding(packed.path, what, "Bring it back from a backup, or correct its first line.")


def _wrong_marks(store: FileStore, team: str, kind: Kind[Record], fix: bool) -> Iterator[Finding]:
    """Yield findings for records whose label has no mark, and for marks that do not fit their records. With *fix*,
    correct the marks. A mark is an empty file that shows the label of a record, such as the status of a task, in a
    listing of the index.

    Both faults come from edits by hand. `claim-task --next` tries tasks without a mark last, and reads tasks with a
    wrong mark in vain.
    """
    assert kind.label is not None
    keys_by_label: dict[str, list[str]] = {}
    for record, _ in store.scan(team, kind, []):
        keys_by_label.setdefault(kind.label(record) or "", []).append(getattr(record, kind.key))
    level = "fixed" if fix else "warning"
    for label in sorted({*store.layout.labels(team, kind), *keys_by_label} - {""}):
        # Dictionaries without values keep the order, unlike sets: the findings name the first key.
        keys = dict.fromkeys(keys_by_label.get(label, ()))
        marked = dict.fromkeys(store.labelled(team, kind, label))
        unmarked = [key for key in keys if key not in marked]
        if unmarked:
            if fix:
                store.correct_hints(team, kind, unmarked)
            what = f"{unmarked[0]} is not in the index of {label}"
            if len(unmarked) > 1:
                what += f", nor are {len(unmarked) - 1} others"
            yield _finding(f"team {team}", what, "Use --fix.", level)
        # A record of another label, or none, may have changed since the scan, so each is read again.
        stale = [key for key in marked if key not in keys and _is_stale(store, team, kind, label, key)]
        if stale:
            if fix:
                store.correct_hints(team, kind, stale)
            what = f"{len(stale)} marks of {label} are of records that are not, as {stale[0]}"
            yield _finding(f"team {team}", what, "Use --fix.", level)


def _is_stale(store: FileStore, team: str, kind: Kind[Record], label: str, key: str) -> bool:
    """Whether the mark of the *label* is wrong: the record under *key* does not have the label, or does not exist."""
    assert kind.label is not None
    try:
        return kind.label(store.get(team, kind, key)[0]) != label
    except errors.NotFound:
        return True
    except errors.TeamsError:  # it may have the label
        return False


def _stray_messages(store: FileStore, team: str) -> Iterator[Finding]:
    """Yield a finding for each message outside the numbered directories of the log, where nobody reads it."""
    directory = store.layout.messages(team)
    for name in disk.names_in(directory):
        if name.endswith(".json"):
            yield _finding(f"{directory}/{name}", "is in no inbox", "Send it anew: teams send-message.", "warning")


def _held_locks(store: FileStore, team: str) -> Iterator[Finding]:
    roots = (store.layout.team(team), store.layout.tasks(team))
    for directory, _, files in (each for root in roots for each in os.walk(root)):
        if ".lock" in files and (holder := holder_of(f"{directory}/.lock")):
            what = f"is held by process {holder}"
            if processes.is_stopped(holder):
                what += " which is stopped"
            yield _finding(f"{directory}/.lock", what, f"If it hangs, end process {holder}.", "warning")
