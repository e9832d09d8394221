"""Creating tasks: one, for somebody or for anybody; or many that wait for each other, all of them or none."""

from __future__ import annotations

from contextlib import suppress

from teams_cli.errors import DependencyCycle, InvalidValue, TeamsError
from teams_cli.messages.notices import deliver
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import assigning, claims, tasks
from teams_cli.tasks.tasks import TASK, Task
from teams_cli.teams import teams
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller


def create_for(store: Store, team_name: str, caller: Caller | None, draft: Task, name: str) -> Task:
    """Add a task that is kept for one member, who is told of it now and when it becomes ready.

    Raises:
        AgentNotFound: There is no such active member.
        NotAllowed: The member may not claim it.
        TaskNotFound, InvalidValue: As for `tasks.create`.
    """
    at = require(store, team_name, caller, "create-task", draft.title)
    team, caller = at.team, at.caller
    claims.refuse_unable(team, name, caller)
    assigning.refuse_unskilled(team, draft, name, caller.config)
    for blocker in draft.blocked_by:
        tasks.get(store, team_name, blocker)
    task = tasks.create(store, team_name, caller, assigning.kept_from_the_start(store, team, draft, name, caller.name))
    deliver(store, team_name, TASK, task)
    return task


class Planned:
    """A task that is to be created with others: *waits_for* names some of these, or tasks that there are."""

    def __init__(self, key: str, draft: Task, waits_for: list[str]) -> None:
        self.key = key
        self.draft = draft
        self.waits_for = waits_for


def create_all(store: Store, team_name: str, caller: Caller | None, planned: list[Planned]) -> list[Task]:
    """Add tasks with their dependencies, each behind those that it waits for. All is checked before the first is added;
    where the disk then refuses one, those that were added are cancelled.

    Raises:
        InvalidValue: A key is given twice, or a text is blank or too long.
        TaskNotFound: One waits for what is neither among them nor there.
        DependencyCycle: Some wait for each other.
    """
    require(store, team_name, caller, "create-task", f"{len(planned)} tasks")
    ids = _known(store, team_name, planned)
    ordered = _ordered(planned)
    for one in ordered:
        tasks.check(one.draft)
    made: list[Task] = []
    try:
        for one in ordered:
            blockers = list(dict.fromkeys(ids[key] for key in one.waits_for))
            made.append(tasks.create(store, team_name, caller, one.draft.having(blocked_by=blockers)))
            ids[one.key] = made[-1].id
    except TeamsError:
        _take_back(store, team_name, made)
        raise
    return made


def _known(store: Store, team: str, planned: list[Planned]) -> dict[str, str]:
    """The tasks that they wait for and that are there, by the word for each."""
    keys = [one.key for one in planned]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise InvalidValue(f"{twice[0]} is given twice", "Give each task an id of its own.")
    words = {word for one in planned for word in one.waits_for} - set(keys)
    return {word: tasks.get(store, team, word).id for word in sorted(words)}


def _ordered(planned: list[Planned]) -> list[Planned]:
    """Each behind those that it waits for, else as they were given."""
    keys = {one.key for one in planned}
    done: dict[str, Planned] = {}
    while len(done) < len(planned):
        ready = [one for one in planned if one.key not in done and done.keys() >= keys.intersection(one.waits_for)]
        if not ready:
            circle = ", ".join(one.key for one in planned if one.key not in done)
            raise DependencyCycle(f"these wait for each other: {circle}", "Drop one of the dependencies.")
        done[ready[0].key] = ready[0]
    return list(done.values())


def _take_back(store: Store, team: str, made: list[Task]) -> None:
    """Cancel what was added, last first; what can't be cancelled either stays, and is listed."""
    now = teams.now(store)

    def cancelled(task: Task) -> Task:
        reason = "the others of its file could not be added"
        return task.having(status="cancelled", completed_at=now).noted(now, SYSTEM, "cancelled", reason)

    for task in reversed(made):
        with suppress(TeamsError):
            update(store, team, TASK, task.id, cancelled)
