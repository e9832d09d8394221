"""Show that the tests have teeth: take one safeguard out of a copy of the package, and see that a test fails.

Run with `python -m tests.store.mutants`; ends with 1 if a mutant survives. Each is tried on a copy, never here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parents[2]
RACES, CRASH, FILES, LOCKS, NUMBERS = (
    f"tests/store/test_{name}.py" for name in ("races", "crash", "files", "locks", "numbers")
)
CONTRACT, DAMAGE, SERVER = "tests/store/contract", "tests/store/damage", "tests/store/postgres"
OWED, AGENTS = "tests/commands/test_owed.py", "tests/agents/test_faults_of_processes.py"
PIPES = "tests/workflows/test_workflows.py::test_what_is_no_regular_file_is_no_workflow"
CUT = "tests/faults/test_cut_servers.py::test_what_is_made_is_answered_for[handing over]"
INSTALL = "tests/clients/test_install.py::test_a_link_in_a_circle_is_refused"
SHAPES, STOPPED = "tests/store/test_shapes.py", "tests/store/postgres/test_stopped_writers.py"
LOGS, BLOCKERS = "tests/agents/test_logs.py", "tests/tasks/test_dependencies.py"
LOGINS, INBOXES, WORKFLOWS = "teams/test_logins", "messages/test_inbox", "workflows/test_workflows"


class Mutant(NamedTuple):
    """A safeguard taken out: in *module* the text *old*, which must be there once, becomes *new*. A module is below
    `teams_cli/store`, or where its path says.
    """

    name: str
    module: str
    old: str
    new: str
    tests: str
    """The tests that ought to notice."""


IN_PLACE = """\
        with open(temp, "rb") as source:
            data = source.read()
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        _write_all(target, data)
        os.fsync(target)
        os.close(target)
        os.unlink(temp)
"""
MUTANTS = [
    Mutant(
        "no lock",
        "files/locks",
        "fcntl.LOCK_EX | fcntl.LOCK_NB)\n                break",
        "fcntl.LOCK_SH)\n                break",
        RACES,
    ),
    Mutant(
        "created together and not seen before all have files",
        "files/together",
        "data = _waiting(os.path.dirname(path), kind).get(key)",
        "data = None",
        CRASH,
    ),
    Mutant("no compare-and-swap", "files/engine", "if current != revision:", "if False:", RACES),
    Mutant(
        "compare before the lock only",
        "files/engine",
        """            together.settle(self.layout, team, kind)
            self._refuse_stale(path, kind, key, revision)
""",
        "            together.settle(self.layout, team, kind)\n",
        RACES,
    ),
    Mutant(
        "in-place write",
        "files/disk",
        "        os.rename(temp, path)\n",
        IN_PLACE,
        CRASH,
    ),
    Mutant(
        "in-place write, seen by readers",
        "files/disk",
        "        os.rename(temp, path)\n",
        IN_PLACE,
        f"{RACES}::test_a_reader_sees_whole_records_and_none_twice_in_the_wrong_order",
    ),
    Mutant(
        "no file sync",
        "files/disk",
        "            _write_all(descriptor, data)\n            os.fsync(descriptor)\n",
        "            _write_all(descriptor, data)\n",
        CRASH,
    ),
    Mutant(
        "no directory sync after a rename",
        "files/disk",
        "    confirm(os.path.dirname(path), path)\n",
        "",
        CRASH,
    ),
    Mutant(
        "no parent sync",
        "files/disk",
        '        sync_directory(parent or ".")\n',
        "        pass\n",
        CRASH,
    ),
    Mutant(
        "directories that are there taken for durable",
        "files/disk",
        'if os.path.isdir(path) and (not path.startswith(root) or os.path.lexists(f"{path}/.lock")):',
        "if os.path.isdir(path):",
        CRASH,
    ),
    Mutant(
        "a repeated uid not synced",
        "files/message_log",
        "            disk.confirm(os.path.dirname(earlier), earlier)\n",
        "",
        CRASH,
    ),
    Mutant(
        "no directory sync behind a message",
        "files/message_log",
        "        disk.confirm(os.path.dirname(path), path)\n        return kind",
        "        return kind",
        CRASH,
    ),
    Mutant(
        "no directory sync behind a change",
        "files/engine",
        "        disk.confirm(directory, path)\n        self.changed += 1\n        former",
        "        self.changed += 1\n        former",
        CRASH,
    ),
    Mutant(
        "no directory sync behind a new record",
        "files/engine",
        '        disk.confirm(directory, f"{directory}/{key}.json")\n',
        "",
        CRASH,
    ),
    Mutant("a heading that is torn", "documents", "_blanked(data, heading(kind, number)) if number", 'b"" if 0', CRASH),
    Mutant("marks of others removed", "files/engine", "marks.clear(paths, kept)", "marks.clear(paths)", FILES),
    Mutant(
        "an unknown outcome told as a failure",
        "files/disk",
        "        raise OutcomeUnknown(\n",
        "        raise StorageFailed(\n",
        FILES,
    ),
    Mutant("links followed", "files/disk", '| getattr(os, "O_NOFOLLOW", 0) | getattr(', "| getattr(", DAMAGE),
    Mutant(
        "an earlier look taken for the change",
        "postgres/connections",
        'return found != [("",)]',
        "return bool(found) and not connection.look('SELECT 1 WHERE false')",
        f"{SERVER}/test_broken_connections.py",
    ),
    Mutant("a broken look taken for nothing done", "postgres/connections", "if doubts:\n", "if False:\n", SERVER),
    Mutant(
        "numbers by the files alone", "files/engine", "before, max(before, newest) + 1", "before, newest + 1", NUMBERS
    ),
    Mutant(
        "numbers of what is put aside", "files/examination", "store.reserve(team, kind,", "len((team, kind,", NUMBERS
    ),
    Mutant("closed teams changed", "files/engine", "if says_closed(data, path):", "if False:", CONTRACT),
    Mutant("closing without waiting", "files/closing", "if directory not in self._held and", "if False and", FILES),
    Mutant("records too large to be read", "documents", "if len(data) > MAX_RECORD:", "if False:", CONTRACT),
    Mutant(
        "locks of what was moved away",
        "files/locks",
        "if _still_there(descriptor, path):  # else",
        "if True:  #",
        LOCKS,
    ),
    Mutant("no lock where there is no flock", "files/locks", "lock.acquire()", "lock.is_locked", LOCKS),
    Mutant(
        "kinds open to logins",
        "postgres/schema.sql",
        "= me(of_team)\n            ELSE false\n",
        "= me(of_team)\n            ELSE true\n",
        f"tests/{LOGINS}.py",
    ),
    Mutant(
        "sessions changed by logins",
        "postgres/schema.sql",
        "RETURN 'what an agent is run with is not its to change'",
        "RETURN ''",
        f"tests/{LOGINS}.py",
    ),
    Mutant(
        "answers changed by logins",
        "postgres/schema.sql",
        "RETURN 'an answer that was given stands'",
        "RETURN ''",
        f"tests/{LOGINS}.py",
    ),
    Mutant(
        "messages ahead of their numbers",
        "postgres/schema.sql",
        "IF NEW.number IS DISTINCT FROM given OR (said",
        "IF (said",
        f"tests/{LOGINS}.py",
    ),
    Mutant(
        "numbers that messages say of themselves",
        "postgres/schema.sql",
        " OR (said->>'number')::bigint IS DISTINCT FROM given",
        "",
        f"tests/{LOGINS}.py",
    ),
    Mutant(
        "ids that messages say of themselves",
        "postgres/schema.sql",
        "        OR said->>'id' IS DISTINCT FROM 'msg-' || given THEN",
        "        THEN",
        f"tests/{LOGINS}.py",
    ),
    Mutant(
        "what can't be read again not recorded",
        "../messages/inboxes",
        "for number in sorted(numbers - seen)]",
        "for number in ()]",
        f"tests/{INBOXES}.py",
    ),
    Mutant(
        "aliases without bound",
        "../workflows/files",
        "            _size(node, {})\n",
        "            pass\n",
        f"tests/{WORKFLOWS}.py::test_a_short_file_that_stands_for_millions_of_values_is_refused[itself]",
    ),
    Mutant(
        "what is owed left to nobody",
        "../messages/notices",
        "    deliver(store, team, kind, record)\n    return None\n",
        "    return None\n",
        OWED,
    ),
    Mutant(
        "refused behind the commit",
        "../messages/notices",
        "    except TeamsError:\n        return False\n    return True",
        "    except NotFound:\n        return False\n    return True",
        OWED,
    ),
    Mutant("orphans not adopted", "../agents/keeper", "    processes.adopt_orphans(alone=True)\n", "", AGENTS),
    Mutant(
        "frozen keepers not told of",
        "../agents/ending",
        "return pid if processes.is_stopped(pid) else None",
        "return None",
        f"{AGENTS}::test_a_keeper_that_stands_still_is_named_and_can_be_ended",
    ),
    Mutant(
        "forged read numbers believed", "../messages/inboxes", "believed = inbox", "believed = True or inbox", NUMBERS
    ),
    Mutant("mail behind forged read numbers lost", "../messages/inboxes", "having(up_to=back)", "having()", NUMBERS),
    Mutant(
        "numbers that nobody has yet believed",
        "../messages/inboxes",
        "max([self.up_to, *self.named()])",
        "self.up_to",
        NUMBERS,
    ),
    Mutant(
        "places in the history ahead of their numbers",
        "postgres/schema.sql",
        "IF NEW.position IS DISTINCT FROM given",
        "IF false",
        f"tests/{LOGINS}.py",
    ),
    Mutant(
        "usage taken back by logins",
        "postgres/schema.sql",
        "IF TG_OP = 'UPDATE' AND jsonb_typeof(OLD",
        "IF false AND jsonb_typeof(OLD",
        f"tests/{LOGINS}_of_usage.py",
    ),
    Mutant(
        "landings of a login anywhere",
        "../agents/landings/lander",
        "known_here.check(store, team, landing)",
        "pass",
        f"tests/{LOGINS}_of_checks.py",
    ),
    Mutant(
        "reviews of one's own work",
        "postgres/schema.sql",
        "OR was->>'owner' = who OR said",
        "OR said",
        f"tests/{LOGINS}_of_checks.py",
    ),
    Mutant(
        "refused for want of a line in the history",
        "../teams/history",
        "except TeamsError:  # the time",
        "except InvalidValue:  # the time",
        CUT,
    ),
    Mutant(
        "wishes of any form",
        "postgres/line",
        'if not isinstance(wanted["channels"], list) or',
        "if",
        f"{SERVER}/test_watcher.py",
    ),
    Mutant("mail of a killed turn lost", "../agents/sessions", "if numbers and session.given:", "if False:", AGENTS),
    Mutant(
        "what is no file read as a workflow",
        "files/disk",
        "if not stat.S_ISREG(os.fstat(file",
        "if not (os.fstat(file",
        PIPES,
    ),
    Mutant("launchers not looked for", "../agents/starting", "if member.launcher is None:", "if True:", AGENTS),
    Mutant(
        "links in circles followed", "../clients/installation", "if os.path.islink(existing):", "if False:", INSTALL
    ),
    Mutant("a checksum taken for the truth", "documents", "if fits(kind.record, document) else None", "", SHAPES),
    Mutant("logs without bound", "../agents/logs", "if turn < turns and (room", "if False and (room", LOGS),
    Mutant("a blocker that can't be read raised", "../tasks/dependencies", 'return "unreadable"', "raise", BLOCKERS),
    Mutant(
        "histories without a place", "files/engine", "(self.layout.team(team), self.address)", "('/', '/')", CONTRACT
    ),
    Mutant(
        "closed teams changed, there",
        "postgres/schema.sql",
        "IF FOUND THEN\n        RAISE 'team",
        "IF false THEN\n        RAISE 'team",
        STOPPED,
    ),
    Mutant(
        "closing without waiting, there", "postgres/schema.sql", "PERFORM pg_advisory_xact_lock(", "PERFORM (", STOPPED
    ),
    Mutant("keys not compared", "documents", "if key and getattr(record, kind.key) != key:", "if False:", DAMAGE),
]


def main() -> int:
    """Try the package as it is, then each mutant, some at a time; print a table."""
    print(f"{'mutant':46} {'caught by':66} seconds")
    together = (os.cpu_count() or 1) + 2  # they wait more than they work
    with ThreadPoolExecutor(together) as pool:
        survived = sum(pool.map(_survives, [None, *MUTANTS]))
    return 1 if survived else 0


def _survives(mutant: Mutant | None) -> bool:
    """Whether the tests find nothing wrong with the mutant, or something with the package as it is; says so."""
    with tempfile.TemporaryDirectory() as place:
        copy = copied(Path(place))
        tests = [mutant.tests] if mutant else list(dict.fromkeys(m.tests for m in MUTANTS))
        if mutant:
            apply(mutant, copy)
        began = time.monotonic()
        caught = failing_test(copy, tests)
    said = caught or ("SURVIVED" if mutant else "-")
    print(f"{mutant.name if mutant else 'none':46} {said:66} {time.monotonic() - began:7.1f}", flush=True)
    return not caught if mutant else bool(caught)


def copied(place: Path) -> Path:
    """A fresh copy of the package and its tests."""
    copy = place / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(HERE / "teams_cli", copy / "teams_cli", ignore=ignored)
    shutil.copytree(HERE / "tests", copy / "tests", ignore=ignored)
    shutil.copy(HERE / "pyproject.toml", copy / "pyproject.toml")
    return copy


def target(mutant: Mutant, copy: Path) -> Path:
    """The file that the mutant changes."""
    return copy / "teams_cli/store" / (mutant.module if "." in mutant.module[2:] else f"{mutant.module}.py")


def apply(mutant: Mutant, copy: Path) -> None:
    path = target(mutant, copy)
    text = path.read_text()
    assert text.count(mutant.old) == 1, f"{mutant.name}: the text to replace is {text.count(mutant.old)} times there"
    path.write_text(text.replace(mutant.old, mutant.new))


def failing_test(copy: Path, tests: list[str]) -> str:
    """The name of the first test that fails on the copy; empty if all pass."""
    run = subprocess.run(
        [
            sys.executable,
            *["-m", "pytest", "-n0", "-q", "-x", "--tb=no", "-p", "no:cacheprovider", "-m"],
            "not browser",
            *(["-k", "not postgres"] if not any(name in " ".join(tests) for name in ("postgres", LOGINS)) else []),
            *tests,
        ],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    if run.returncode not in (0, 1):
        raise SystemExit(f"the tests could not run:\n{run.stdout}{run.stderr}")
    names = [
        line.split(" ", 1)[1].split(" - ")[0]
        for line in run.stdout.splitlines()
        if line.startswith(("FAILED", "ERROR"))
    ]
    return names[0].removeprefix("tests/store/") if names else ""


if __name__ == "__main__":
    sys.exit(main())
