"""Agreements between the owners of tasks that touch the same code: shared pages that say who changes what."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.messages import messages
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import tasks
from teams_cli.teams import history, pages
from teams_cli.teams.pages import PAGE, Page
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from teams_cli.tasks.tasks import Task
    from teams_cli.teams.permission import Caller


PREFIX = "agree-"


def key_of(ids: Sequence[str]) -> str:
    """Return the key of the page for an agreement between these tasks, such as `agree-1-2`."""
    numbers = sorted({each.removeprefix("task-") for each in ids}, key=lambda each: (len(each), each))
    return PREFIX + "-".join(numbers)


def agree(
    store: Store, team_name: str, caller: Caller | None, ids: Sequence[str], body: str | None, version: int | None
) -> Page:
    """Propose who changes what in tasks that touch the same code, or confirm what another owner proposed.

    The text is stored as the team's page `agree-1-2`, which agents see in their brief and when they claim a task. The
    other owners are asked to confirm it: with the same command without --text, or with a new text, which becomes the
    next version.

    Raises:
        TaskNotFound: There is no such task.
        InvalidValue: Fewer than two tasks are named.
        NotAllowed: You own none of the tasks, and are not the leader.
        PageNotFound: Nobody has proposed anything yet.
        StaleVersion: The page has a newer version than the one that you confirm.
    """
    at = require(store, team_name, caller, "agree", ",".join(ids))
    found = [tasks.get(store, team_name, each) for each in ids]
    key = key_of([task.id for task in found])
    if len({task.id for task in found}) < 2:
        raise errors.InvalidValue(
            "an agreement is between two tasks at least", "Name them: teams agree 1,2 --text TEXT"
        )
    if at.name not in owners(found) and not (at.leads or at.manages):
        raise errors.NotAllowed(f"none of {', '.join(task.id for task in found)} is yours", "Their owners agree.")
    if body is None:
        return _confirmed(store, team_name, at.name, key, version)
    page = pages.share(store, team_name, caller, key, body)
    which = ",".join(task.id.removeprefix("task-") for task in found)
    named = " and ".join(task.id for task in found)
    how = f"Confirm it: teams agree {which} --version {page.version}; or answer with --text TEXT"
    for owner in owners(found):
        if owner != at.name:
            told = f"{at.name} proposes for {named}: {body}\n{how}"
            about = f"{key}~{page.version}"
            messages.notify(
                store, team_name, owner, told, f"{about}~{owner}", by=at.name, about=about, event="agreement-proposed"
            )
    return page


def owners(found: Sequence[Task]) -> list[str]:
    """The owners of the tasks, or the members to whom they are assigned."""
    return list(dict.fromkeys(name for task in found if (name := task.owner or task.assignee)))


def _confirmed(store: Store, team: str, name: str, key: str, version: int | None) -> Page:
    page = pages.find(store, team, key)
    if page is None or not page.is_there:
        which = key.removeprefix(PREFIX).replace("-", ",")
        raise pages.PageNotFound(f"nobody has proposed {key} yet", f"Propose it: teams agree {which} --text TEXT")

    def change(found: Page) -> Page:
        if version not in (None, found.version):
            raise pages.StaleVersion(
                f"{found.author} changed {key} to version {found.version}", f"Read it: teams shared {key}"
            )
        return found if name in found.agreed_by else found.having(agreed=[*(found.agreed or []), name])

    before, page = update(store, team, PAGE, key, change)
    if before is not page:
        history.note(store, team, name, "agreed", page=key, version=page.version)
        uid = f"{key}~{page.version}~by-{name}"
        messages.notify(
            store,
            team,
            page.author,
            f"{name} agrees to {key}, version {page.version}",
            uid,
            "info",
            by=name,
            event="agreement-confirmed",
        )
    return page


def lacking(store: Store, team: str, task: Task) -> str:
    """Return why the task may not be completed yet: the agreement that it needs is missing, or not confirmed by all
    owners. Empty if nothing is lacking.
    """
    for other in task.agree_with or ():
        both = [task, tasks.get(store, team, other)]
        page = pages.find(store, team, key_of([each.id for each in both]))
        if page is None or not page.is_there:
            return f"{task.id} and {other} have to agree first"
        missing = [name for name in owners(both) if name not in page.agreed_by]
        if missing:
            return f"{', '.join(missing)} has not confirmed {page.key}"
    return ""
