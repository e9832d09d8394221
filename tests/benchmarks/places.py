"""Teams of a given size, written straight to the disk."""

from __future__ import annotations

import json
from pathlib import Path

from teams_cli.membership import joining
from teams_cli.messages.inboxes import Inbox
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.records.records import Record
from teams_cli.store.contract import update
from teams_cli.store.documents import encode
from teams_cli.store.files import directories
from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import claims, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence, settings
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA

NOW = "2030-01-01T00:00:00.000Z"
UNREAD = 10
FREE = tasks.free_label("normal")
WORKERS = 8


class Place:
    """A root with a team of *count* messages and tasks, and the means to restore it after a command."""

    def __init__(self, root: Path, count: int) -> None:
        self.root = root
        self.count = count
        store = FileStore(str(root))
        joining.spawn_team(store, ALPHA, Caller("lea"))
        for n in range(WORKERS):
            joining.join(store, ALPHA, Caller(f"a{n}"))
        settings.change(store, ALPHA, Caller("lea"), "staleAfterSeconds", "100000")
        (root / f"teams/{ALPHA}/inboxes").mkdir()
        for number in range(1, count + 1):
            self.put_task(number)
            self._put_message(number)
        for kind in (tasks.TASK, MESSAGE):
            store.reserve(ALPHA, kind, count)
        self._lengthen_history()
        self.put_inbox()
        seen = presence.note_sign_of_life(store, ALPHA, "a0").last_seen
        update(store, ALPHA, presence.AGENT, "a0", lambda agent: agent.having(renewed_at=seen))
        self._seen = self._agent.read_bytes()

    @property
    def _agent(self) -> Path:
        return self.root / f"teams/{ALPHA}/agents/a0.json"

    def put_task(self, number: int, status: str = "pending") -> None:
        """Write the task as it was before it was claimed, or with the *status*, to its file and to the
        index.
        """
        directory, key = self.root / f"tasks/{ALPHA}", f"task-{number}"
        said = {"title": f"number {number}", "created_by": "lea", "created_at": NOW, "updated_at": NOW}
        _write(directory / f"{key}.json", Task(id=key, team_name=ALPHA, status=status, **said))
        paths = {
            label: f"{directory}/index/{directories.path_in_index(label, key)}"
            for label in (FREE, tasks.IN_PROGRESS, status)
        }
        own = paths[FREE if status == "pending" else status]
        directories.make_marks([own])
        directories.clear_marks(paths.values(), kept=[own])

    def claim_task(self, number: int) -> None:
        self.put_task(number)
        claims.claim(FileStore(str(self.root)), ALPHA, Caller("a1"), f"task-{number}")

    def _lengthen_history(self) -> None:
        entries = ({"at": NOW, "actor": "a7", "what": "status changed", "text": f"at {n}"} for n in range(self.count))
        with (self.root / f"teams/{ALPHA}/history.jsonl").open("a") as file:
            file.writelines(f"{json.dumps(entry)}\n" for entry in entries)

    def forget_told(self) -> None:
        """Make the last ten messages unread, and have their reader be told of nothing yet."""
        self.put_inbox()
        self._agent.write_bytes(self._seen)

    def _put_message(self, number: int) -> None:
        directory = self.root / f"teams/{ALPHA}/messages/{number // 1000}"
        directory.mkdir(parents=True, exist_ok=True)
        message = Message(id=f"msg-{number}", number=number, from_="lea", to="a0", message="hello", timestamp=NOW)
        _write(directory / f"{number}.a0.{number:016x}.json", message)

    def put_inbox(self, unread: int = UNREAD) -> None:
        """Make the last *unread* messages unread, and all messages before them handled."""
        inbox = Inbox(agent="a0", up_to=max(self.count - unread, 0), settled_at=NOW)
        _write(self.root / f"teams/{ALPHA}/inboxes/a0.json", inbox)

    def drop_sent(self) -> None:
        """Remove the message that a command sent, so that its number is given again."""
        number, log = self.count + 1, self.root / f"teams/{ALPHA}/messages"
        for path in (log / f"{number // 1000}").glob(f"{number}.*"):
            path.unlink()
        (log / f".last.{number}").rename(log / f".last.{self.count}")


def _write(path: Path, record: Record) -> None:
    path.write_bytes(encode(record))
