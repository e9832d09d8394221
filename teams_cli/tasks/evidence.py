"""Evidence: files that are attached to a task. The team keeps copies of them."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind, Store
from teams_cli.store.files import disk
from teams_cli.tasks.checks import Evidence
from teams_cli.teams import teams

MOST = 1024 * 1024
"""The maximum size of an attached file, in bytes."""
MOST_FILES = 20
"""The maximum number of files attached to a task."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from teams_cli.records.types import Name, TaskId, Text, Time, Word
    from teams_cli.tasks.tasks import Task

    File = tuple[str, bytes]
    """A file to attach: its name and its content."""


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


def read(path: str) -> File:
    """Read the file to attach. Return its name, without the directory, and its content.

    Raises:
        InvalidValue: The file can't be read, or is larger than 1 MiB.
    """
    try:
        content = disk.read_named(path, MOST + 1)  # one byte more shows that the file is too large
    except OSError as error:
        raise errors.InvalidValue(
            f"the attachment {path} can't be read: {error.strerror}", "Give the path of a file."
        ) from None
    if len(content) > MOST:
        raise errors.InvalidValue(f"the attachment {path} is larger than {MOST} bytes", "Attach the relevant part.")
    return os.path.basename(path), content


def keep(store: Store, team: str, task: str, by: str, file: File) -> Evidence:
    """Store a copy of the *file* that the member *by* attaches, and return its entry for the task's evidence."""
    from base64 import b64encode  # these imports take time, and most tasks are completed without evidence
    from hashlib import sha256

    name, content = file
    now = teams.now(store)
    draft = Copy(task=task, name=name, content=b64encode(content).decode(), by=by, at=now)
    copy, _ = store.create(team, COPY, None, draft)
    digest = sha256(content).hexdigest()
    return Evidence(id=copy.id, name=name, size=len(content), sha256=digest, by=by, at=now)


def not_attached(task: Task, files: Sequence[File]) -> list[File]:
    """Return those of the *files* that the task does not have yet. Two files are the same if both their names and their
    contents are equal.
    """
    from hashlib import sha256

    attached = {(file.name, file.sha256) for file in task.evidence or ()}
    return [(name, content) for name, content in files if (name, sha256(content).hexdigest()) not in attached]


def refuse_too_many(task: Task, files: Sequence[File]) -> None:
    """Raise Conflict if the task would have more than the allowed number of files with these new *files*."""
    attached = len(task.evidence or ())
    if attached + len(files) > MOST_FILES:
        raise errors.Conflict(
            f"{task.id} has {attached} attachments, and {MOST_FILES} are allowed",
            "Attach the relevant ones, or one archive.",
        )


def find(task: Task, name_or_id: str) -> Evidence:
    """Return the attached file of the task with that name or id; if several files have the name, the newest of them.

    Raises:
        EvidenceNotFound: The task has no such file.
    """
    attached = task.evidence or []
    for file in reversed(attached):
        if name_or_id in (file.name, file.id, file.id.removeprefix("evidence-")):
            return file
    names = ", ".join(file.name for file in attached)
    raise EvidenceNotFound(
        f"{task.id} has no attachment {name_or_id!r}",
        f"It has: {names}." if attached else f"See: teams show-task {task.id}",
    )


def content(store: Store, team: str, attached: Evidence) -> bytes:
    """Return the content of the file as it was attached.

    Raises:
        DamagedRecord: The copy does not have the digest that was noted when the file was attached.
    """
    from base64 import b64decode
    from hashlib import sha256

    try:
        copied = b64decode(store.get(team, COPY, attached.id)[0].content)
    except ValueError:  # the copy is not valid base64
        copied = None
    if copied is None or sha256(copied).hexdigest() != attached.sha256:
        raise errors.DamagedRecord(
            f"the copy of {attached.name} ({attached.id}) differs from the attached file",
            f"Ask {attached.by} for the file again.",
        )
    return copied
