"""Answers on teams, the brief, and closed teams, in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.show import ago, counts_of, length_of, present, tasks
from teams_cli.cli.tables import Table
from teams_cli.names import HUMAN
from teams_cli.tasks import overviews
from teams_cli.views import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.show import Parts

    Lines = list[tuple[str, int]]


def created(team: dict[str, Any]) -> Parts:
    return present(
        f"{team['name']}: created; its leader is {team['leader']}",
        f"token of {team['leader']}: {team['token']}" if "token" in team else None,
        f"token of human: {team['humanToken']}" if "humanToken" in team else None,
        steps.LEADING if team["leader"] != HUMAN else None,
    )


def teams(rows: list[dict[str, Any]]) -> Parts:
    table = [
        [
            row["name"],
            row["leader"],
            str(row["memberCount"]),
            counts_of(row["taskCounts"]),
            ago(row["createdAt"]),
            row["state"],
        ]
        for row in rows
    ]
    return [Table(["team", "leader", "members", "tasks", "created", "state"], table, "no teams")]


def team(team: dict[str, Any]) -> Parts:
    rows = [
        [
            member["agentId"],
            member["role"],
            member.get("agentType", ""),
            member.get("agentName", ""),
            "stopped" if "stoppedBy" in member else "left" if "leftAt" in member else "member",
        ]
        for member in team["members"]
    ]
    head = f"{team['name']} ({team['state']}), led by {team['leader']}, created {ago(team['createdAt'])}"
    roles = [f"role {name} extends {role['extends']}" for name, role in team["roles"].items()]
    members = Table(["agent", "role", "type", "name", "state"], rows, "no members")
    return [*present(head, *text.quoted(team.get("description"))), members, *roles]


def joined(member: dict[str, Any]) -> Parts:
    return present(
        f"{member['agentId']}: in team {member['team']} as {member['role']}",
        f"token: {member['token']}" if "token" in member else None,
        "rules of the team:" if "rules" in member else None,
        *text.quoted(member.get("rules"), "| "),
        *(tasks.claimed(member["claimed"]) if "claimed" in member else ()),
    )


def left(done: dict[str, Any]) -> Parts:
    freed = done["releasedTasks"]
    return present(f"{done['agentId']}: left team {done['team']}", f"released: {', '.join(freed)}" if freed else None)


def role(role: dict[str, Any]) -> Parts:
    return [f"{role['name']}: extends {role['extends']}"]


def copied(done: dict[str, Any]) -> Parts:
    counts = ", ".join(f"{count} {name}" for name, count in done["copied"].items())
    return present(
        f"{done['team']}: copied to {done['to']} ({counts or 'it was there already'})",
        f"closed here; continue there: teams brief --team {done['team']} --store …",
    )


def led(team: dict[str, Any]) -> Parts:
    return [f"{team['leader']} leads team {team['name']}"]


_END = {"work": "merge", "empty": "remove"}


def closed(team: dict[str, Any]) -> Parts:
    person = " --as human" if team.get("closedBy") == HUMAN else ""
    left = [
        f"{tree['agent']} left {tree['path']}: "
        f"teams worktree {_END.get(tree['state'], 'diff')} {tree['agent']} --team {team['name']}{person}"
        for tree in team.get("worktrees", ())
    ]
    ended = [f"{name}: its detached client was ended" for name in team.get("endedClients", ())]
    watched = [client_left(team["name"], name) + person for name in team.get("leftClients", ())]
    return [f"{team['name']}: closed; to reopen it: teams restore-team {team['name']}{person}", *ended, *watched, *left]


def client_left(team: str, name: str) -> str:
    """What is said of a detached client that somebody looks at."""
    return f"{name}: somebody watches its client, which goes on; to end it: teams stop-agent {name} --team {team}"


def restored(team: dict[str, Any]) -> Parts:
    return [f"{team['name']}: open"]


def addresses(done: dict[str, Any]) -> Parts:
    return [f"{agent}: {address}" for agent, address in done["addresses"].items()]


def who(document: dict[str, Any]) -> Parts:
    root = f"root: {document['root']} ({document['sources']['root']})"
    if document["agentId"] is None:
        return ["unknown: name yourself with --as AGENT or TEAMS_AGENT_ID; a person is `human`", root]
    role = document["role"] or ("no member" if document["team"] else _several(document))
    team = f" of team {document['team']}" if document["team"] else ""
    about = text.quoted(document.get("about"))
    return [f"{document['agentId']}: {role}{team}", *about, root]


def brief(document: dict[str, Any]) -> Parts:
    """Show where an agent is in at most 1,500 characters: what is least needed gives way."""
    if "members" not in document:
        return [*_outside(document), f"next: {document['next']}"]
    lines = [*_mine(document), *_waiting(document), *_others(document)]
    last = f"next: {document['next']}" if document["next"] else overviews.DONE
    head = (
        f"{document['agent']}: {document['role'] or 'no member'} of team {document['team']}"
        f" (leader {document['leader']}, {text.counted(document['members'], 'member')})"
    )
    while lines and len(head) + len(last) + sum(len(line) + 1 for line, _ in lines) + 2 > _MOST:
        lines.remove(max(lines, key=lambda pair: (pair[1], len(pair[0]))))
    return [head, *(line for line, _ in lines), *last.split("\n")]  # a command of several lines is pasted as it is


_MOST = 1500
_SEEN, _NEEDED, _USEFUL, _EXTRA = range(4)
"""What gives way last: it counts as read, or is shown once."""


def _outside(document: dict[str, Any]) -> list[str]:
    if document["team"]:
        return [f"{document['agent']}: team {document['team']} does not exist yet"]
    is_open = document["teams"] and "memberOf" not in document
    known = f"; teams: {', '.join(document['teams'][:20])}" if is_open else ""
    return [f"{document['agent']}: {_several(document)}{known}"]


def _several(document: dict[str, Any]) -> str:
    """Of which teams an agent is a member that named none, and how it chooses."""
    if document.get("memberOf"):
        return f"a member of {', '.join(document['memberOf'][:20])}; choose with --team NAME or TEAMS_TEAM"
    return "in no team"


def _mine(document: dict[str, Any]) -> Lines:
    lines: Lines = []
    if "closed" in document:
        by = f" by {document['closedBy']}" if document.get("closedBy") else ""
        when = ago(document["closed"]["at"])
        lines.append((f"the team was closed{by} {when}: you are done", _NEEDED))
    lines += [(line, _NEEDED) for line in text.quoted(document.get("about"))]
    lines += [(line, _SEEN) for line in text.quoted(document.get("rules"), "| ")]
    for task in document["myTasks"]:
        lines.append((f"yours: {task['id']} {task['title']}{_state(task)}", _NEEDED))
        lines += [(f"  {done['id']} ({done['owner']}): {done['result']}", _USEFUL) for done in task["results"]]
    if document["myTaskCount"] > len(document["myTasks"]):
        lines.append((f"your tasks: {document['myTaskCount']}: teams get-tasks --owner {document['agent']}", _NEEDED))
    lines += [(f"{page['text']} ({steps.read_page(page['key'])})", _NEEDED) for page in document.get("pages", ())]
    if document.get("morePages"):
        lines.append((f"{document['morePages']} more pages changed: teams shared", _NEEDED))
    return lines + [(line, _SEEN) for line in document["news"]]


def _state(task: dict[str, Any]) -> str:
    """What has to be known of one's task: how long the claim lasts, what it waits for, how it stands with its plan."""
    soon = ": any `teams` command renews it" if task.get("leaseEndsSoon") else ""
    facts = [f"{length_of(task['leaseSeconds'])} left{soon}"] if task["leaseSeconds"] is not None else []
    if task["waitsFor"]:
        facts.append(f"waits for {', '.join(task['waitsFor'])}")
    if task["plan"]:
        facts.append(f"plan {task['plan']}" if task["planId"] is None else f"{task['planId']} {task['plan']}")
    return f" ({'; '.join(facts)})" if facts else ""


def _waiting(document: dict[str, Any]) -> Lines:
    least = "at least " if document.get("moreUnread") else ""
    lines: list[str | None] = [
        f"asked to shut down: {document['shutdown']}" if document["shutdown"] else None,
        f"unread: {least}{document['unread']} ({', '.join(document['unreadFrom'])})" if document["unread"] else None,
        _first("read, still open", document["unhandled"], document["unhandledCount"], "teams read-messages --peek"),
        *(
            f"overdue: {late['id']} is not acknowledged by {', '.join(late['waitsFor'])}"
            for late in document["overdue"]
        ),
        _first("questions to you", document["questions"], document["questionCount"], "teams get-questions"),
        _first("plans waiting for you", document["plans"], document["planCount"], "teams get-plans --open"),
        *(f"  {plan['id']} of {plan['from']}: {plan['plan']}" for plan in document["proposed"]),
    ]
    return [(line, _NEEDED) for line in lines if line]


def _first(what: str, named: list[str], count: int, rest: str) -> str | None:
    """The first of what waits, and how many more with the command that lists them; None if there is nothing."""
    more = f" and {count - len(named)} more: {rest}" if count > len(named) else ""
    return f"{what}: {', '.join(named)}{more}" if named else None


def _others(document: dict[str, Any]) -> Lines:
    lines: Lines = []
    for status in ("completed", "failed"):
        ended = [_end(each, document["leads"]) for each in document["finished"] if each["status"] == status]
        if ended:
            lines.append((f"{status}: {_named(ended)}", _NEEDED))
    if document["stale"] and document["leads"]:
        lines.append((f"checked on commits that did not land: {', '.join(document['stale'][:_MOST_STALE])}", _NEEDED))
    if document["stuck"]:
        lines.append((f"blocked by failed tasks: {', '.join(document['stuck'][:5])}", _USEFUL))
    if document["moreChanges"]:
        lines.append((f"{document['moreChanges']} other changes: teams history --since {document['since']}", _EXTRA))
    counts = ", ".join(f"{count} {status}" for status, count in document["tasks"].items()) or "none"
    return [*lines, (f"tasks: {counts}; ready: {document['ready']}", _USEFUL)]


def _end(task: dict[str, Any], leads: bool) -> str:
    """A task that ended, by whom; for who leads also whether it was checked, and who accepted it."""
    facts = [task["by"]]
    if leads:
        facts += ["checked"] if task.get("checked") else []
        facts += [f"accepted by {task['acceptedBy']}"] if "acceptedBy" in task else []
    return f"{task['id']} ({', '.join(facts)})"


def _named(ended: list[str]) -> str:
    """All of them; where they are many, by their numbers alone, or how many."""
    if len(whole := ", ".join(ended)) <= _SHORT:
        return whole
    numbers = ", ".join(each.partition(" ")[0].removeprefix("task-") for each in ended)
    return numbers if len(numbers) <= 2 * _SHORT else f"{len(ended)} tasks: teams get-tasks"


_SHORT = 300
_MOST_STALE = 10


def pruned(rows: list[dict[str, Any]]) -> Parts:
    lines: Parts = [
        f"{row['ref']}: {_said(row)}, kept work"
        if "ref" in row
        else f"{row['team']}: {_said(row)}, closed {row['closedAt']}"
        for row in rows
    ]
    if any(not row["removed"] and not row["kept"] for row in rows):
        lines.append("Nothing was removed. To remove them: teams prune --yes")
    return lines or ["no team was closed that long ago"]


def _said(row: dict[str, Any]) -> str:
    return "removed" if row["removed"] else f"kept ({row['kept']})" if row["kept"] else "would be removed"


def risen(done: dict[str, Any]) -> Parts:
    return present(
        f"{done['team']}: {'created' if done['created'] else 'exists'}; its leader is {done['leader']}",
        *(f"{member['name']}: {member['state']}, {member['role']}{_kept(member)}" for member in done["members"]),
        f"pages: {', '.join(done['pages'])}" if done["pages"] else None,
        f"tasks: {', '.join(done['tasks'])}" if done["tasks"] else None,
    )


def _kept(member: dict[str, Any]) -> str:
    return f" (not {member['said']}: members keep their role)" if "said" in member else ""


def ended(done: dict[str, Any]) -> Parts:
    return present(
        f"{done['team']}: closed",
        f"stopped: {', '.join(done['stopped'])}" if done["stopped"] else None,
        *(client_left(done["team"], name) for name in done.get("leftClients", ())),
    )
