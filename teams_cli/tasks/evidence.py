"""Evidence: files that are attached to a task. A copy is kept."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind, Store
from teams_cli.store.files import disk
from teams_cli.tasks.checks import Evidence
from teams_cli.teams import teams

MOST = 1024 * 1024
"""The largest size of a file in bytes."""
MOST_FILES = 20
"""The largest number of files of a task."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from teams_cli.records.types import Name, TaskId, Text, Time, Word
    from teams_cli.tasks.tasks import Task


class EvidenceNotFound(errors.NotFound):
    """The task has no such evidence."""


class Copy(Record):
    """The copy of a file: its content in base64."""

    id: Word = ""
    task: TaskId
    name: Text
    content: Text
    by: Name
    at: Time


COPY: Kind[Copy] = Kind("evidence", Copy, numbered=True, logins="copy")


class File:
    """A file to attach."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        self.content = content


def read(path: str) -> File:
    """Read the file to attach.

    Raises:
        InvalidValue: It can't be read, is none, or is larger than 1 MiB.
    """
    try:
        content = disk.read_named(path, MOST + 1)
    except OSError as error:
        raise errors.InvalidValue(
            f"the attachment {path} can't be read: {error.strerror}", "Give the path of a file."
        ) from None
    if len(content) > MOST:
        raise errors.InvalidValue(f"the attachment {path} is larger than {MOST} bytes", "Attach the relevant part.")
    return File(os.path.basename(path), content)


def keep(store: Store, team: str, task: str, by: str, file: File) -> Evidence:
    """Store a copy of the file, and return its entry for the task."""
    from base64 import b64encode  # these two are dear, and most tasks are completed without evidence
    from hashlib import sha256

    now = teams.now(store)
    draft = Copy(task=task, name=file.name, content=b64encode(file.content).decode(), by=by, at=now)
    kept, _ = store.create(team, COPY, None, draft)
    digest = sha256(file.content).hexdigest()
    return Evidence(id=kept.id, name=file.name, size=len(file.content), sha256=digest, by=by, at=now)


def refuse_too_many(task: Task, files: Sequence[File]) -> None:
    """Raises Conflict: The task would have too many files."""
    had = len(task.evidence or ())
    if had + len(files) > MOST_FILES:
        raise errors.Conflict(
            f"{task.id} has {had} attachments, and {MOST_FILES} are allowed",
            "Attach the relevant ones, or one archive.",
        )


def find(task: Task, word: str) -> Evidence:
    """Return the file of the task with that id or name. Of several with the name, the newest.

    Raises:
        EvidenceNotFound: The task has none.
    """
    had = task.evidence or []
    for one in reversed(had):
        if word in (one.name, one.id, one.id.removeprefix("evidence-")):
            return one
    names = ", ".join(one.name for one in had)
    raise EvidenceNotFound(
        f"{task.id} has no attachment {word!r}", f"It has: {names}." if had else f"See: teams show-task {task.id}"
    )


def content(store: Store, team: str, handed_in: Evidence) -> bytes:
    """Return the content of the file as it was attached.

    Raises:
        DamagedRecord: The copy has another digest by now.
    """
    from base64 import b64decode
    from hashlib import sha256

    try:
        kept = b64decode(store.get(team, COPY, handed_in.id)[0].content)
    except ValueError:  # no base 64
        kept = None
    if kept is None or sha256(kept).hexdigest() != handed_in.sha256:
        raise errors.DamagedRecord(
            f"the copy of {handed_in.name} ({handed_in.id}) differs from the attached file",
            f"Ask {handed_in.by} for the file again.",
        )
    return kept
