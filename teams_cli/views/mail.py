"""Mail in the answers of other commands, the plan or task that a message is about, and the closing of messages that
need no answer any more.
"""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.messages.messages import MESSAGE, Event, Message
from teams_cli.names import HUMAN, SYSTEM
from teams_cli.store.contract import Store, upsert
from teams_cli.teams import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.tasks.tasks import Task
    from teams_cli.teams.presence import OnceShown
    from teams_cli.teams.teams import Team

    InTeam = Callable[[str], str]

_MOST_SHOWN = 3
_OFFERS = (Event.TASK_ASSIGNED, Event.TASK_ASSIGNED_BLOCKED, Event.TASK_READY)
"""The events of notices that offer or assign a task to their reader."""
_LOSS_UIDS = (f"{SYSTEM}~lost-", f"{SYSTEM}~taken-")
"""The prefixes of the uids of notices about a task that their reader no longer has."""
_FEW_NEW = 32
"""Up to this many new messages, only the envelopes are read: number, uid and recipients. If more have come, the inbox
is read, and the position in it is noted.
"""
_LONGEST = 180
"""The maximum number of characters of a notice shown whole. A notice that is cut is shown again by the next wait."""
_LONGEST_RESULT = 90
"""How many characters of a notice of a completed task are shown if it is too long to be shown whole."""
_LONGEST_TO_ACT_ON = 600
"""The maximum number of characters of a notice that is shown whole because the agent has to act on it."""
_LONGEST_MAIL = 200
"""The maximum number of characters of a one-line message that the reminder shows whole, which marks it as read."""


def reminder(
    store: Store, team: Team, name: str, once_shown: OnceShown, in_team: InTeam, last: int | None = None
) -> tuple[str, bool]:
    """Return a reminder of what was not shown to the agent *name* yet: unread mail, notices, and messages of its own
    that were not acknowledged in time; "" if there is nothing. Also return whether there is unread mail that the
    reminder does not show in full.

    *in_team* adds `--team` to commands; what members wrote stays as it is. *last* is the number of the team's last
    message; if it is None, it is looked up.
    """
    agent = presence.load(store, team.name, name)
    last = store.last(team.name, MESSAGE) if last is None else last
    lines, has_unshown_mail = _unread_mail(store, team, agent, once_shown, in_team, last)
    overdue: list[str] = []
    if agent.awaits:
        from teams_cli.views import receipts

        overdue = receipts.overdue_notices(store, team.name, agent, once_shown)
    return "\n".join(filter(None, [*lines, in_team("; ".join(overdue))])), has_unshown_mail


def losses(store: Store, team: str, agent: presence.Agent, once_shown: OnceShown, last: int) -> str:
    """Return sentences about the tasks that the agent lost since it last looked. An answer shows them before anything
    else, because a loss changes what the agent does next. Each loss is reported once.

    *last* is the number of the last message in the team. If very many messages have come, the result is empty, and the
    losses are reported by `reminder`, with the other mail.
    """
    shown_to, name = agent.told_to or 0, agent.agent
    if not 0 < last - shown_to <= _FEW_NEW:
        return ""
    envelopes = store.envelopes(team, MESSAGE, shown_to)
    numbers = sorted(number for number, uid, names in envelopes if name in names and uid.startswith(_LOSS_UIDS))
    notices = [
        notice
        for notice in store.fetch(team, MESSAGE, numbers, [])
        if not was_shown(agent, notice) and not is_outdated(store, team, name, notice)
    ]
    if notices:
        once_shown(lambda: _note_shown(store, team, name, shown_to, {notice.id for notice in notices}))
    return "\n".join(_on_one_line(true_text(store, team, notice)) for notice in notices)


def _unread_mail(
    store: Store, team: Team, agent: presence.Agent, once_shown: OnceShown, in_team: InTeam, last: int
) -> tuple[list[str], bool]:
    """Return lines with the unread mail and the notices that the agent was not shown. Also return whether there is
    unread mail that the lines do not show in full.
    """
    name, shown_to = agent.agent, agent.told_to or 0
    if last <= shown_to:
        return [], False
    are_few_new = last - shown_to <= _FEW_NEW
    # Most new messages are for others, or from the agent itself: then its inbox is neither read nor imported.
    if are_few_new and not any(
        name in recipients for _, _, recipients in store.envelopes(team.name, MESSAGE, shown_to)
    ):
        return [], False
    from teams_cli.messages import inboxes

    mailbox = inboxes.Mailbox(store, team.name, name)
    unread = mailbox.unread(quiet=True)
    if not unread or unread[-1] <= shown_to:
        if not are_few_new:  # the next reminder begins here, so that it finds few
            _note_shown(store, team.name, name, last, set())
        return [], False
    messages = mailbox.messages(unread)
    mail = [message for message in messages if message.from_ != SYSTEM]
    new_mail = [message for message in mail if message.number > shown_to][-_MOST_SHOWN:]
    whole_mail = {message.number for message in new_mail if _is_one_short_line(message)}
    notices = [
        message
        for message in messages
        if message.from_ == SYSTEM
        and message.number > shown_to
        and not was_shown(agent, message)
        and not is_outdated(store, team.name, name, message)
        and not is_for_later(store, team.name, message)
        and not _is_offer_to_owner(store, team.name, name, message)
    ]
    new_notices = notices[-_MOST_SHOWN:]
    whole_notices = {notice.id for notice in new_notices if len(_on_one_line(notice.message)) <= _longest(notice)}

    def note() -> None:
        mailbox.mark_read(whole_mail)
        _note_shown(store, team.name, name, unread[-1], whole_notices)

    once_shown(note)
    lines = [_mail_line(store, team, message, in_team) for message in new_mail]
    if not_whole := len(mail) - len(whole_mail):
        lines.append(in_team(f"{not_whole} unread: teams read-messages"))
    news = [
        _with_step(store, team, notice, _shortened(notice, true_text(store, team.name, notice)), in_team)
        for notice in new_notices
    ]
    if len(notices) > _MOST_SHOWN:
        news.append(f"{len(notices) - _MOST_SHOWN} more: teams read-messages")
    if news:
        lines.append(in_team("; ".join(news)))
    return lines, bool(not_whole)


def true_text(store: Store, team: str, message: Message) -> str:
    """Return the text of the message. If it is a notice that a task was lost, it offers the task only if it is free."""
    if message.from_ != SYSTEM or message.event_and_task[0] not in (Event.TASK_LOST, Event.TASK_RELEASED):
        return message.message
    from teams_cli.tasks import leases

    return leases.without_offer(store, team, message)


def was_shown(agent: presence.Agent, message: Message) -> bool:
    """Return whether the agent was shown the whole message before."""
    return message.id in agent.told


def asks_for_something(store: Store, team: Team, message: Message) -> bool:
    """Return whether the message may ask its reader for something. If so, it should be shown without delay."""
    if message.type == "broadcast":  # which may ask for something in any words
        return not message.fyi
    return step_after(store, team, message) is not None


def step_after(store: Store, team: Team, message: Message) -> str | None:
    """Return the command with which the reader should react to the message; None if reading is enough, or nothing can
    be done any more.
    """
    from teams_cli.views import steps

    if team.state == "closed" or is_outdated(store, team.name, message.to, message):
        return None
    subject = subject_of(store, team.name, message.about or "")
    return steps.after_message(message.to_document(), team, subject)


def is_message(key: str) -> bool:
    """Return whether *key* is the id of a message, rather than the key of a fact, such as that a task is ready."""
    return key.startswith("msg-")


def is_outdated(store: Store, team: str, agent: str, message: Message) -> bool:
    """Return whether later events make a notice useless to the agent.

    * A message of a person or an agent is never outdated, nor is a notice of a release, because it says why.
    * A notice that the agent lost a task, or that the task was taken from it, is outdated if the agent has it again or
      has ended it.
    * A notice that a task was completed is outdated if the task was reopened since, for example by a failed landing.
    * A notice that a task can be completed, or was returned to the agent, is outdated if the agent does not have it.
    * A notice that an owner is silent is outdated when the grace period is over. Logins can't close it for the leader.
    * A notice that a task is no longer assigned to the agent is outdated if the agent never saw that it was.
    * A notice of a proposed plan is outdated if the plan is decided or replaced.
    * A notice that somebody waits for an answer is outdated if the agent has handled the message.
    * For other notices about a task, see `_is_outdated_about`. All other notices are never outdated.
    """
    event, task_id = message.event_and_task
    if message.from_ != SYSTEM or event == Event.TASK_RELEASED:
        return False
    if event == Event.TASK_UNASSIGNED:
        return _is_assignment_unseen(store, team, agent, message, task_id)
    if event == Event.PLAN_PROPOSED:
        return not _is_plan_open(store, team, message.about or "")
    if event == Event.TASK_COMPLETED:
        task = _task(store, team, task_id)
        return task is not None and (task.status != "completed" or (task.completed_at or "") > message.timestamp)
    if event in (Event.TASK_BACK, Event.TASK_COMPLETABLE):
        task = _task(store, team, task_id)
        return task is None or (task.owner, task.status) != (agent, "in_progress")
    if event in (Event.LEASE_ENDING, Event.OWNER_SILENT):
        task = _task(store, team, task_id)
        return task is None or not task.in_grace
    if event in (Event.TASK_LOST, Event.TASK_TAKEN):
        task = _task(store, team, task_id)
        return task is not None and task.owner == agent
    if is_message(message.about or ""):  # somebody waits for an answer to it
        from teams_cli.messages import inboxes

        mailbox = inboxes.Mailbox(store, team, agent)
        return inboxes.is_handled(mailbox.inbox, MESSAGE.number_in(message.about or ""))
    task = _task_of_notice(store, team, message)
    return task is not None and _is_outdated_about(store, team, agent, message, task)


def _is_outdated_about(store: Store, team: str, agent: str, notice: Message, task: Task) -> bool:
    """Return whether the *notice* about the *task* tells the agent nothing useful any more."""
    event = notice.event_and_task[0]
    if event == Event.REVIEW_ASKED:
        if task.status != "in_review":  # somebody else has ended the review
            return True
        # Reviewers that were named since were asked by notices of their own.
        edits = (note for note in task.notes if note.what == "edited" and note.at > notice.timestamp)
        return any("reviewBy" in (edit.changed or ()) for edit in edits)
    if event == Event.TASK_EDITED:  # an agent that claims the task is shown the edited text
        return task.owner == agent and (task.claimed_at or "") >= notice.timestamp
    if event in _OFFERS and task.assignee != agent:  # the task is assigned to nobody, or to another agent
        return True
    if task.status != "pending":  # an agent that has claimed the task knows about it
        return task.owner == agent
    if event == Event.TASK_ASSIGNED_BLOCKED:
        return not _is_blocked(store, team, task)
    from teams_cli.views import work

    try:  # a fact may have reported already that the task is ready
        return work.ready_key(task) in presence.load(store, team, agent).told
    except errors.TeamsError:
        return False


def _is_assignment_unseen(store: Store, team: str, agent: str, notice: Message, task_id: str) -> bool:
    """Return whether the agent has not seen yet that the task was assigned to it, before this *notice* took it away."""
    from teams_cli.messages import inboxes

    mailbox = inboxes.Mailbox(store, team, agent)
    earlier = [number for number in mailbox.unread(quiet=True) if number < notice.number]
    record = presence.load(store, team, agent)
    assignments = [(event, task_id) for event in (Event.TASK_ASSIGNED, Event.TASK_ASSIGNED_BLOCKED)]
    unread = [message for message in mailbox.messages(earlier) if message.event_and_task in assignments]
    return bool(unread) and not was_shown(record, unread[-1])


def is_for_later(store: Store, team: str, message: Message) -> bool:
    """Return whether the message only says that a blocked task was edited. An agent that claims a task is shown all of
    it, so the message need not be shown before.
    """
    if message.event_and_task[0] != Event.TASK_EDITED:
        return False
    task = _task_of_notice(store, team, message)
    return task is not None and task.status == "pending" and _is_blocked(store, team, task)


def _is_offer_to_owner(store: Store, team: str, agent: str, message: Message) -> bool:
    """Return whether the message offers or assigns a task to the agent while the agent has another task in progress."""
    if message.event_and_task[0] not in _OFFERS:
        return False
    from teams_cli.tasks import tasks

    return bool(tasks.held_by(store, team, agent))


def _is_blocked(store: Store, team: str, task: Task) -> bool:
    from teams_cli.tasks import dependencies

    return bool(dependencies.open_blockers(task, dependencies.stored(store, team)))


def _task_of_notice(store: Store, team: str, message: Message) -> Task | None:
    """Return the task that the message is about, if the message is a notice; None for other messages and subjects."""
    event, edited = message.event_and_task
    about = edited if event == Event.TASK_EDITED else message.about or ""
    if message.from_ != SYSTEM or message.type != "notice" or not about.startswith("task-"):
        return None
    return _task(store, team, about)


def _is_plan_open(store: Store, team: str, plan_id: str) -> bool:
    """Return whether the plan waits for a decision; True if it can't be read."""
    from teams_cli.tasks import plans

    try:
        return plans.is_open(store, team, plans.get(store, team, plan_id))
    except errors.TeamsError:
        return True


def _task(store: Store, team: str, key: str) -> Task | None:
    from teams_cli.tasks import tasks

    try:
        return tasks.get(store, team, key)
    except errors.TeamsError:
        return None


def _is_one_short_line(message: Message) -> bool:
    return len(message.message) <= _LONGEST_MAIL and "\n" not in message.message


def _mail_line(store: Store, team: Team, message: Message, in_team: InTeam) -> str:
    """Return a line with the message and the command that answers it, or with the beginning of a long message."""
    if not _is_one_short_line(message):
        return f"{message.id} from {message.from_} begins: {message.message.lstrip()[:_LONGEST].partition(chr(10))[0]}"
    return _with_step(store, team, message, f"{message.id} from {message.from_}: {message.message}", in_team)


def _with_step(store: Store, team: Team, message: Message, line: str, in_team: InTeam) -> str:
    step = step_after(store, team, message)
    return f"{line} ({in_team(step)})" if step and step not in line else line


def _shortened(notice: Message, body: str) -> str:
    """Return *body*, the text to show of the notice, on one line. It is cut if it is too long."""
    line = _on_one_line(body)
    if notice.event_and_task[0] == Event.TASK_COMPLETED and len(line) > _LONGEST:
        return text.clipped(line, _LONGEST_RESULT)  # the leader's next wait shows it in full
    return text.clipped(line, _longest(notice), f" (teams show-message {notice.id})")


def _longest(notice: Message) -> int:
    """Return the maximum number of characters of the notice that the reminder shows."""
    to_act_on = (Event.OWN_TASK_EDITED, Event.PLAN_APPROVED, Event.PLAN_REJECTED, Event.REVIEW_ASKED)
    return _LONGEST_TO_ACT_ON if notice.event_and_task[0] in to_act_on else _LONGEST


def _on_one_line(body: str) -> str:
    return " ".join(body.split())


def _note_shown(store: Store, team: str, name: str, number: int, whole_ids: set[str]) -> None:
    """Record that the agent was shown the messages up to *number*, and in full the messages whose ids are in
    *whole_ids*, which no longer end a wait.
    """

    def change(agent: presence.Agent) -> presence.Agent:
        new_ids = sorted(whole_ids.difference(agent.told))
        if (agent.told_to or 0) >= number and not new_ids:
            return agent
        return agent.having(told_to=max(number, agent.told_to or 0), told=[*agent.told, *new_ids])

    try:
        upsert(store, team, presence.AGENT, name, presence.Agent(agent=name), change)
    except errors.TeamsError:  # the agent will be shown the messages again
        return


def subject_of(store: Store, team: str, about: str) -> dict[str, Any] | None:
    """Return the plan, the task or the page of an agreement with the id *about* as a document. Return None for other
    ids, and also if the record can't be read. `teams doctor` reports records that can't be read.

    A plan has the fields `isOpen`, whether it waits for a decision, `isReplaced`, and `taskState`, about its task.
    The author of the plan can claim the task (`ready`), can complete it (`in_progress`), or has to wait (`blocked`).
    `taskState` is `over` if the task is ended, in review, assigned to another or somebody else's, or if the author
    leads the team now; and None if the plan has no task.
    """
    kind = about.partition("-")[0]
    if kind not in ("plan", "task", "agree"):
        return None
    from teams_cli.tasks import plans, tasks
    from teams_cli.teams import pages, teams

    try:
        if kind == "agree":
            return pages.get(store, team, about.partition("~")[0]).to_document()
        if kind == "task":
            return tasks.get(store, team, about).to_document()
        plan = plans.get(store, team, about)
        later = plans.replacement(store, team, plan)
        is_open = plan.status == "proposed" and later is None
        document = {**plan.to_document(), "isOpen": is_open, "isReplaced": later is not None}
        if plan.task is None:
            return {**document, "taskState": None}
        task = tasks.get(store, team, plan.task)
        if plan.from_ == teams.get(store, team).leader or task.assignee not in (None, plan.from_):
            state = "over"
        elif task.status == "pending":
            state = "blocked" if _is_blocked(store, team, task) else "ready"
        elif task.status == "in_progress" and task.owner == plan.from_:
            state = "blocked" if _is_blocked(store, team, task) else "in_progress"
        else:
            state = "over"
        return {**document, "taskState": state}
    except errors.TeamsError:
        return None


def is_settled(store: Store, team: str, message: Message) -> bool:
    """Return whether the message needs no answer, because all tasks that it names have ended since it was sent."""
    from teams_cli.tasks.tasks import FINISHED

    task_ids = _tasks_named(message)
    for key in task_ids:
        task = _task(store, team, key)
        if task is None or task.status not in FINISHED or (task.completed_at or "") < message.timestamp:
            return False
    return bool(task_ids)


def close_settled(store: Store, team: str, agent: str) -> None:
    """Close the messages that the agent has read and whose tasks have all ended since they were sent."""
    _close_read(store, team, agent, lambda message: is_settled(store, team, message))


def close_carried_out(store: Store, team: Team, task: Task, agent: str) -> None:
    """Close the messages that the agent has read and that asked only for the *task*, which the agent has ended.

    Such a message names this task and no other. If it names no task, it must come from the leader or the person, and
    must have been sent while the agent had the task.
    """

    def is_carried_out(message: Message) -> bool:
        if not _may_be_closed(message):
            return False
        if task_ids := _tasks_named(message):
            return task_ids == {task.id}
        return message.from_ in (team.leader, HUMAN) and message.timestamp >= (task.claimed_at or "")

    _close_read(store, team.name, agent, is_carried_out)


def _close_read(store: Store, team: str, agent: str, is_done: Callable[[Message], bool]) -> None:
    """Close the messages that the agent has read and for which *is_done* returns true."""
    from teams_cli.messages import inboxes

    inbox = inboxes.load(store, team, agent)
    read = [entry.number for entry in inbox.open if entry.read_at]
    if not read:
        return
    messages = store.fetch(team, MESSAGE, read, [])
    if numbers := {message.number for message in messages if is_done(message)}:
        from teams_cli.messages import reading

        reading.mark_handled(store, team, agent, numbers)


def _may_be_closed(message: Message) -> bool:
    """Return whether a message may be closed without a command of its reader. Notices, replies and messages that must
    be acknowledged may not.
    """
    return message.type in ("plain", "broadcast") and not message.ack_by


def _tasks_named(message: Message) -> set[str]:
    """Return the ids of the tasks that a message names; none if the message may be closed only by its reader."""
    if not _may_be_closed(message):
        return set()
    from teams_cli.tasks import tasks  # long, and not needed to send a message

    return set(tasks.mentioned(message.message))
