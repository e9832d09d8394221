"""Tasks in answers, as JSON and in words: for a list, in full, and for a new owner."""

from __future__ import annotations

from zlib import crc32

from teams_cli import environment, errors, text
from teams_cli.clock import ago, is_old, seconds_since, time_left
from teams_cli.commands.declaration import present
from teams_cli.names import HUMAN
from teams_cli.tasks import dependencies, leases, tasks
from teams_cli.tasks.tasks import FINISHED, IN_PROGRESS, TASK, Note, Task
from teams_cli.teams import presence, roles, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Parts


_MOST_LOOKED_AT = 200
"""Teams with more tasks than this are not searched for the tasks that a task blocks: there is no index of them."""
_CLIPPED = 1200
"""The maximum number of characters of a blocker's result in the answer to a claim."""
_MOST_PAGES, _MOST_MENTIONED, _MOST_BESIDE = 5, 5, 3
_ROOM_FOR_TEXTS = 7000
"""The maximum number of characters of other tasks' descriptions that a claim shows: those of a dozen tasks, which the
last task of a team often joins.
"""
_WORTH_LEAVING_OUT = 200
"""The least number of characters that a claim leaves out because they also stand in the owner's last task."""
_LONG_LINE = 60
"""A line of at least this many characters is shown once, although the texts of several tasks in the answer have it."""
_HINT_AT_TEXT = 60
"""How many characters of a text that is left out the claim shows, so that the owner knows what it is."""
_NEWEST = 2
"""How many of the commits that the worktree lacks are named at most."""
_SUBJECT = 60
_A_WHILE = 60.0
"""After this many seconds since its claim, an owner that claims the task again may have forgotten what it did."""


def to_document(call: Call, task: Task) -> dict[str, Any]:
    """Return the task as JSON, with its open blockers, and whether its assignee and its reviewer have yet to join."""
    document = with_lease(call, dependencies.with_open(task.to_document(), dependencies.stored(call.store, call.team)))
    # The task may have been changed just now, so failures of what follows are only reported.
    if task.assignee and call.try_to(lambda: call.load_team().member(task.assignee or "") is None):
        document["assigneeExpected"] = True
    if task.review_by and call.try_to(lambda: _is_expected(call, task.review_by or "")):
        document["reviewerExpected"] = True
    return document


def _is_expected(call: Call, reviewer: str) -> bool:
    """Return whether the *reviewer* is an agent that has yet to join the team, rather than a role."""
    team = call.load_team()
    if reviewer == HUMAN or team.member(reviewer):
        return False
    return roles.role_for(reviewer, team, call.caller.config if call.caller else None) is None


def with_lease(call: Call, document: dict[str, Any]) -> dict[str, Any]:
    """Return the *document* of a task with the end of its lease recomputed, because the stored end is wrong if the
    system's clock was set since.
    """
    if "leaseExpiresAt" not in document:
        return document
    return {**document, "leaseExpiresAt": leases.expires_at(call.store, Task.from_json(document))}


def with_blockers(call: Call, document: dict[str, Any], has_texts: bool = False) -> dict[str, Any]:
    """Add the blockers of the task under `blockers`, and the tasks of `after` under `afterTasks`. With *has_texts*,
    include the descriptions of both, except that of a single blocker, whose result says enough.
    """
    blocked_by = document.get("blockedBy", ())
    blockers = [_row_of(call, key, has_texts and len(blocked_by) > 1) for key in blocked_by]
    after = [_row_of(call, key, has_texts) for key in document.get("after", ())]
    return document | ({"blockers": blockers} if blockers else {}) | ({"afterTasks": after} if after else {})


def _row_of(call: Call, task_id: str, has_text: bool = False) -> dict[str, Any]:
    """Return the state of a task that another task depends on or names, as JSON. With *has_text*, include the
    description, unless the caller wrote the task or once owned it.
    """
    try:
        task = tasks.get(call.store, call.team, task_id)
    except errors.TeamsError:
        return {"id": task_id, "status": "unreadable"}
    row = {"id": task_id, "title": task.title, "status": task.status, "owner": task.owner, "result": task.result}
    if has_text and call.agent != task.created_by and not task.was_claimed_by(call.agent):
        row["description"] = task.description
    return {name: value for name, value in {**row, "completedAt": task.completed_at}.items() if value is not None}


def _mentioned(call: Call, task: Task) -> dict[str, Any]:
    """Return, under `mentions`, the tasks that the text of the *task* names, with their descriptions, except for the
    tasks that it depends on.
    """
    known = {task.id, *task.blocked_by, *(task.after or ())}
    named = [key for key in tasks.mentioned(f"{task.title}\n{task.description or ''}") if key not in known]
    rows = [_row_of(call, key, has_text=True) for key in named[:_MOST_MENTIONED]]
    rows = [row for row in rows if row["status"] != "unreadable"]
    return {"mentions": rows} if rows else {}


def with_blocked(call: Call, document: dict[str, Any]) -> dict[str, Any]:
    """Add to the document, under `blocks`, the ids of the unfinished tasks that wait for the task. In a large team, add
    nothing, because the search would take too long.
    """
    if call.store.last(call.team, TASK) > _MOST_LOOKED_AT:
        return document
    all_tasks = tasks.all_of(call.store, call.team, [])
    blocked = [task.id for task in all_tasks if task.status not in FINISHED and document["id"] in task.blocked_by]
    return {**document, "blocks": blocked} if blocked else document


def with_plan(call: Call, task: Task, document: dict[str, Any]) -> dict[str, Any]:
    """Add the status of the task's plan as `plan`, and its id as `planId`. It is the plan of the task's owner, or else
    the approved plan. If the task needs a plan and has none, `plan` is `required`.
    """
    if not task.plan_required and task.status != IN_PROGRESS:
        return document
    from teams_cli.tasks import plans
    from teams_cli.views import work

    status, plan_id = work.plan_of(task, plans.all_of(call.store, call.team, call.problems))
    return {**document, **({"plan": status} if status else {}), **({"planId": plan_id} if plan_id else {})}


def taken(call: Call, task: Task) -> dict[str, Any]:
    """Return the task as JSON for the caller, its new owner, with what the caller needs to begin.

    These are the results of its blockers, the tasks that it names, its approved plan, and pages that the caller has not
    read. Others are who works on the same files or beside it, and the commits that the caller's worktree lacks. If
    another agent lost the task, this agent and its uncommitted files are named, too.

    Also set the next step: to complete the task. If the task needs a plan and none is approved, the next step is to
    propose a plan.
    """
    from teams_cli.views import steps

    planned: dict[str, Any] = {}
    if task.plan_required:
        from teams_cli.tasks import plans

        all_plans = call.try_to(lambda: plans.all_of(call.store, call.team, []))
        if approved := plans.newest_approved(all_plans or (), task.id):
            planned = {"approvedPlan": approved.to_document()}  # it also holds for a new owner
    call.next_step = steps.propose(task.id) if task.plan_required and not planned else steps.complete(task.id)
    document = with_blockers(call, to_document(call, task), has_texts=True) | _mentioned(call, task)
    document |= unshown_pages(call) | planned
    call.try_to(lambda: _mark_unexplained(call, task, document))
    if task.touches:
        from teams_cli.tasks import touching

        call.try_to(lambda: document.update(meets=touching.others_at(call.store, call.team, task, call.agent)))
    call.try_to(lambda: document.update(_beside(call, task)))
    call.try_to(lambda: document.update(_missing_commits(call)))
    if loss := leases.previous_loss(task):
        document |= _uncommitted(call, task, loss.owner or "") | _loss_document(call, loss)
    elif task.claimed_at is not None and seconds_since(task.claimed_at, call.store.now()) > _A_WHILE:
        # The caller claimed the task before, and may have forgotten its own files.
        document |= _uncommitted(call, task, call.agent)
    return document


def _beside(call: Call, task: Task) -> dict[str, Any]:
    """Return, under `beside`, the open tasks of others that depend on at least two tasks on which this *task* depends.
    Such tasks probably join the same work. In a large team, return nothing, because the search would take too long.
    """
    predecessors = set(task.waits_for)
    if len(predecessors) < 2 or call.store.last(call.team, TASK) > _MOST_LOOKED_AT:
        return {}
    rows = [
        {"id": other.id, "title": other.title, "status": other.status, "owner": other.owner}
        for other in tasks.all_of(call.store, call.team, [])
        if other.status in ("pending", IN_PROGRESS)
        and other.id != task.id
        and other.owner != call.agent
        and len(predecessors.intersection(other.waits_for)) > 1
    ]
    return {"beside": rows} if rows else {}


def _loss_document(call: Call, loss: Note) -> dict[str, Any]:
    """Return, under `takenOver`, how the previous owner lost the task, as the note *loss* says, and its last signs of
    life.
    """
    taken_over = {"from": loss.owner, "how": loss.what, "at": loss.at, "reason": loss.reason, "cause": loss.cause}
    call.try_to(lambda: taken_over.update(_last_signs_of_owner(call, loss)))
    return {"takenOver": {key: value for key, value in taken_over.items() if value is not None}}


def _missing_commits(call: Call) -> dict[str, Any]:
    """Return, under `behind`, how many commits of the branch on which the caller's work will land its worktree lacks,
    and the subjects of the newest ones. Return an empty dictionary if it lacks none.
    """
    worktree = environment.checkout_around(call.workplace) if call.workplace else ""
    if not worktree or not environment.is_worktree(worktree) or not settings.lands_by_itself(call.load_team()):
        return {}
    from teams_cli.agents import checkouts, git

    checkout = checkouts.at(worktree)
    branch = checkouts.branch_of(checkout.main) if checkout else ""
    missing = f"HEAD..{branch}"
    commits = git.output_of(worktree, "rev-list", "--count", missing, "--") if branch else ""
    if not commits.isdigit() or commits == "0":
        return {}
    newest = git.output_of(worktree, "log", "--first-parent", f"-{_NEWEST}", "--format=%s", missing, "--").splitlines()
    return {"behind": {"branch": branch, "commits": int(commits), "newest": newest}}


def _mark_unexplained(call: Call, task: Task, document: dict[str, Any]) -> None:
    """Put into the *document*, under `explain`, which of the rules `lease` and `check` were not explained to the owner
    yet, or changed since. Tasks whose result the owner was shown with an earlier task are marked with `shown`.

    Descriptions of other tasks stay only if the owner was not shown them yet. Lines that are also in the *task*, or in
    the last task that the owner was shown, are removed from them. The description of the *task* stays, but `sameText`
    says which of its lines are also in the last task.
    """
    rules = [f"lease:{call.load_team().silence:g}", *(["check"] if task.check else [])]
    earlier = [*document.get("blockers", ()), *document.get("afterTasks", ())]
    completed = [row for row in earlier if "result" in row and "completedAt" in row]
    results = {f"result:{row['id']}:{row['completedAt']}": row for row in completed}
    others = [row for row in _rows_of_others(document) if "description" in row]
    texts = {f"text:{row['id']}:{crc32(row['description'].encode()):x}": row for row in others}
    last_shown = _last_shown(call, task)
    document.update(_same_text(task, last_shown))
    unexplained = call.unexplained(*rules, *results, *texts, _key_of_shown(task))
    if explain := [rule.partition(":")[0] for rule in rules if rule in unexplained]:
        document["explain"] = explain
    for key, row in results.items():
        if key not in unexplained:
            row["shown"] = True
    for key, row in texts.items():
        if key not in unexplained or "shown" in row:
            del row["description"]
    known_tasks = [task, last_shown] if last_shown else [task]
    _fit_texts(document, {line for each in known_tasks for line in (each.description or "").splitlines()})


def _fit_texts(document: dict[str, Any], known_lines: set[str]) -> None:
    """Remove the *known_lines* from the descriptions of other tasks in the *document*, and long lines that another of
    these descriptions has before. Descriptions for which there is no room are replaced by `textLeftOut`.
    """
    room = _ROOM_FOR_TEXTS
    for row in _rows_of_others(document):
        lines = [line for line in row.pop("description", "").splitlines() if line not in known_lines]
        if lines and room > 0:
            description = "\n".join(lines)
            row["description"] = text.clipped(description, room, f" (all of it: teams show-task {row['id']})")
            room -= len(description)
            known_lines = known_lines.union(line for line in lines if len(line) >= _LONG_LINE)
        elif lines:
            row["textLeftOut"] = True


def _rows_of_others(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows in the *document* of a task that are about other tasks."""
    return [row for key in ("mentions", "afterTasks", "blockers") for row in document.get(key, ())]


def _key_of_shown(task: Task) -> str:
    """Return the key that records that the owner of the task was shown its text as it is now."""
    return f"own:{task.id}:{crc32((task.description or '').encode()):x}"


def _last_shown(call: Call, task: Task) -> Task | None:
    """Return the task that the caller was shown last with its text as it is now; None if that is this *task*."""
    keys = [key for key in presence.load(call.store, call.team, call.agent).explained or () if key.startswith("own:")]
    shown = keys[-1].split(":")[1] if keys else task.id
    if shown == task.id:
        return None
    last_task = tasks.get(call.store, call.team, shown)
    return last_task if _key_of_shown(last_task) == keys[-1] else None


def _same_text(task: Task, last_shown: Task | None) -> dict[str, Any]:
    """Return, under `sameText`, how many of the `first` and of the `last` lines of the task's description are also in
    the task *last_shown*, and thus need not be shown again. Return an empty dictionary if they are short.
    """
    if last_shown is None:
        return {}
    lines, before = (task.description or "").splitlines(), (last_shown.description or "").splitlines()
    first = _common(lines, before)
    last = _common(lines[first:][::-1], before[first:][::-1])
    if len("".join(lines[:first])) < _WORTH_LEAVING_OUT:
        first = 0
    if len("".join(lines[len(lines) - last :])) < _WORTH_LEAVING_OUT:
        last = 0
    return {"sameText": {"task": last_shown.id, "first": first, "last": last}} if first or last else {}


def _common(lines: list[str], others: list[str]) -> int:
    """Return how many of the first lines are the same in both lists."""
    shorter = min(len(lines), len(others))
    return next((number for number in range(shorter) if lines[number] != others[number]), shorter)


def unshown_pages(call: Call) -> dict[str, Any]:
    """Return under `pages` the pages that the caller was not shown yet; empty if there are none."""
    from teams_cli.teams import pages

    unshown = call.try_to(lambda: pages.unshown(call.store, call.team, call.agent, call.once_shown))
    return {"pages": [page.to_row() for page in unshown]} if unshown else {}


def _last_signs_of_owner(call: Call, loss: Note) -> dict[str, str | None]:
    """Return the last sign of life of the previous owner, whom the note *loss* names, its status line, and its worktree
    if that is on this machine.
    """
    agent = presence.load_other(call.store, call.team, loss.owner or "")
    released_at = loss.at if loss.what == "released" and loss.by == loss.owner else ""
    worktree = agent.worktree if (agent.host or "") == call.store.host else None
    return {"lastHeard": max(agent.last_seen or "", released_at) or None, "status": agent.status, "worktree": worktree}


def _uncommitted(call: Call, task: Task, name: str) -> dict[str, Any]:
    """Return under `uncommitted` the changed files in the checkout of the agent *name*; empty if there are none."""
    from teams_cli.tasks import touching

    files = call.try_to(lambda: touching.uncommitted(call.store, call.team, task, name))
    return {"uncommitted": files} if files else {}


def refuse_stopped(call: Call, owner: str) -> None:
    """Refuse to give a task to the agent *owner* if it was stopped, because nothing starts it again."""
    from teams_cli.agents import sessions

    if sessions.was_stopped(call.store, call.team, owner):
        raise errors.WrongState(f"{owner} was stopped", "Choose another member, or start one: teams run-agent …")


def line(task: dict[str, Any], more: str = "") -> list[str]:
    """Return one line, as a list, with the state of a task: who has it or reviews it, what it waits for, and *more*."""
    state = task["status"]
    if "owner" in task:
        state += f" by {task['owner']}"
    elif "assignee" in task:
        state += f", for {task['assignee']}"
    if task.get("assigneeExpected"):
        state += ", who has yet to join"
    if task["status"] == "in_review" and task.get("reviewBy"):
        state += f", to be reviewed by {task['reviewBy']}"
    if task["openBlockers"]:
        state += f", blocked by {text.listed(task['openBlockers'])}"
    if task["status"] == "pending" and task.get("openAfter"):
        state += f", completes after {text.listed(task['openAfter'])}"
    return [f"{task['id']}: {state}{more}: {task['title']}"]


def reviewer_in_words(task: dict[str, Any]) -> str:
    """Return the reviewer of the task; "" if it has none. A remark follows if the reviewer has yet to join the team."""
    return f"{task.get('reviewBy', '')}{', who has yet to join' if task.get('reviewerExpected') else ''}"


def words_of_claimed(task: dict[str, Any]) -> Parts:
    """Show a task with all that its owner has to know."""
    return _claimed(task, text_lines(task))


def words_of_claimed_too(document: dict[str, Any]) -> Parts:
    return words_of_claimed(document["claimed"]) if "claimed" in document else []


def words_of_claimed_knowing(task: dict[str, Any]) -> Parts:
    """Return the words about a claimed task for an owner that wrote the text of the task, and need not be shown it."""
    return _claimed(task, [])


def _claimed(task: dict[str, Any], content: Parts) -> Parts:
    """Return lines with all that the owner of the task has to know. *content* is the text of the task, or empty."""
    unshown_after = [row for row in task.get("afterTasks", ()) if "shown" not in row]
    of_others = [row for row in [*task.get("blockers", ()), *unshown_after] if row.get("owner") != task.get("owner")]
    return [
        *line(task),
        *content,
        *_taken_over(task),
        *lines_of_pages(task),
        *([f"touches: {', '.join(task['touches'])}"] if task.get("touches") else []),
        *(f"{other['agent']} changes {other['region']} ({other['task']})" for other in task.get("meets", ())),
        *_beside_line(task.get("beside", [])),
        *_merge_line(task.get("behind")),
        *_check(task),
        *([f"review by: {reviewer_in_words(task)}"] if task.get("reviewBy") else []),
        *after_line(task),
        *_mentions_line(task.get("mentions")),
        *_texts_of_others(task),
        *_command_for_texts(task),
        *_results(of_others),
        *(_plan(task.get("approvedPlan"), task.get("owner")) if task.get("planRequired") else []),
        *_lease(task),
    ]


def _lease(task: dict[str, Any]) -> list[str]:
    """Return a line about the lease, for an owner to whom it was not explained yet, or who lost this task before."""
    was_lost = task.get("takenOver", {}).get("from") == task.get("owner")
    if not (was_lost or "lease" in task.get("explain", ())):
        return []
    release = f"to release it: teams release-task {task['id']}"
    and_by_work = " and by changes of its files" if task.get("touches") else ""
    return [f"{time_left(task['leaseExpiresAt'])}, renewed by any `teams` command{and_by_work}; {release}"]


def text_lines(task: dict[str, Any]) -> Parts:
    return present(*_description(task), f"run: {task['run']}" if "run" in task else None)


def _description(task: dict[str, Any]) -> list[str]:
    """Return the lines of the task's description. One line stands for those that the owner's last task has, too."""
    same, lines = task.get("sameText"), (task.get("description") or "").splitlines()
    if same is None:
        return text.quoted(task.get("description"))

    def left_out(part: list[str]) -> list[str]:
        begin = text.clipped_line("\n".join(part), _HINT_AT_TEXT)
        count = f"{text.counted(len(part), 'line')} as in {same['task']}"
        return [f"({count}: {begin}; all: teams show-task {task['id']})"] if part else []

    first, rest = lines[: same["first"]], lines[same["first"] :]
    own, last = rest[: len(rest) - same["last"]], rest[len(rest) - same["last"] :]
    return [*left_out(first), *text.quoted("\n".join(own).strip("\n")), *left_out(last)]


def after_line(task: dict[str, Any]) -> list[str]:
    rows = [row for row in task.get("afterTasks", ()) if row["id"] in task.get("openAfter", ())]
    if not rows:
        return []
    if ended := [row["id"] for row in rows if row["status"] in FINISHED]:
        free = f"teams update-task {task['id']} --unblock {','.join(ended)}"
        return [f"completes after: {_states(rows)}; to wait no longer for {text.listed(ended)}: {free}"]
    if own := [row["id"] for row in rows if "owner" in task and row.get("owner") == task["owner"]]:
        return [f"completes after: {_states(rows)}; complete your own first: {text.listed(own)}"]
    wait = f"teams wait --task {rows[0]['id']} --timeout 540"
    how = "if not, complete it with --next --wait when you are done: you get other work until it can be completed"
    return [f"completes after: {_states(rows)}; if your work needs theirs on main: {wait}; {how}"]


def _mentions_line(rows: list[dict[str, Any]] | None) -> list[str]:
    if not rows:
        return []
    return [f"mentions: {_states(rows)}"]


def _texts_of_others(task: dict[str, Any]) -> list[str]:
    rows = [row for row in _rows_of_others(task) if "description" in row]
    return [line for row in rows for line in [f"text of {row['id']}:", *text.quoted(row["description"])]]


def _command_for_texts(task: dict[str, Any]) -> list[str]:
    """Return a line with the command that shows the descriptions for which there was no room; none if all fitted."""
    ids = [row["id"] for row in _rows_of_others(task) if "textLeftOut" in row]
    return [f"texts of {text.listed(ids)}: teams show-task {','.join(ids)}"] if ids else []


def _states(rows: list[dict[str, Any]]) -> str:
    """Return the tasks in *rows* in words, each with its status and its owner."""
    by_owner = [f" by {row['owner']}" if "owner" in row else "" for row in rows]
    return text.listed([f"{row['id']} ({row['status']}{by})" for row, by in zip(rows, by_owner, strict=True)])


def is_checked_on_commits(task: dict[str, Any]) -> bool:
    """Return whether the task's check runs on committed work, not on the files in a directory as they are."""
    return "checkFrom" in task and "checkIn" not in task


def _check(task: dict[str, Any]) -> Parts:
    if "check" not in task:
        return []
    if "check" not in task.get("explain", ()):
        return [f"check: {task['check']}"]
    on = " on committed work" if is_checked_on_commits(task) else ""
    return [f"check, run{on} when you complete it (if it fails, the task stays yours): {task['check']}"]


def _plan(approved: dict[str, Any] | None, owner: str | None) -> Parts:
    """Return lines with the approved plan, without its text if the *owner* proposed it, or a line that asks for a
    plan.
    """
    if approved is None:
        return ["needs a plan that the leader approves: a few lines on what you will do, and how"]
    if approved["from"] == owner:
        return [f"your {approved['id']} is approved: go on with it (teams show-plan {approved['id']})"]
    noted = f", with the note: {approved['note']}" if "note" in approved else ""
    head = f"{approved['id']} of {approved['from']} is approved: go on with it{noted}"
    return [head, *text.quoted(approved["plan"])]


def _beside_line(rows: list[dict[str, Any]]) -> Parts:
    if not rows:
        return []
    names = [f"{row['id']} ({row['owner'] or row['status']}: {text.clipped(row['title'], _SUBJECT)})" for row in rows]
    return [f"beside yours: {text.listed(names, _MOST_BESIDE)}"]


def _merge_line(behind: dict[str, Any] | None) -> Parts:
    if behind is None:
        return []
    newest = "; ".join(text.clipped(subject, _SUBJECT) for subject in behind["newest"])
    ahead = f"{behind['branch']} is {text.counted(behind['commits'], 'commit')} ahead of your worktree ({newest})"
    return [f"{ahead}; before you begin: git merge {behind['branch']}"]


def _taken_over(task: dict[str, Any]) -> Parts:
    """Return lines about the previous owner of the task: its last sign of life, and its uncommitted files. Without a
    previous owner, they are about the present one: when it claimed the task, if that is long ago, and its files.
    """
    loss = task.get("takenOver")
    uncommitted: Parts = []
    for file in task.get("uncommitted", ()):
        by = f" by {file['by']}" if file["by"] else ""
        uncommitted.append(f"uncommitted: {file['path']}, changed {ago(file['changedAt'])}{by}")
    if loss is None:
        claimed_at = task.get("claimedAt")
        is_again = claimed_at is not None and is_old(claimed_at)
        return [*present(f"you claimed it {ago(claimed_at)}" if is_again else None), *uncommitted]
    if loss["from"] == task.get("owner"):
        return [f"it was yours before, until {loss.get('cause') or loss['reason']}", *uncommitted]
    heard = f", last heard of {ago(loss['lastHeard'])}" if "lastHeard" in loss else ""
    doing = f", doing: {loss['status']}" if "status" in loss else ""
    why = f" ({loss['reason']})" if loss["how"] == "released" and "reason" in loss else ""
    if uncommitted:
        advice = ""
    elif "worktree" in loss:
        advice = f": nothing is uncommitted in {loss['worktree']}; its commits are on the branch there"
    else:
        advice = ": look for uncommitted work"
    return [f"it was {loss['from']}'s, {loss['how']} {ago(loss['at'])}{heard}{doing}{why}{advice}", *uncommitted]


def _results(blockers: list[dict[str, Any]]) -> list[str]:
    """Return lines with the results of the *blockers*. Results that the reader was shown before are not repeated, but
    named in one line.
    """
    completed = [each for each in blockers if each.get("result") or each["status"] == "completed"]
    new = [each for each in completed if not each.get("shown")]
    lines = [blocker_line(each) for each in new]
    if seen := [each["id"] for each in completed if each.get("shown")]:
        subject, pronoun = ("result", "it") if len(seen) == 1 else ("results", "them")
        lines.append(f"{subject} of {text.listed(seen)}: you have seen {pronoun} (teams show-task {','.join(seen)})")
    return lines


def blocker_line(blocker: dict[str, Any]) -> str:
    """Return a line with the result of a task."""
    result = text.clipped_line(blocker.get("result") or "(none given)", _CLIPPED)
    if_cut = f" (teams show-task {blocker['id']})" if result.endswith("…") else ""
    by = f" ({blocker['owner']})" if "owner" in blocker else ""
    return f"result of {blocker['id']}{by}: {result}{if_cut}"


def lines_of_pages(document: dict[str, Any]) -> Parts:
    """Return a line for each of the first pages that the reader has not seen, and how many more there are."""
    pages = document.get("pages", [])
    lines: Parts = [
        f"page {page['key']} (version {page['version']} by {page['author']}): {page['line']}: "
        f"teams shared {page['key']}"
        for page in pages[:_MOST_PAGES]
    ]
    return [*lines, f"{len(pages) - _MOST_PAGES} more pages: teams shared"] if len(pages) > _MOST_PAGES else lines
