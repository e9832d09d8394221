"""The safeguards of the package: how to take out each, and the tests that should notice. `mutants.py` tries them."""

from __future__ import annotations

from typing import NamedTuple

RACES, CRASH, FILES, LOCKS, NUMBERS = (
    f"tests/store/test_{name}.py" for name in ("races", "crash", "files", "locks", "numbers")
)
CONTRACT, DAMAGE, SERVER = "tests/store/contract", "tests/store/damage", "tests/extensions/postgres"
OWED, AGENTS = "tests/commands/test_owed.py", "tests/agents/test_faults_of_processes.py"
WAITS, REVIEWS = (
    "tests/extensions/http/test_waits.py::test_no_change_is_missed_before_there_is_a_watch",
    "tests/agents/test_reviews.py",
)
CUT = "tests/extensions/postgres/test_cut_servers.py::test_a_command_answers_for_what_it_committed[a reply]"
INSTALL = "tests/clients/test_install.py::test_a_link_in_a_circle_is_refused"
SHAPES, STOPPED = "tests/records/test_field_types.py", "tests/extensions/postgres/test_stopped_writers.py"
LOGS, BLOCKERS = "tests/agents/test_logs.py", "tests/tasks/test_dependencies.py"
STARTED, RESUMED = "tests/agents/test_started_here.py", "tests/agents/test_resuming.py"
WOKEN = f"{RESUMED}::test_what_an_agent_is_told_wakes_it_too"
COPIES = "tests/extensions/postgres/test_copies.py::test_of_two_copies_at_once_the_later_one_wins"
READING = "tests/store/test_reading_again.py"
DOCTOR = "tests/doctor/test_doctor.py"
INBOXES, WORKFLOWS = "tests/messages/test_inbox.py", "tests/workflows/test_workflows.py"
LOGINS, LOGIN_TASKS, LOGIN_CHECKS = (f"{SERVER}/test_logins{more}.py" for more in ("", "_of_tasks", "_of_checks"))
SCHEMA = "../extensions/postgres/schema.sql"


class Mutant(NamedTuple):
    """A safeguard to take out: in *module*, the text *old*, which must be there once, becomes *new*. A module is below
    `teams_cli/store` unless its path says otherwise.
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
        write_all(target, data)
        os.fsync(target)
        os.close(target)
        os.unlink(temp)
"""
MUTANTS = [
    Mutant(
        "no lock",
        "files/locks",
        "fcntl.LOCK_EX | fcntl.LOCK_NB)\n    except BlockingIOError:",
        "fcntl.LOCK_SH)\n    except BlockingIOError:",
        RACES,
    ),
    Mutant(
        "created together and not seen before all have files",
        "files/directories",
        "data = _committed_together(os.path.dirname(path), kind).get(key)",
        "data = None",
        CRASH,
    ),
    Mutant("changed files not opened again", "files/disk", "if state and state ==", "if state or state ==", READING),
    Mutant("no compare-and-swap", "files/engine", "if current != revision:", "if False:", RACES),
    Mutant(
        "compare before the lock only",
        "files/engine",
        """            directories.settle(self.layout, team, kind)
            self._refuse_stale(path, kind, key, revision)
""",
        "            directories.settle(self.layout, team, kind)\n",
        RACES,
    ),
    Mutant("in-place write", "files/disk", "        os.rename(temp, path)\n", IN_PLACE, CRASH),
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
        "            write_all(descriptor, data)\n            os.fsync(descriptor)\n",
        "            write_all(descriptor, data)\n",
        CRASH,
    ),
    Mutant("no directory sync after a rename", "files/disk", "    confirm(os.path.dirname(path), path)\n", "", CRASH),
    Mutant("no parent sync", "files/disk", '        sync_directory(parent or ".")\n', "        pass\n", CRASH),
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
        "        disk.confirm(os.path.dirname(path), path)\n        return (kind",
        "        if is_new:\n            disk.confirm(os.path.dirname(path), path)\n        return (kind",
        CRASH,
    ),
    Mutant(
        "no directory sync behind a message",
        "files/message_log",
        "        disk.confirm(os.path.dirname(path), path)\n        return (kind",
        "        if not is_new:\n            disk.confirm(os.path.dirname(path), path)\n        return (kind",
        CRASH,
    ),
    Mutant(
        "no directory sync behind a change",
        "files/engine",
        "            disk.confirm(directory, path)\n            self._durable",
        "            self._durable",
        CRASH,
    ),
    Mutant(
        "no directory sync behind a new record",
        "files/engine",
        "        disk.confirm(directory, path)\n        count_change()\n        return record, data\n",
        "        count_change()\n        return record, data\n",
        CRASH,
    ),
    Mutant("a heading that is torn", "documents", "_blanked(data, heading(kind, number)) if number", 'b"" if 0', CRASH),
    Mutant(
        "messages packed meanwhile not found",
        "files/message_log",
        "                if packed is None or (data := packed.get(name)) is None:\n                    raise\n",
        "                raise\n",
        "tests/store/test_packed.py",
    ),
    Mutant(
        "a message that a listing passed over lost",
        "files/message_log",
        "if len(listed) < last - after:",
        "if not listed:",
        "tests/store/test_numbers.py",
    ),
    Mutant("marks of others removed", "files/engine", "_marks(outdated, kept)", "_marks(outdated)", FILES),
    Mutant(
        "marks removed while a power cut may take the change back",
        "files/engine",
        "            if not is_synced:",
        "            if True:",
        CRASH,
    ),
    Mutant(
        "an unknown outcome told as a failure",
        "files/disk",
        "        raise errors.OutcomeUnknown(\n",
        "        raise errors.StorageFailed(\n",
        FILES,
    ),
    Mutant("links followed", "files/disk", '| getattr(os, "O_NOFOLLOW", 0) | getattr(', "| getattr(", DAMAGE),
    Mutant(
        "an earlier look taken for the change",
        "../extensions/postgres/connections",
        'return rows != [("",)]',
        "return bool(rows) and not connection.look('SELECT 1 WHERE false')",
        f"{SERVER}/test_broken_connections.py",
    ),
    Mutant(
        "a broken look taken for nothing done",
        "../extensions/postgres/connections",
        "if doubt:\n",
        "if False:\n",
        SERVER,
    ),
    Mutant("numbers by the files alone", "files/engine", "noted, max(noted, newest) + 1", "noted, newest + 1", NUMBERS),
    Mutant(
        "numbers of what is put aside",
        "files/examination",
        "store.reserve(team, kind, store.last(team, kind))",
        "pass",
        NUMBERS,
    ),
    Mutant("closed teams changed", "files/engine", "if says_closed(data, path):", "if False:", CONTRACT),
    Mutant("closing without waiting", "files/whole_team", "if directory not in self._held:", "if False:", FILES),
    Mutant("records too large to be read", "documents", "if len(data) > MAX_RECORD:", "if False:", CONTRACT),
    Mutant(
        "locks of what was moved away",
        "files/locks",
        "if _is_still_at(path, descriptor, opened):  # else",
        "if True:  #",
        LOCKS,
    ),
    Mutant("no lock where there is no flock", "files/locks", "lock.acquire()", "lock.is_locked", LOCKS),
    Mutant(
        "kinds open to logins",
        SCHEMA,
        "= me(of_team)\n            ELSE false\n",
        "= me(of_team)\n            ELSE true\n",
        LOGINS,
    ),
    Mutant(
        "sessions changed by logins",
        SCHEMA,
        "RETURN 'what an agent is run with is not its to change'",
        "RETURN ''",
        LOGINS,
    ),
    Mutant("answers changed by logins", SCHEMA, "RETURN 'an answer that was given stands'", "RETURN ''", LOGINS),
    Mutant(
        "messages ahead of their numbers", SCHEMA, "IF NEW.number IS DISTINCT FROM given OR (said", "IF (said", LOGINS
    ),
    Mutant(
        "numbers that messages say of themselves",
        SCHEMA,
        " OR (said->>'number')::bigint IS DISTINCT FROM given",
        "",
        LOGINS,
    ),
    Mutant(
        "ids that messages say of themselves",
        SCHEMA,
        "        OR said->>'id' IS DISTINCT FROM 'msg-' || given THEN",
        "        THEN",
        LOGINS,
    ),
    Mutant(
        "own work reviewed by a detour",
        SCHEMA,
        "ELSE 'a task stays with who has it, or is free' END",
        "ELSE '' END",
        LOGIN_TASKS,
    ),
    Mutant(
        "free tasks made unreadable by logins",
        SCHEMA,
        "why := unreadable_in_task(NEW.body, NEW.record);",
        "why := '';",
        LOGIN_TASKS,
    ),
    Mutant(
        "usage made unreadable by logins",
        SCHEMA,
        "ELSE unreadable_in_usage(NEW.body, NEW.record) END",
        "ELSE '' END",
        LOGIN_TASKS,
    ),
    Mutant(
        "what can't be read again not recorded",
        "../messages/inboxes",
        "for number in not_open]",
        "for number in ()]",
        INBOXES,
    ),
    Mutant("what is owed left to nobody", "../messages/notices", "    deliver(store, team, kind, record)\n", "", OWED),
    Mutant(
        "refused behind the commit",
        "../messages/notices",
        "    except errors.TeamsError:\n        return False\n    return True",
        "    except errors.NotFound:\n        return False\n    return True",
        OWED,
    ),
    Mutant(
        "forged read numbers believed",
        "../messages/inboxes",
        "keeps_later = inbox",
        "keeps_later = True or inbox",
        NUMBERS,
    ),
    Mutant(
        "mail behind forged read numbers lost", "../messages/inboxes", "having(up_to=position)", "having()", NUMBERS
    ),
    Mutant(
        "numbers that nobody has yet believed",
        "../messages/inboxes",
        "max([self.up_to, *self.listed_numbers()])",
        "self.up_to",
        NUMBERS,
    ),
    Mutant(
        "places in the history ahead of their numbers",
        SCHEMA,
        "IF NEW.position IS DISTINCT FROM given",
        "IF false",
        LOGINS,
    ),
    Mutant(
        "usage taken back by logins",
        SCHEMA,
        "IF TG_OP = 'UPDATE' AND jsonb_typeof(OLD",
        "IF false AND jsonb_typeof(OLD",
        LOGIN_TASKS,
    ),
    Mutant(
        "what happened to a task taken back by logins",
        SCHEMA,
        "IF gone > 0 AND NOT (",
        "IF false AND NOT (",
        LOGIN_CHECKS,
    ),
    Mutant(
        "what can't be looked at is gone",
        "../processes",
        "are open\n        return None",
        "are open\n        return True",
        AGENTS,
    ),
    Mutant(
        "notices wake nobody",
        "../messages/messages",
        "    wake: bool = True,\n    about: str",
        "    wake: bool = False,\n    about: str",
        WOKEN,
    ),
    Mutant(
        "closed teams meant",
        "../environment",
        "[name for name in names if is_open(name)] or names",
        "names",
        "tests/hooks/test_hooks.py::test_the_only_open_team_need_not_be_named",
    ),
    Mutant(
        "refused for want of a mark on what was answered",
        "../messages/reading",
        "    except errors.TeamsError as problem:\n        open_still = f",
        "    except errors.MessageNotFound as problem:\n        open_still = f",
        CUT,
    ),
    Mutant(
        "wishes of any form",
        "../extensions/postgres/line",
        'if not isinstance(request["channels"], list) or',
        "if",
        f"{SERVER}/test_watcher.py",
    ),
    Mutant(
        "what is no file read as a workflow",
        "files/disk",
        "if not stat.S_ISREG(os.fstat(file",
        "if not (os.fstat(file",
        f"{WORKFLOWS}::test_what_is_no_regular_file_is_no_workflow",
    ),
    Mutant("written what is not read again", "documents", "if not fits(kind, document):", "if False:", CONTRACT),
    Mutant("a checksum taken for the truth", "documents", "if fits(kind.record, document) else None", "", SHAPES),
    Mutant("a blocker that can't be read raised", "../tasks/dependencies", 'return "unreadable"', "raise", BLOCKERS),
    Mutant(
        "histories without a place", "files/engine", "(self.layout.team(team), self.address)", "('/', '/')", CONTRACT
    ),
    Mutant(
        "closed teams changed, there",
        SCHEMA,
        "IF FOUND THEN\n        RAISE 'team",
        "IF false THEN\n        RAISE 'team",
        STOPPED,
    ),
    Mutant("closing without waiting, there", SCHEMA, "PERFORM pg_advisory_xact_lock(", "PERFORM (", STOPPED),
    Mutant("missed before there is a watch", "../serving/watching", "team), EVERY_TOPIC", "team), frozenset()", WAITS),
    Mutant("keys not compared", "documents", "if key and getattr(record, kind.key) != key:", "if False:", DAMAGE),
    Mutant("a copy that was overtaken goes on", "../copying", "if now.copy_ != closed.copy_:", "if False:", COPIES),
    Mutant(
        "handled entries without bound",
        "../messages/inboxes",
        "handled=up_to_position[-_MAX_HANDLED:] + after_position,",
        "handled=up_to_position + after_position,",
        f"{INBOXES}::test_an_inbox_behind_a_damaged_message_does_not_grow",
    ),
    Mutant("what a crash left kept", "files/examination", "if is_old and name !=", "if False and name !=", DOCTOR),
    Mutant("stale marks kept", "files/examination", "        if stale:\n", "        if False:\n", DOCTOR),
]
