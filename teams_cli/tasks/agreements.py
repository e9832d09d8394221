"""Agreements between the owners of tasks that touch the same code: shared pages that say who changes what."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.messages import messages
from teams_cli.store.contract import Store, update
from teams_cli.tasks import tasks
from teams_cli.teams import history, pages
from teams_cli.teams.pages import PAGE, Page
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from teams_cli.tasks.tasks import Task
    from teams_cli.teams.permission import Caller
    from teams_cli.teams.teams import Team


PREFIX = "agree-"


def key_of(ids: Sequence[str]) -> str:
    """Return the key of the page for an agreement between the tasks with these *ids*, such as `agree-1-2`."""
    numbers = {task_id.removeprefix("task-") for task_id in ids}
    in_order = sorted(numbers, key=lambda number: (len(number), number))  # 9 comes before 10
    return PREFIX + "-".join(in_order)


def agree(
    store: Store, team_name: str, caller: Caller | None, ids: Sequence[str], body: str | None, version: int | None
) -> Page:
    """Propose who changes what in tasks that touch the same code, or confirm what another owner proposed.

    For tasks 1 and 2, the text becomes the team's page `agree-1-2`, which agents see in their brief and when they claim
    a task. The other owners are asked to confirm the text. The same command without --text confirms it; a new --text
    becomes the next version.

    Raises:
        TaskNotFound: There is no such task.
        InvalidValue: Fewer than two tasks are named.
        NotAllowed: You own none of the tasks, and are not the leader.
        PageNotFound: Nobody has proposed anything yet.
        StaleVersion: The page has a newer version than the one that you confirm.
    """
    standing = require(store, team_name, caller, "agree", ",".join(ids))
    agreed_tasks = [tasks.get(store, team_name, task_ref) for task_ref in ids]
    task_ids = [task.id for task in agreed_tasks]
    key = key_of(task_ids)
    if len(set(task_ids)) < 2:
        raise errors.InvalidValue(
            "an agreement is between two tasks at least", "Name them: teams agree 1,2 --text TEXT"
        )
    name = standing.name
    if name not in owners(agreed_tasks) and not (standing.leads or standing.manages):
        raise errors.NotAllowed(f"none of {', '.join(task_ids)} is yours", "Their owners agree.")
    if body is None:
        return _confirm(store, team_name, name, key, version)
    page = pages.share(store, team_name, caller, key, body)
    numbers = ",".join(task_id.removeprefix("task-") for task_id in task_ids)
    hint = f"Confirm it: teams agree {numbers} --version {page.version}; or answer with --text TEXT"
    notice = f"{name} proposes for {' and '.join(task_ids)}: {body}\n{hint}"
    about = f"{key}~{page.version}"
    for owner in owners(agreed_tasks):
        if owner != name:
            uid = f"{about}~{owner}"
            messages.notify(store, team_name, owner, notice, uid, by=name, about=about, event="agreement-proposed")
    return page


def owners(owned_tasks: Sequence[Task]) -> list[str]:
    """Return the owners of the tasks, without duplicates. For a task without an owner, use its assignee, if any."""
    names = (task.owner or task.assignee for task in owned_tasks)
    return list(dict.fromkeys(filter(None, names)))


def _confirm(store: Store, team: str, name: str, key: str, version: int | None) -> Page:
    """Record that the member *name* agrees to the page under *key*, notify the page's author, and return the page.
    Refuse if *version*, which the member has read, is not the page's current version. None accepts any version.
    """
    page = pages.find(store, team, key)
    if page is None or not page.is_there:
        hint = f"Propose it: teams agree {_numbers(key)} --text TEXT"
        raise pages.PageNotFound(f"nobody has proposed {key} yet", hint)

    def change(page: Page) -> Page:
        if version not in (None, page.version):
            raise pages.StaleVersion(
                f"{page.author} changed {key} to version {page.version}", f"Read it: teams shared {key}"
            )
        if name in page.agreed_by:
            return page
        return page.having(agreed=[*(page.agreed or []), name])

    before, page = update(store, team, PAGE, key, change)
    if before is not page:
        history.note(store, team, name, "agreed", page=key, version=page.version)
        body, uid = f"{name} agrees to {key}, version {page.version}", f"{key}~{page.version}~by-{name}"
        messages.notify(store, team, page.author, body, uid, "info", by=name, event="agreement-confirmed")
    return page


def refuse_lacking(store: Store, team: Team, task: Task) -> None:
    """Refuse to complete the task before its owner and the owners of the tasks in `agree_with` agree. An owner that is
    no longer a member need not.
    """
    for other_id in task.agree_with or ():
        other = tasks.get(store, team.name, other_id)
        key = key_of([task.id, other.id])
        page, command = pages.find(store, team.name, key), f"teams agree {_numbers(key)}"
        if page is None or not page.is_there:
            hint = f"Propose who changes what: {command} --text TEXT"
            raise errors.Conflict(f"{task.id} and {other_id} have to agree first", hint)
        missing = [name for name in owners([task, other]) if name not in page.agreed_by and team.member(name)]
        if task.owner in missing:
            hint = f"Read it: teams shared {key}. To confirm it: {command} --version {page.version}"
        elif missing:
            hint = f"Wait for it (teams wait), or ask: teams send-message {missing[0]} TEXT"
        if missing:
            raise errors.Conflict(f"{key} is not confirmed by {', '.join(missing)}", hint)


def _numbers(key: str) -> str:
    """Return the numbers of the tasks of the agreement under this *key*, as commands name them: `1,2`."""
    return key.removeprefix(PREFIX).replace("-", ",")
