"""The shortest answer to "where am I and what next?", for an agent that lost its context."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.membership import shutdowns
from teams_cli.messages import inboxes
from teams_cli.messages.messages import Event, Message
from teams_cli.names import HUMAN, SYSTEM
from teams_cli.questions import questions
from teams_cli.store.contract import Store
from teams_cli.tasks import leases, overviews, plans
from teams_cli.tasks.checks import CHECK_STALE
from teams_cli.tasks.claims import may_claim
from teams_cli.tasks.overviews import Overview
from teams_cli.tasks.plans import Plan
from teams_cli.tasks.tasks import IN_PROGRESS, IN_REVIEW
from teams_cli.teams import pages, presence, roles, settings, teams
from teams_cli.teams.permission import standing_of
from teams_cli.teams.presence import Agent
from teams_cli.teams.teams import Team
from teams_cli.views import mail, steps, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceShown

    Document = dict[str, Any]

_WAITING = 4
_TITLE = 48
_PLAN = 200
_RULES = 500
_DESCRIPTION = 600
"""How many characters of its task's description are shown to an agent that has claimed nothing since it joined."""
_PAGES = 4
_NEWS = 450
"""How many characters of notices are shown, and thereby marked as read. They never give way to anything else."""
_ENDS = {"task completed": "completed", "task failed": "failed"}


def brief(store: Store, team_name: str, caller: Caller, once_shown: OnceShown) -> Document:
    """Show your tasks, what waits for you, what others finished since you last looked, and your next command."""
    try:
        team = teams.get(store, team_name)
    except errors.TeamNotFound:
        return outside(store, team_name, caller)
    agent = presence.load(store, team_name, caller.name)
    overview = overviews.overview(store, team_name).changed(lambda task: leases.current(store, team, task))
    all_plans = plans.all_of(store, team_name, [])
    first_look = {}
    if agent.looked_to is None:  # notices report later changes
        member = team.member(caller.name)
        about = roles.about(member, team, caller.config) if member else ""
        rules = text.clipped(str(settings.value(team, settings.RULES)), _RULES, " (all of it: teams settings)")
        first_look = {**({"about": about} if about else {}), **({"rules": rules} if rules else {})}
    rules_shown = 0 < len(first_look.get("rules", "")) <= _RULES  # rules that are cut do not count as shown
    document = (
        _about_team(team, caller, overview, overviews.has_unlanded_task(store, team_name))
        | _own_tasks(store, team, caller, agent, overview, all_plans)
        | first_look
        | _waiting(store, team, caller, agent, all_plans, rules_shown, once_shown)
        | _since(store, team, caller, agent, once_shown)
        | _pages(store, team, caller.name, once_shown)
    )
    after_all = "" if document["going"] else work.after_all(store, team.name, document["stuck"])
    document["next"] = steps.following(document, may_claim(team, caller), after_all)
    return document


def outside(store: Store, team_name: str, caller: Caller, own_teams: Sequence[str] = ()) -> Document:
    """Return the brief for a caller whose team is not known: the caller named no team, or a team that does not exist.
    *own_teams* are the caller's teams, if it is in several and named none.
    """
    all_teams = store.teams()
    document: Document = {"agent": caller.name, "role": None, "team": team_name or None, "teams": all_teams}
    if own_teams:
        document["memberOf"] = own_teams
    document["next"] = steps.outside(team_name, all_teams, caller.name, own_teams)
    return document


def _pages(store: Store, team: Team, name: str, once_shown: OnceShown) -> Document:
    """Return the pages that others changed since the agent *name* last looked. Once shown, they count as seen."""
    unseen = pages.unseen(store, team.name, name)
    if not unseen:
        return {}
    if team.member(name):
        once_shown(lambda: pages.note_seen(store, team.name, name, unseen))
    shown = [{"key": page.key, "version": page.version, "text": page.headline} for page in unseen[:_PAGES]]
    return {"pages": shown, "morePages": len(unseen) - len(shown)}


def _about_team(team: Team, caller: Caller, overview: Overview, lands: bool) -> Document:
    """Return the caller's role and the state of the team. `going` is true if work is under way or can begin, or if
    *lands* is set, which says that a completed task has yet to be merged.
    """
    standing, member = standing_of(team, caller), team.find(caller.name)
    counts = {status: count for status, count in overview.counts.items() if count}
    can_be_done = counts.get("pending", 0) > len(overview.stuck)
    document: Document = {
        "agent": caller.name,
        "role": standing.role if standing else None,
        "team": team.name,
        "leader": team.leader,
        "members": len(team.active_names()),
        "tasks": counts,
        "leads": bool(standing and standing.leads) or (caller.is_human and team.leader == HUMAN),
        "going": lands or bool(counts.get(IN_PROGRESS) or counts.get(IN_REVIEW)) or can_be_done,
        "stuck": overview.stuck,
    }
    if member and member.stopped_by:
        document["stopped"] = member.stopped_by
    if team.state == "closed":
        document["closed"] = {"at": team.closed_at}
    return document


def _own_tasks(
    store: Store, team: Team, caller: Caller, agent: Agent, overview: Overview, all_plans: list[Plan]
) -> Document:
    """Return the caller's tasks, the number of ready tasks, and how many of these the caller may claim. If the caller
    was given a task before it ever claimed one, include the description of its first task, which it has not seen yet.
    """
    own_tasks = [task for task in overview.tasks_read if task.status == IN_PROGRESS and task.owner == caller.name]
    rows = work.rows_of(store, team, own_tasks, all_plans)
    has_claimed = bool(agent.explained)  # the rules are explained with the first claim
    if own_tasks and not has_claimed:
        if_cut = f" (all of it: teams show-task {own_tasks[0].id})"
        rows[0]["description"] = text.clipped(own_tasks[0].description or "", _DESCRIPTION, if_cut)
    ready, member = overview.ready, team.member(caller.name)
    for_caller = 0
    if member and may_claim(team, caller):
        skills = roles.skills_of(member, team, caller.config)
        fitting = [t for t in ready if t.assignee in (None, caller.name) and skills.issuperset(t.require)]
        for_caller = overview.free + len(fitting)
    return {
        "myTasks": rows,
        "myTaskCount": len(own_tasks),
        "ready": overview.free + len(ready),
        "readyForMe": for_caller,
    }


def _waiting(
    store: Store,
    team: Team,
    caller: Caller,
    agent: Agent,
    all_plans: list[Plan],
    rules_shown: bool,
    once_shown: OnceShown,
) -> Document:
    """Return what waits for the caller: mail, questions, reviews, plans to decide, a request to shut down, and its own
    messages that nobody acknowledged in time. If *rules_shown* is set, notices about the team's rules are left out.
    """
    name, standing = caller.name, standing_of(team, caller)
    plans_to_decide: list[Plan] = []
    if standing and (standing.leads or caller.is_human):
        plans_to_decide = [plan for plan in plans.open_ones(all_plans) if plan.from_ != name]
    first_plans = plans_to_decide[:1]  # the brief has room for the text of one plan
    subjects_shown = {plan.id for plan in first_plans}
    if rules_shown:
        subjects_shown.add(settings.RULES)
    request = next(shutdowns.open_requests(store, team, name), None)
    question_ids = [q.id for q in questions.all_of(store, team.name, []) if q.open and name in q.waiting_for]
    mail_shown = _mail(store, team, name, subjects_shown, once_shown)
    overdue: list[Document] = []
    if agent.awaits:
        from teams_cli.views import receipts

        overdue = receipts.overdue(store, team.name, agent)
    return mail_shown | {
        "toAnswer": mail_shown["toAnswer"] or next(iter(question_ids), None),
        "questions": question_ids[:_WAITING],
        "questionCount": len(question_ids),
        "toReview": work.to_review(store, team, caller)[:_WAITING],
        "plans": [plan.id for plan in plans_to_decide[:_WAITING]],
        "planCount": len(plans_to_decide),
        "proposed": [
            {
                "id": plan.id,
                "from": plan.from_,
                "task": plan.task,
                "plan": text.clipped_line(plan.plan, _PLAN),
                "whole": len(plan.plan) <= _PLAN,
            }
            for plan in first_plans
        ],
        "shutdown": request.id if request else None,
        "overdue": overdue[:_WAITING],
    }


def _mail(store: Store, team: Team, name: str, subjects_shown: set[str], once_shown: OnceShown) -> Document:
    """Return the unread and unanswered mail and the new notices of the agent *name*. `toAnswer` is the id of the first
    question in the mail, or None.

    Two kinds of notices are left out: outdated notices, and notices about one of the *subjects_shown*, which another
    part of the brief shows. Once the answer was shown, the notices in it and those left out are marked as read.
    """
    is_open = team.state != "closed"
    if team.member(name) and is_open:
        try:
            mail.close_settled(store, team.name, name)
        except errors.TeamsError:  # if they can't be closed, they are shown as open
            pass
    mailbox = inboxes.Mailbox(store, team.name, name)
    inbox, messages = mailbox.inbox, mailbox.open_messages()
    # Other mail asks for something, or is about the end of a task, which the brief shows elsewhere.
    new_numbers = set(inbox.unread(quiet=True))
    notices = [m for m in messages if m.from_ == SYSTEM and m.type in ("notice", "plan") and m.number in new_numbers]

    def is_needless(notice: Message) -> bool:
        is_about_rules, event = notice.about == settings.RULES, notice.event_and_task[0]
        if notice.about in subjects_shown and (is_about_rules or event == Event.PLAN_PROPOSED):
            return True
        return mail.is_outdated(store, team.name, name, notice)

    left_out = list(filter(is_needless, notices))
    news = _fitting([notice for notice in notices if notice not in left_out])
    read_numbers = {message.number for message in [*news, *left_out]}
    unread = [number for number in inbox.unread() if number not in read_numbers]
    if read_numbers and is_open:
        once_shown(lambda: mailbox.mark_read(read_numbers))
    asking = [message for message in messages if steps.expects_answer(message.to_document(), team)]
    unhandled = inboxes.unanswered(inbox, asking, len(asking))
    return {
        "unread": len(unread),
        **({"moreUnread": True} if len(inbox.open) >= inboxes.MOST_OPEN else {}),
        "unreadFrom": [f"{m.id} from {m.from_}" for m in messages if m.number in unread][-_WAITING:],
        "unhandled": unhandled[:_WAITING],
        "unhandledCount": len(unhandled),
        "toAnswer": next((m.about for m in messages if m.about and m.about.startswith("ask-")), None),
        "news": [mail.true_text(store, team.name, notice) for notice in news],
    }


def _fitting(notices: list[Message]) -> list[Message]:
    """Return the notices that can be shown in full within the limit of characters. The oldest are taken first."""
    shown: list[Message] = []
    for message in notices:
        if sum(len(each.message) + 1 for each in [*shown, message]) <= _NEWS:
            shown.append(message)
    return shown


def _since(store: Store, team: Team, caller: Caller, agent: Agent, once_shown: OnceShown) -> Document:
    """Return the tasks that others ended since the caller last looked, and the number of their other changes."""
    name = caller.name
    entries = list(store.history(team.name, agent.looked_to or 0))
    if entries and name != HUMAN and team.member(name):
        once_shown(lambda: presence.note_facts(store, team.name, name, looked_to=entries[-1][0]))
    entries_of_others = [entry for _, entry in entries if entry.get("actor") != name]
    ends = [entry for entry in entries_of_others if entry.get("what") in _ENDS]
    finished = []
    for entry in ends:
        actor = entry.get("actor")
        owner = entry.get("owner", actor)  # another member than the actor if the task was accepted
        row = {"id": entry.get("task"), "by": owner, "status": _ENDS[str(entry["what"])]}
        row |= {"acceptedBy": actor} if owner != actor else {}
        row |= {"checked": True} if entry.get("checked") else {}
        finished.append(row)
    document: Document = {
        "finished": finished,
        "stale": list(dict.fromkeys(str(e["task"]) for e in entries_of_others if e.get("what") == CHECK_STALE)),
        "changes": [],
        "moreChanges": len(entries_of_others) - len(ends),
    }
    if ends or team.state == "closed":
        from teams_cli.teams import history  # not needed by most briefs

        document["changes"] = [text.clipped_line(history.line(entry), _TITLE) for entry in ends]
        if team.state == "closed":
            document["closedBy"] = history.closed_by(store, team.name)
    if entries_of_others:
        document["since"] = entries_of_others[0].get("at")
    return document
