"""The commands that queue landings and list them."""

from __future__ import annotations

from functools import partial

from teams_cli import errors, text
from teams_cli.clock import age
from teams_cli.commands.completions import lines_of_landing
from teams_cli.commands.declaration import TASK, Command, Table, argument, in_group, option, row_limit, switch
from teams_cli.extensions.landing import lander, queueing
from teams_cli.tasks import landings
from teams_cli.tasks.landings import Landing
from teams_cli.tasks.tasks import Task
from teams_cli.teams import settings
from teams_cli.views import conditions, steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Parts

_GET = """List the landings by number, with their states: queued, checking, landed or rejected. With an id, show that
landing in full.

A landing is `red` if the check of the merged result failed. It is a `conflict` if files conflict; the answer names
them. In both cases the task returns to its owner and the branch stays unchanged. A `refused` landing could not be
tried.

Raises:
    LandingNotFound: There is no such landing.
"""


_WAIT = 2.0
"""Seconds within which most landings end. A caller that waits this long needs no second command."""
_LONGEST_WAIT = 30.0
"""The maximum number of seconds for which a command that completes a task waits for the landing. It waits longer than
`_WAIT` only if the owner would wait for the next task anyway.
"""


def _land(call: Call, task: str, onto: str | None, via: str | None, no_wait: bool) -> Any:
    if onto is not None and not onto.strip():
        raise errors.InvalidValue("--onto is blank", "Give a branch, or leave --onto out.")
    landing = queueing.land(call.store, call.team, call.caller, task, onto, call.workplace, via)
    document = _start_and_wait(call, landing, 0 if no_wait else _WAIT)
    lands_by_itself = settings.lands_by_itself(call.load_team())
    call.next_step = steps.after_landing(document, call.agent, lands_by_itself)
    return document


def _start_and_wait(call: Call, landing: Landing, seconds: float) -> dict[str, Any]:
    """Start the lander, and wait until the landing has ended, or until a pull request is opened for it. Return the
    landing as JSON shows it. If neither happens within *seconds*, return *landing* unchanged, with the number of
    landings before it in the queue under `ahead`.
    """
    start = partial(lander.start, call.store, call.team, call.environ)
    call.try_to(start)
    try:
        condition = conditions.landing_over(call.store, call.team, landing.id, start, until_requested=True)
        result = conditions.wait(call.store, call.team, [condition], seconds)
        # The answer tells the agent the outcome, so its notice need not.
        call.once_shown(lambda: conditions.count_as_read(call.store, call.team, call.agent, result))
        return dict(result["landing"])
    except errors.TeamsError:  # the wait ran out or failed, but the landing is queued
        queued_ids = [queued.id for queued in landings.open_ones(call.store, call.team)]
        ahead = queued_ids.index(landing.id) if landing.id in queued_ids else 0  # not in the queue: it has just ended
        return {**landings.to_document(landing), "ahead": ahead}


def follow(call: Call, task: Task, patience: float) -> dict[str, Any] | None:
    """Queue the landing of a task that was just completed, wait for its outcome, and return the landing as
    `_start_and_wait` does. Wait for at most two seconds, or *patience* seconds if that is longer, but never more than
    half a minute. Return None if there is nothing to land.
    """
    landing = queueing.queue_completed(call.store, call.team, call.known_caller, task, call.workplace)
    if landing is None:
        return None
    return _start_and_wait(call, landing, max(_WAIT, min(patience, _LONGEST_WAIT)))


def _get(call: Call, landing: str | None, open: bool, limit: int | None) -> Any:
    team = call.load_team()
    call.try_to(lambda: lander.start(call.store, team.name, call.environ))
    if landing is not None:
        call.words = words_of_landing
        return [landings.to_document(landings.get(call.store, team.name, landing))]
    rows = landings.all_of(call.store, team.name, call.problems)
    if open:
        rows = [row for row in rows if not row.over]
    if limit is not None:
        rows = rows[-limit:]
    return [landings.to_document(row) for row in rows]


def words_of_landing_asked(landing: dict[str, Any]) -> Parts:
    is_open = landing["state"] in ("queued", "checking")
    return lines_of_landing(landing) + ([f"next: teams wait --landing {landing['id']}"] if is_open else [])


def words_of_landings(documents: list[dict[str, Any]]) -> Parts:
    columns = ["landing", "state", "task", "owner", "commit", "onto", "age", "about"]
    rows = []
    for landing in documents:
        if landing["state"] == "red":
            outcome = landing.get("checked") or {}
            about = f"{outcome.get('command')}: exit status {outcome.get('status')}"
        else:
            about = text.listed(landing.get("files", ())) or landing.get("reason") or landing["title"]
        first = [landing["id"], landing["state"], landing["task"], landing.get("owner", "-")]
        rows.append([*first, landing["head"][:10], landing["onto"], age(landing["createdAt"]), about])
    return [Table(columns, rows, "no landings")]


def words_of_landing(documents: list[dict[str, Any]]) -> Parts:
    [landing] = documents  # the list has only the landing that was asked for
    names = ("title", "owner", "branch", "repository", "head", "base", "merge", "check", "createdAt", "endedAt")
    return [*lines_of_landing(landing), *(f"{name}: {landing[name]}" for name in names if name in landing)]


COMMANDS = in_group(
    "Tasks",
    Command(
        "land",
        _land,
        TASK,
        option(
            "--onto",
            "The target branch; the default is the branch of the main checkout.",
            metavar="BRANCH",
            seldom=True,
        ),
        option(
            "--via",
            "Merge the branch (merge), or push it and open a pull request (pr); the default is in `landingVia`.",
            choices=queueing.WAYS,
            seldom=True,
        ),
        switch(
            "--no-wait",
            "Answer at once; otherwise the command waits up to two seconds for the landing to end.",
            seldom=True,
        ),
        doc=queueing.land,
        words=words_of_landing_asked,
        answers=Landing,
        traits="repeatable",
        held="task no_wait",
        example="land 7",
        also="push pr pull-request merge-task land-task submit-task",
    ),
    Command(
        "get-landings",
        _get,
        argument(
            "ID", "The id of a landing to show in full, such as 3, #3 or landing-3.", name="landing", required=False
        ),
        switch("--open", "Only landings that have not ended."),
        row_limit("Show only the newest N."),
        doc=_GET,
        words=words_of_landings,
        answers=list[Landing],
        gist=("id", "task", "state", "onto", "owner", "files"),
        traits="reads",
        held="landing open limit",
        example="get-landings --open",
        also="landings merged rejected merge-queue show-landing queue-status",
    ),
)
