"""The plan or the task that a message is about, as it is now."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.store.contract import Store
from teams_cli.tasks import tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def of(store: Store, team: str, about: str) -> dict[str, Any] | None:
    """The plan or the task of that id; None where it is another thing, or can't be read: the doctor tells of that, and
    the message is shown as it is.
    """
    kind = about.partition("-")[0]
    try:
        if kind == "plan":
            from teams_cli.tasks import plans

            return plans.get(store, team, about).to_document()
        return tasks.get(store, team, about).to_document() if kind == "task" else None
    except errors.TeamsError:
        return None
