"""The command on evidence."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.commands.declaration import Command, argument, option, table
from teams_cli.tasks import evidence, tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call

_GET = """List the files attached to a task, or show one of them as it was attached.

Its digest is checked first. A file that is not text is written with `--out`.

Raises:
    TaskNotFound: There is no such task.
    NotFound: The task has no such file.
    DamagedRecord: The copy differs from the attached file.
"""


def _get(call: Call, task: str, file: str | None, out: str | None) -> Any:
    found = tasks.get(call.store, call.load_team().name, task)
    if file is None:
        if out is not None:
            raise errors.WrongUsage(
                "the name of the file is missing", f"Write: teams get-evidence {task} NAME --out FILE"
            )
        return [{**one.to_json(), "task": found.id} for one in found.evidence or ()]
    one = evidence.find(found, file)
    content = evidence.content(call.store, call.team, one)
    document = {**one.to_json(), "task": found.id}
    if out is not None:
        call.words = "evidence:written"
        return {**document, "path": _write(os.path.join(call.directory, out), content)}
    call.words = "evidence:whole"
    return {**document, **_shown(content)}


def _write(path: str, content: bytes) -> str:
    """Write it to a new file; its path."""
    try:
        with open(path, "xb") as file:
            file.write(content)
    except OSError as error:
        raise errors.InvalidValue(
            f"{path} can't be written: {error.strerror}", "Give the name of a new file."
        ) from None
    return path


def _shown(content: bytes) -> dict[str, str]:
    """The content as JSON can have it: text as such, anything else in base 64."""
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        from base64 import b64encode

        return {"base64": b64encode(content).decode()}


COMMANDS = table(
    "Tasks",
    Command(
        "get-evidence",
        _get,
        argument("ID", "The task: 7, #7 or task-7.", name="task"),
        argument("NAME", "One of its files: its name, or evidence-3.", name="file", required=False),
        option("--out", "Write it to this new file.", metavar="FILE", at_shell=True),
        doc=_GET,
        reads=True,
        words="evidence:listed",
        gist=("id", "name", "size", "by"),
        held="task file out>",
        example="get-evidence 7 report.txt",
        also="evidence read-evidence attachment attachments",
    ),
)
