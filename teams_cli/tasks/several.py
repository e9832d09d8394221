"""Several tasks that are changed in the same way: all of them, or none."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.names import id_of
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update_all
from teams_cli.tasks import changes, tasks
from teams_cli.tasks.changes import Edit
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller


def change_each(store: Store, team_name: str, caller: Caller | None, words: list[str], edit: Edit) -> list[Task]:
    """Change several tasks in the same way, in one commit; none if one of them can't be so changed.

    Raises:
        WrongUsage: The change is one that only a single task can have.
        TaskNotFound, NotAllowed, WrongState, DependencyCycle: As for one of them.
    """
    _refuse_for_several(edit)
    who = require(store, team_name, caller, "update-task", words[0])
    found = [tasks.get(store, team_name, key) for key in dict.fromkeys(id_of(word, "task") for word in words)]
    for task in found:
        changes.try_change(store, who, task, edit)
    if edit.owner:
        presence.forget_ended_process(store, team_name, edit.owner)
    keys = [task.id for task in found]
    pairs = update_all(store, team_name, tasks.TASK, keys, lambda task: changes.changed_by(store, who, task, edit))
    return [changes.followed(store, who, before, task, edit) for before, task in pairs]


def _refuse_for_several(edit: Edit) -> None:
    """Refuse what one task alone can have: its title, its claim, its end, what came of it, and evidence for that."""
    ends = edit.status in ("completed", "failed")
    if ends or edit.result is not None or edit.claim is not None or "title" in edit.fields or edit.keeping:
        raise errors.WrongUsage(
            "a title, claim, result, attachment or final status is for one task only", "Name one task."
        )
    edit.refuse_senseless()
