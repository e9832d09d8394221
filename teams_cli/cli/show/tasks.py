"""Answers on tasks, their attachments and landings, in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.show import age, ago, left, length_of, moment, present
from teams_cli.cli.tables import Table
from teams_cli.clock import SystemClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

    from teams_cli.cli.show import Parts


def rows(tasks: list[dict[str, Any]]) -> Parts:
    columns = ["task", "status", "priority", "owner", "blocked by", "lease", "age", "title"]
    now = SystemClock().now()
    table_rows = [_row(task, now) for task in tasks]
    if any("check" in task or "reviewBy" in task for task in tasks):
        columns.insert(-1, "verified by")
        for row, task in zip(table_rows, tasks, strict=True):
            row.insert(-1, _rests_on(task))
    return [Table(columns, table_rows, "no tasks")]


def _rests_on(task: dict[str, Any]) -> str:
    """How the work was verified, in a few words."""
    check, review = task.get("checked"), task.get("reviewed")
    parts = []
    if check:
        parts.append("stale check" if check.get("stale") else "check failed" if check["status"] else "checked")
    elif "check" in task:
        parts.append("check not run yet")
    if task["status"] == "in_review":
        parts.append(f"review by {task['reviewBy']}")
    elif review:
        parts.append(f"{review['verdict']} by {review['by']}")
    if "landing" in task:
        parts.append(task["landing"])
    return ", ".join(parts) or ("unverified" if task["status"] == "completed" else "-")


def _row(task: dict[str, Any], now: datetime) -> list[str]:
    return [
        task["id"],
        _status(task),
        task["priority"],
        _whose(task) or "-",
        text.listed(task["openBlockers"], _NAMED) or "-",
        left(task["leaseExpiresAt"]) if "leaseExpiresAt" in task else "-",
        age(task["createdAt"], now),
        task["title"],
    ]


_NAMED = 2
"""Blockers that a row names."""


def _whose(task: dict[str, Any]) -> str | None:
    """The owner of a task, or the assignee of one that nobody has claimed."""
    return f"for {task['assignee']}" if "assignee" in task else task.get("owner")


def _status(task: dict[str, Any]) -> str:
    return "blocked" if task["status"] == "pending" and task["blocked"] else str(task["status"])


def created(task: dict[str, Any] | list[dict[str, Any]]) -> Parts:
    """Show what was created, with what completing it will rest on: all of it for one, that it is there for many."""
    if not isinstance(task, list):
        return [f"{part}{_given(task, in_full=True)}" for part in line(task)]
    return [f"{part}{_given(one, in_full=False)}" for one in task for part in line(one)]


def _given(task: dict[str, Any], in_full: bool) -> str:
    facts = {
        "check": task.get("check"),
        "touches": " ".join(task.get("touches", ())),
        "review by": task.get("reviewBy"),
        "plan": "required" if task.get("planRequired") else None,
    }
    named = [f"{key} {text.clipped_line(value, _SHORT)}" if in_full else key for key, value in facts.items() if value]
    return f" ({', '.join(named)})" if named else ""


_SHORT = 60


def updated(task: dict[str, Any] | list[dict[str, Any]]) -> Parts:
    """Show a task with what of it changed just now and is not in its line; or several."""
    if isinstance(task, list):
        return [part for one in task for part in updated(one)]
    changed = [
        key
        for note in task["notes"]
        if note["what"] == "edited" and note["at"] == task.get("updatedAt")
        for key in note.get("changed", ())
    ]
    words = {
        "priority": f"priority {task['priority']}",
        "description": "description changed",
        "check": f"check: {task.get('check')}",
        "reviewBy": f"review by {task.get('reviewBy')}",
    }
    more = claimed(task["claimed"]) if "claimed" in task else []
    took = task.get("checked", {}).get("seconds")
    passed = f", its check passed{f' in {length_of(took)}' if took else ''}" if "checked" in task else ""
    passed = passed if task["status"] == "completed" else ""
    shown = _landed(task, passed + "".join(f", {words[key]}" for key in words if key in changed))
    return [*shown, *_edited_unseen(task), *more]


def reviewed(task: dict[str, Any]) -> Parts:
    """Show a task whose review has ended."""
    return _landed(task, "")


def _landed(task: dict[str, Any], more: str) -> list[Any]:
    """The line of a task, and what became of its landing, if that was just asked for."""
    landing = task.get("lands")
    if landing is None:
        return line(task, more)
    if landing["state"] == "landed":
        return line(task, f"{more}, landed on {landing['onto']} as {landing.get('merge', landing['head'])[:10]}")
    if landing["state"] in ("queued", "checking"):
        ahead = f" behind {landing['ahead']} more" if landing.get("ahead") else ""
        how = "being checked" if landing["state"] == "checking" else f"queued{ahead}"
        return line(task, f"{more}, not landed yet: {landing['id']} is {how}")

    return [*line(task, ", not landed"), *landing_over(landing)]


def _edited_unseen(task: dict[str, Any]) -> Parts:
    """How to go on where another had edited what is completed."""
    if "unseenEditBy" not in task:
        return []
    amend = f"teams update-task {task['id']} --result TEXT"
    return [f"{task['unseenEditBy']} had edited it (shown now): if your work lacks the change, fix it, then: {amend}"]


def line(task: dict[str, Any], more: str = "") -> list[str]:
    by = f" by {task['owner']}" if "owner" in task else f", for {task['assignee']}" if "assignee" in task else ""
    by += ", who has yet to join" if task.get("assigneeExpected") else ""
    waits = f", blocked by {text.listed(task['openBlockers'])}" if task["openBlockers"] else ""
    return [f"{task['id']}: {task['status']}{by}{waits}{more}: {task['title']}"]


def noted(task: dict[str, Any]) -> list[str]:
    """Say that the note was added, and to which task."""
    by = f" by {task['owner']}" if "owner" in task else ""
    return [f"note added to {task['id']} ({task['status']}{by}): {task['title']}"]


def released(task: dict[str, Any]) -> list[str]:
    """Show a task that is free again, and who had it, if that was another."""
    last = task["notes"][-1]
    return line(task, f", taken from {last['owner']}" if "owner" in last else "")


def given_back(task: dict[str, Any]) -> list[str]:
    """Show a task that its owner gave back, saying why."""
    return [*line(task), "the leader is notified why; others are offered it first"]


def claimed(task: dict[str, Any]) -> Parts:
    """Show a task with all that its owner has to know."""
    return _claimed(task, _text(task))


def claimed_knowing(task: dict[str, Any]) -> Parts:
    """Show a task to who has read what it says."""
    return _claimed(task, [])


def _claimed(task: dict[str, Any], content: Parts) -> Parts:
    others = [blocker for blocker in task.get("blockers", ()) if blocker.get("owner") != task.get("owner")]
    done = [blocker for blocker in others if blocker.get("result") or blocker["status"] == "completed"]
    return [
        *line(task),
        *content,
        *_taken_over(task),
        *_pages(task),
        *([f"touches: {', '.join(task['touches'])}"] if task.get("touches") else []),
        *(f"{one['agent']} changes {one['region']} ({one['task']})" for one in task.get("meets", ())),
        *_check(task),
        *_after(task),
        *(_came_to(blocker) for blocker in done),
        *(_plan(task.get("approvedPlan"), task.get("owner")) if task.get("planRequired") else []),
        f"{left(task['leaseExpiresAt'])}, renewed by any `teams` command; "
        f"to release it: teams release-task {task['id']}",
    ]


def _after(task: dict[str, Any]) -> list[str]:
    """The tasks that have to be completed before this one."""
    return [f"completes after: {text.listed(task['openAfter'])}"] if task.get("openAfter") else []


def _check(task: dict[str, Any]) -> Parts:
    """What completing it runs; in a checkout, without what nobody has committed."""
    if "check" not in task:
        return []
    on = " on committed work" if "checkFrom" in task and "checkIn" not in task else ""
    return [f"check, run{on} when you complete it (if it fails, the task stays yours): {task['check']}"]


def _plan(approved: dict[str, Any] | None, owner: str | None) -> Parts:
    """The plan that was approved for the task, to who did not propose it; or that it needs one."""
    if approved is None:
        return ["needs a plan that the leader approves: a few lines on what you will do, and how"]
    if approved["from"] == owner:
        return [f"your {approved['id']} is approved: go on with it (teams show-plan {approved['id']})"]
    noted = f", with the note: {approved['note']}" if "note" in approved else ""
    head = f"{approved['id']} of {approved['from']} is approved: go on with it{noted}"
    return [head, *text.quoted(approved["plan"])]


def _taken_over(task: dict[str, Any]) -> Parts:
    """Who had the task before, what was heard of that one last, and what it left."""
    before, files = task.get("takenOver"), task.get("uncommitted", ())
    left: Parts = [
        f"uncommitted: {file['path']}, changed {ago(file['changedAt'])}{' by ' + file['by'] if file['by'] else ''}"
        for file in files
    ]
    if before is None:
        return left
    if before["from"] == task.get("owner"):
        return [f"it was yours before, until {before['reason'].partition(',')[0]}", *left]
    heard = f", last heard of {ago(before['lastHeard'])}" if "lastHeard" in before else ""
    doing = f", doing: {before['status']}" if "status" in before else ""
    why = f" ({before['reason']})" if before["how"] == "released" and "reason" in before else ""
    if left:
        look = ""
    elif "worktree" in before:
        look = f": nothing is uncommitted in {before['worktree']}; its commits are on the branch there"
    else:
        look = ": look for uncommitted work"
    return [f"it was {before['from']}'s{heard}{doing}{why}{look}", *left]


def _pages(task: dict[str, Any]) -> Parts:
    if "pages" not in task:
        return []
    from teams_cli.cli.show import questions  # most have nothing new to read

    return questions.untold_pages(task)


def _came_to(blocker: dict[str, Any]) -> str:
    """What the task came to, or how that begins."""
    result = text.clipped_line(blocker.get("result") or "(none given)", _CLIPPED)
    more = f" (teams show-task {blocker['id']})" if result.endswith("…") else ""
    by = f" ({blocker['owner']})" if "owner" in blocker else ""
    return f"result of {blocker['id']}{by}: {result}{more}"


_CLIPPED = 1200
"""Characters of a result that who claims is told: most are whole."""


def standing(task: dict[str, Any]) -> Parts:
    """What changes: how it stands, with whom, how long, with what it waits for, and what came out."""
    lease = f", {left(task['leaseExpiresAt'])}" if "leaseExpiresAt" in task else ""
    plan = task.get("planId")
    blockers = text.listed([f"{one['id']} ({one['status']})" for one in task.get("blockers", ())], _MOST_NAMED)
    return [
        f"{task['id']}: {task['title']}",
        *present(
            f"status: {_status(task)}{lease}",
            f"owner: {_whose(task)}" if _whose(task) else None,
            f"blocked by: {blockers}" if blockers else None,
            *_after(task),
            f"plan: {task['plan']}{f' (teams show-plan {plan})' if plan else ''}" if "plan" in task else None,
        ),
        *_proof(task),
        *(["result:", *text.quoted(task["result"])] if task.get("result") else []),
    ]


_MOST_NAMED = 100


def _proof(task: dict[str, Any]) -> Parts:
    """What its owner's word that it is done rests on."""
    check, review = task.get("checked"), task.get("reviewed")
    place = f" (in {task['checkIn']})" if "checkIn" in task else ""
    run = f"check: {task['check']}{place}" if "check" in task else None
    if check:
        on = f" on {check['commit'][:10]}" if "commit" in check else ""
        how = "passed" if check["status"] == 0 else f"failed (exit status {check['status']})"
        took = f" in {length_of(check['seconds'])}" if check.get("seconds") else ""
        run = f"check: {check['command']}: {how}{took}{on} {ago(check['at'])}{', stale' if check.get('stale') else ''}"
    why = f": {review['reason']}" if review and "reason" in review else ""
    verdict = f": {review['verdict']} by {review['by']}{why}" if review else ""
    commit = f", commit {task['submitted'][:10]}" if "submitted" in task else ""
    return present(
        run,
        *(text.quoted(check["output"]) if check and check["status"] else ()),
        f"review by: {task['reviewBy']}{commit}{verdict}" if "reviewBy" in task else None,
        *(
            f"attached: {file['name']}, {file['size']} bytes, {file['sha256'][:12]}: "
            f"teams get-evidence {task['id']} {file['id']}"
            for file in task.get("evidence", ())
        ),
        f"landing: {task['landing']}" if "landing" in task else None,
    )


def whole(task: dict[str, Any]) -> Parts:
    said = task.get("description", "")
    notes = [f"{ago(note['at'])}  {note['what']} by {note['by']}{_because(note, said)}" for note in task["notes"]]
    said = {
        "priority": task["priority"],
        "requires": ", ".join(task["require"]),
        "touches": ", ".join(task.get("touches", ())),
        "imported from": _source(task["source"]) if "source" in task else "",
    }
    facts = [f"{name}: {value}" for name, value in said.items() if value]
    return [*standing(task), *facts, *_text(task), *notes]


def _source(source: dict[str, Any]) -> str:
    """Where it was imported from."""
    url = f", {source['url']}" if "url" in source else ""
    return f"{source['from']}, {source['id']}{url}{', foreign text' if source.get('foreign') else ''}"


def _text(task: dict[str, Any]) -> Parts:
    return present(*text.quoted(task.get("description")), f"run: {task['run']}" if "run" in task else None)


def _because(note: dict[str, Any], description: str) -> str:
    """What the note changed or added, and why; an addition that the description has is clipped."""
    added = note.get("added")
    if added and note["what"] == "edited" and added.strip("\n") in description:
        added = text.clipped_line(added, _SHORT)
    parts = [", ".join(note.get("changed", ())), added, note.get("reason")]
    reason = "; ".join(" ".join(part.split()) for part in parts if part)
    return f": {reason}" if reason else ""


def beat(done: dict[str, Any]) -> Parts:
    ends: dict[str, list[str]] = {}
    for task in done["tasks"]:
        end = f"{left(task['leaseExpiresAt'])}, until {moment(task['leaseExpiresAt'])}"
        ends.setdefault(end, []).append(task["id"])
    kept = [f"{', '.join(ids)}: {end}" for end, ids in ends.items()]
    return [f"{done['agent']}: seen {ago(done['lastSeen'])}{'' if kept else ', has no task'}", *kept]


def attachments(files: list[dict[str, Any]]) -> Parts:
    rows = [
        [file["id"], file["name"], str(file["size"]), file["by"], age(file["at"]), file["sha256"]] for file in files
    ]
    return [Table(["attachment", "file", "bytes", "by", "age", "sha256"], rows, "no attachments")]


def attachment(one: dict[str, Any]) -> Parts:
    head = f"{one['id']} {one['name']}: {one['size']} bytes, attached to {one['task']} by {one['by']} {ago(one['at'])}"
    if "text" not in one:
        return [head, f"not text: teams get-evidence {one['task']} {one['id']} --out FILE"]
    rest = f"[cut; the whole: teams get-evidence {one['task']} {one['id']} --out FILE]"
    return [head, *text.bounded(text.quoted(one["text"]), text.MOST_LETTER, rest)]


def attachment_written(one: dict[str, Any]) -> Parts:
    return [f"{one['path']}: {one['size']} bytes, sha256 {one['sha256']}"]


_COMMIT = 10


def landing_asked(landing: dict[str, Any]) -> Parts:
    """Show a landing with the command that follows."""
    step = f"next: teams wait --landing {landing['id']}"
    return [*landing_over(landing), *([step] if landing["state"] in ("queued", "checking") else [])]


def landing_over(landing: dict[str, Any]) -> Parts:
    """How it stands; of one that came back all that its owner has to know."""
    what = f"{landing['id']}: {landing['state']}, {landing['task']} onto {landing['onto']}"
    check = landing.get("checked") or {}
    at = f" is {landing['merge'][:_COMMIT]}" if landing["state"] == "landed" and "merge" in landing else ""
    return present(
        what + at,
        *_conflict(landing),
        f"check: {check['command']}: exit status {check['status']}" if check.get("status") else None,
        *(text.quoted(check["output"]) if check.get("status") else ()),
        *text.quoted(landing.get("reason")),
        f"pull request: {landing['url']}" if "url" in landing else None,
        f"to fix it: git merge {landing['onto']}, edit, commit" if landing["state"] == "red" else None,
    )


def _conflict(landing: dict[str, Any]) -> list[str]:
    """The places in which it conflicts, with whose work, and what to do."""
    if not landing.get("files"):
        return []
    from teams_cli.agents import regions  # dear, and few landings conflict

    onto, against = landing["onto"], landing.get("against")
    cause = f" with {against['owner']}'s {against['task']}, landed {moment(against['at'])}" if against else ""
    known = {place["file"]: place for place in landing.get("places") or ()}
    places = [regions.in_words(known[name]) if name in known else name for name in landing["files"]]
    how = f"to fix it: git merge {onto}, resolve, commit"
    return [f"conflict{cause} in:", *(f"  {place}" for place in places), how]


def landings(landings: list[dict[str, Any]]) -> Parts:
    columns = ["landing", "state", "task", "owner", "commit", "onto", "age", "about"]
    return [Table(columns, [_landing_row(landing) for landing in landings], "no landings")]


def _landing_row(landing: dict[str, Any]) -> list[str]:
    check = landing.get("checked") or {}
    about = text.listed(landing.get("files", ())) or landing.get("reason") or ""
    if landing["state"] == "red":
        about = f"{check.get('command')}: exit status {check.get('status')}"
    return [
        landing["id"],
        landing["state"],
        landing["task"],
        landing.get("owner", "-"),
        landing["head"][:_COMMIT],
        landing["onto"],
        age(landing["createdAt"]),
        about or landing["title"],
    ]


def landing(landings: list[dict[str, Any]]) -> Parts:
    """Show a landing in full."""
    (landing,) = landings
    names = ("title", "owner", "branch", "repository", "head", "base", "merge", "check", "createdAt", "endedAt")
    return [*landing_over(landing), *(f"{name}: {landing[name]}" for name in names if name in landing)]
