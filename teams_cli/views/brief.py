"""The shortest answer to "where am I and what next?", for an agent that lost its context."""

from __future__ import annotations

from contextlib import suppress

from teams_cli import errors, text
from teams_cli.membership import shutdowns
from teams_cli.messages import events, inboxes, receipts
from teams_cli.messages.messages import Message
from teams_cli.names import HUMAN, SYSTEM
from teams_cli.questions import questions
from teams_cli.store.contract import Store
from teams_cli.store.retrying import upsert
from teams_cli.tasks import leases, overviews, plans, tasks
from teams_cli.tasks.checks import CHECK_STALE
from teams_cli.tasks.claims import may_claim
from teams_cli.tasks.overviews import Overview
from teams_cli.tasks.plans import Plan
from teams_cli.tasks.tasks import IN_PROGRESS, IN_REVIEW, Task
from teams_cli.teams import pages, presence, roles, settings, teams
from teams_cli.teams.permission import standing_of
from teams_cli.teams.teams import Team
from teams_cli.views import matters, steps, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceTold

    Found = dict[str, Any]

_WAITING = 4
_TITLE = 48
_PLAN = 200
_RULES = 500
_DESCRIPTION = 600
"""Characters of the description of its task that an agent is shown which has claimed nothing since it joined."""
_PAGES = 4
_NEWS = 450
"""Characters of the news that are shown, and so are read: they never give way to anything else."""
_ENDS = {"task completed": "completed", "task failed": "failed"}


def brief(store: Store, team_name: str, caller: Caller, once_told: OnceTold) -> Found:
    """Show your tasks, what waits for you, what others finished since you last looked, and your next command."""
    try:
        team = teams.get(store, team_name)
    except errors.TeamNotFound:
        return outside(store, team_name, caller)
    found = overviews.overview(store, team_name).changed(lambda task: leases.current(store, team, task))
    proposed = plans.all_of(store, team_name, [])
    document = _about_team(team, caller, found, overviews.lands(store, team_name)) | _mine(
        store, team, caller, found, proposed
    )
    told = _told_once(store, team, caller)
    whole = bool(told.get("rules")) and len(told["rules"]) <= _RULES
    document |= (
        told | _waiting(store, team, caller, proposed, whole, once_told) | _since(store, team, caller, once_told)
    )
    document |= _pages(store, team, caller.name, once_told)
    document["next"] = steps.following(document)
    return document


def outside(store: Store, team_name: str, caller: Caller, own: Sequence[str] = ()) -> Found:
    """The brief of who is in no team: the one that it named is not there, or it has to say which of its *own*."""
    known = store.teams()
    step = steps.outside(team_name, known, caller.name, own)
    document: Found = {"agent": caller.name, "role": None, "team": team_name or None, "teams": known}
    return {**document, **({"memberOf": own} if own else {}), "next": step}


def _told_once(store: Store, team: Team, caller: Caller) -> Found:
    """The sentence about the caller's role, and the rules of the team, for a first look. Members at the time of a
    change were notified.
    """
    if presence.load(store, team.name, caller.name).looked_to is not None:
        return {}
    member = team.member(caller.name)
    about = roles.about(member, team, caller.config) if member else ""
    return {**({"about": about} if about else {}), **_rules(team)}


def _rules(team: Team) -> Found:
    rules = str(settings.value(team, settings.RULES))
    if not rules:
        return {}
    return {"rules": text.clipped(rules, _RULES, " (all of it: teams settings)")}


def _pages(store: Store, team: Team, name: str, once_told: OnceTold) -> Found:
    """The pages that others changed since the caller looked, the newest of them by name; noted as told."""
    found = pages.unseen(store, team.name, name)
    if not found:
        return {}
    if team.member(name):
        once_told(lambda: pages.note_seen(store, team.name, name, found))
    shown = [{"key": page.key, "version": page.version, "text": page.headline} for page in found[:_PAGES]]
    return {"pages": shown, "morePages": len(found) - len(shown)}


def role_of(team: Team, caller: Caller) -> str | None:
    """The caller's role in the team; None for a stranger."""
    at = standing_of(team, caller)
    return at.role if at else None


def _about_team(team: Team, caller: Caller, found: Overview, lands: bool) -> Found:
    at, left, stuck, counts = standing_of(team, caller), team.find(caller.name), found.stuck, found.counts
    counts = {status: count for status, count in counts.items() if count}
    document: Found = {
        "agent": caller.name,
        "role": at.role if at else None,
        "team": team.name,
        "leader": team.leader,
        "members": len(team.active_names()),
        "tasks": counts,
        "leads": bool(at and at.leads) or (caller.is_human and team.leader == HUMAN),
        "going": lands
        or bool(counts.get(IN_PROGRESS) or counts.get(IN_REVIEW))
        or counts.get("pending", 0) > len(stuck),
        "stuck": stuck,
    }
    if left and left.stopped_by:
        document["stopped"] = left.stopped_by
    if team.state == "closed":
        document["closed"] = {"at": team.closed_at}
    return document


def _mine(store: Store, team: Team, caller: Caller, found: Overview, proposed: list[Plan]) -> Found:
    """The caller's tasks, and how many it could take."""
    mine = [task for task in found.found if task.status == IN_PROGRESS and task.owner == caller.name]
    rows = work.rows_of(store, team, mine, proposed)
    if mine and not presence.load(store, team.name, caller.name).explained:
        more = f" (all of it: teams show-task {mine[0].id})"
        rows[0]["description"] = text.clipped(mine[0].description or "", _DESCRIPTION, more)
    return {
        "myTasks": rows,
        "myTaskCount": len(mine),
        "ready": found.free + len(ready := found.ready),
        "readyForMe": _count_fitting(ready, found.free, team, caller),
    }


def _count_fitting(ready: list[Task], free: int, team: Team, caller: Caller) -> int:
    """The number of ready tasks that the caller may claim and has the skills for; *free* ones are for anybody."""
    member = team.member(caller.name)
    if member is None or not may_claim(team, caller):
        return 0
    skills = roles.skills_of(member, team, caller.config)
    return free + sum(task.assignee in (None, caller.name) and skills.issuperset(task.require) for task in ready)


def _waiting(
    store: Store, team: Team, caller: Caller, proposed: list[Plan], rules_shown: bool, once_told: OnceTold
) -> Found:
    """The things that wait for an action of the caller."""
    name = caller.name
    asked = next(shutdowns.open_requests(store, team, name), None)
    if team.member(name) and team.state != "closed":
        with suppress(errors.TeamsError):  # it is shown as open then
            matters.close_over(store, team.name, name)
    mailbox = inboxes.Mailbox(store, team.name, name)
    inbox, mail = mailbox.inbox, mailbox.open_messages()
    waiting = _plans_for(team, caller, proposed)
    shown = [_proposal(plan) for plan in waiting[:1]]
    notices = [message for message in mail if _is_news(message) and inbox.is_unread(message.number)]
    beside = [
        m
        for m in notices
        if _is_past(store, team.name, name, m) or _tells_of(m, shown) or (rules_shown and m.about == settings.RULES)
    ]
    told = _fitting([message for message in notices if message not in beside])
    seen = {message.number for message in [*told, *beside]}
    unread = [number for number in inboxes.unread_in(inbox) if number not in seen]
    if seen and team.state != "closed":
        once_told(lambda: mailbox.mark_read(seen))
    asking = _questions_to(store, team.name, name)
    asking_mail = [message for message in mail if steps.expects_answer(message.to_document(), team.leader)]
    unhandled = inboxes.unanswered(inbox, asking_mail, len(asking_mail))
    return {
        "unread": len(unread),
        **({"moreUnread": True} if len(inbox.open) >= inboxes.MOST_OPEN else {}),
        "unreadFrom": [f"{m.id} from {m.from_}" for m in mail if m.number in unread][-_WAITING:],
        "unhandled": unhandled[:_WAITING],
        "unhandledCount": len(unhandled),
        "toAnswer": next((m.about for m in mail if m.about and m.about.startswith("ask-")), next(iter(asking), None)),
        "questions": asking[:_WAITING],
        "questionCount": len(asking),
        "toReview": _to_review(store, team, caller),
        "plans": [plan.id for plan in waiting[:_WAITING]],
        "planCount": len(waiting),
        "proposed": shown,
        "shutdown": asked.id if asked else None,
        "news": leases.without_offers(told),
        "overdue": receipts.overdue(store, team.name, name)[:_WAITING],
    }


def _fitting(notices: list[Message]) -> list[Message]:
    """The oldest of the notices that can be shown whole; the others stay unread."""
    shown: list[Message] = []
    for message in notices:
        if sum(len(each.message) + 1 for each in [*shown, message]) <= _NEWS:
            shown.append(message)
    return shown


def _to_review(store: Store, team: Team, caller: Caller) -> list[str]:
    """The tasks that wait for the caller's review."""
    found = list(tasks.labelled(store, team.name, IN_REVIEW))
    if not found:
        return []
    from teams_cli.tasks import reviews  # what most briefs do without

    return [task.id for task in found if reviews.reviews(team, task, caller.name, caller.config)][:_WAITING]


def _is_news(message: Message) -> bool:
    """Whether reading it here is all there is to do: a notice of the system, and not of a task that ended."""
    return message.from_ == SYSTEM and message.type in ("notice", "plan")


def _is_past(store: Store, team: str, agent: str, notice: Message) -> bool:
    """Whether it tells of a task that the agent has taken since."""
    from teams_cli.views import reminders  # what most briefs do without

    return reminders.is_done(store, team, agent, notice)


def _tells_of(message: Message, proposals: list[Found]) -> bool:
    """Whether all that it says is that one of these plans was proposed."""
    return events.of(message)[0] == events.PLAN_PROPOSED and message.about in [plan["id"] for plan in proposals]


def _proposal(plan: Plan) -> Found:
    about = {"id": plan.id, "from": plan.from_, "task": plan.task}
    return {**about, "plan": text.clipped_line(plan.plan, _PLAN), "whole": len(plan.plan) <= _PLAN}


def _plans_for(team: Team, caller: Caller, proposed: list[Plan]) -> list[Plan]:
    """The plans that wait for the caller's decision."""
    at = standing_of(team, caller)
    if at is None or not (at.leads or caller.is_human):
        return []
    return [plan for plan in proposed if plan.status == "proposed" and plan.from_ != caller.name]


def _questions_to(store: Store, team: str, name: str) -> list[str]:
    """The open questions that wait for the caller's answer."""
    asked = [question for question in questions.all_of(store, team, []) if question.open]
    return [question.id for question in asked if name in question.waiting_for]


def _since(store: Store, team: Team, caller: Caller, once_told: OnceTold) -> Found:
    """The tasks that others finished since the caller last looked, and the number of other changes; both are marked as
    seen.
    """
    name = caller.name
    looked_to = presence.load(store, team.name, name).looked_to or 0
    entries = list(store.history(team.name, looked_to))
    if entries and name != HUMAN and team.member(name):
        once_told(lambda: _looked(store, team.name, name, entries[-1][0]))
    others = [entry for _, entry in entries if entry.get("actor") != name]
    ended = [entry for entry in others if entry.get("what") in _ENDS]
    document: Found = {
        "finished": [_ended(entry) for entry in ended],
        "stale": list(dict.fromkeys(str(e["task"]) for e in others if e.get("what") == CHECK_STALE)),
        "changes": _in_words(ended),
        "moreChanges": len(others) - len(ended),
    }
    if others:
        document["since"] = others[0].get("at")
    if team.state == "closed":
        from teams_cli.teams import history

        document["closedBy"] = history.closed_by(store, team.name)
    return document


def _in_words(entries: list[Found]) -> list[str]:
    if not entries:  # as mostly: nothing is loaded for it
        return []
    from teams_cli.teams import history

    return [text.clipped_line(history.line(entry), _TITLE) for entry in entries]


def _ended(entry: Found) -> Found:
    """The task that ended, its owner, and the evidence for it."""
    by = entry.get("actor")
    document = {"id": entry.get("task"), "by": entry.get("owner", by), "status": _ENDS[str(entry["what"])]}
    accepted = {"acceptedBy": by} if entry.get("owner", by) != by else {}
    return document | accepted | ({"checked": True} if entry.get("checked") else {})


def _looked(store: Store, team: str, name: str, position: int) -> None:
    """Note how far the caller has seen. On a disk that can't be written it will see the same again."""
    fresh = presence.Agent(agent=name)
    try:
        upsert(store, team, presence.AGENT.also_closed, name, fresh, lambda agent: agent.having(looked_to=position))
    except errors.TeamsError:
        return
