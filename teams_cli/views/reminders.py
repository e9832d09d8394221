"""Reminders: the last line of an answer, about what waits for its caller and was not shown yet."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.messages import events
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store
from teams_cli.store.retrying import upsert
from teams_cli.teams import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.tasks.tasks import Task
    from teams_cli.teams.presence import OnceTold
    from teams_cli.teams.teams import Team

_NAMED = 3
_OF_A_LOSS = (f"{SYSTEM}~lost-", f"{SYSTEM}~taken-")
"""The beginnings of the uids of notices about a task that their reader no longer has."""
_NEAR = 32
"""Messages whose envelopes are looked at; behind more the inbox is asked, and how far that was is noted."""
_LONGEST = 140
"""Characters of a notice that are told whole: what is cut off is told again by the next wait."""
_WHOLE = 200
"""The most characters of a one-line message that the reminder shows whole, which marks it read."""


class Reminder:
    """The reminder as text, empty if nothing waits; *has_mail* if it does not show all mail in full."""

    def __init__(self, text: str, has_mail: bool = False) -> None:
        self.text = text
        self.has_mail = has_mail


def reminder(store: Store, team: Team, name: str, once_told: OnceTold, last: int | None = None) -> Reminder:
    """Collect what waits for an agent and was not told to it: unread mail, news of the system, and messages of its own
    that are overdue. *last* is the number of the last message, where that was looked up a moment ago.
    """
    agent = presence.load(store, team.name, name)
    mail = _mail(store, team, agent, once_told, store.last(team.name, MESSAGE) if last is None else last)
    parts: list[str] = []
    if agent.awaits:
        from teams_cli.messages import receipts

        parts += receipts.tell(store, team.name, name, once_told)
    return Reminder("\n".join(filter(None, [mail.text, "; ".join(parts)])), mail.has_mail)


def losses(store: Store, team: str, agent: presence.Agent, once_told: OnceTold, last: int) -> str:
    """What the agent has to know first: which tasks it lost since it was told of anything; each is told once. Among
    very many messages up to the *last* it is told with its mail.
    """
    told_to, name = agent.told_to or 0, agent.agent
    if not 0 < last - told_to <= _NEAR:
        return ""
    envelopes = store.envelopes(team, MESSAGE, told_to)
    numbers = sorted(number for number, uid, to in envelopes if name in to and uid.startswith(_OF_A_LOSS))
    found = [m for m in store.fetch(team, MESSAGE, numbers, []) if not was_told(agent, m)]
    lost = [message for message in found if not is_done(store, team, name, message)]
    if lost:
        once_told(lambda: _note(store, team, name, told_to, {message.id for message in lost}))
    return "\n".join(map(_in_a_line, _true_together(lost)))


def _mail(store: Store, of_team: Team, known: presence.Agent, once_told: OnceTold, last: int) -> Reminder:
    """Its unread mail, short messages whole, and what the system has to say, unless it was told of all that."""
    team, agent, told_to = of_team.name, known.agent, known.told_to or 0
    near = last - told_to <= _NEAR
    if last <= told_to or (near and not _any_to(store, team, agent, told_to)):
        return Reminder("")
    from teams_cli.messages import inboxes

    mailbox = inboxes.Mailbox(store, team, agent)
    unread = mailbox.unread(quiet=True)
    if not unread or unread[-1] <= told_to:
        if not near:
            _note(store, team, agent, last, set())
        return Reminder("")
    found = mailbox.messages(unread)
    mail = [message for message in found if message.from_ != SYSTEM]
    fresh = (message for message in found if message.from_ == SYSTEM and message.number > told_to)
    news = [
        m
        for m in fresh
        if not was_told(known, m) and not (is_done(store, team, agent, m) or is_for_later(store, team, m))
    ]
    whole = {message.id for message in news[-_NAMED:] if _is_short(message)}
    shown = [message for message in mail if message.number > told_to][-_NAMED:]
    read = {message.number for message in shown if _fits_in_a_line(message)}

    def note() -> None:
        mailbox.mark_read(read)
        _note(store, team, agent, unread[-1], whole)

    once_told(note)
    named = news[-_NAMED:]
    notices = [_short(_in_a_line(body), message) for body, message in zip(_true_together(named), named, strict=True)]
    if len(news) > _NAMED:
        notices.append(f"{len(news) - _NAMED} more: teams read-messages")
    left = len(mail) - len(read)
    unread_mail = [f"{left} unread: teams read-messages"] if left else []
    lines = [*(_message_line(message, of_team.leader) for message in shown), *unread_mail, "; ".join(notices)]
    return Reminder("\n".join(filter(None, lines)), bool(left))


def _true_together(notices: list[Message]) -> list[str]:
    """The texts of the notices, without what another of them makes untrue."""
    if len(notices) < 2:
        return [notice.message for notice in notices]
    from teams_cli.tasks import leases

    return leases.without_offers(notices)


def _any_to(store: Store, team: str, agent: str, told_to: int) -> bool:
    """Whether a message behind that number is for the agent: most are not, as what it sent itself, and then nothing of
    its inbox has to be read, nor imported.
    """
    return any(agent in recipients for _, _, recipients in store.envelopes(team, MESSAGE, told_to))


def was_told(agent: presence.Agent, message: Message) -> bool:
    """Whether the whole message stood at the end of another answer to the agent."""
    return message.id in agent.told


def is_message(about: str) -> bool:
    """Whether what an agent was told is a message, and not something that is so."""
    return about.startswith("msg-")


def is_done(store: Store, team: str, agent: str, message: Message) -> bool:
    """Whether the message tells of a task that was kept for the agent, which took it since, and with that was shown
    what it says, or heard that it is ready from a wait that was faster than the message; or what is so no longer: that
    one has lost a task which it has again, that one is kept for it which is not, or who waits for what it answered.
    """
    if message.from_ != SYSTEM:
        return False
    event, about = events.of(message)
    if event in (events.TASK_LOST, events.TASK_RELEASED, events.TASK_TAKEN):
        again = _task(store, team, about)
        if again is None or again.status != "in_progress" or again.owner != agent:
            return False
        return event != events.TASK_RELEASED  # which also says why
    if (message.about or "").startswith("msg-"):  # that somebody waits for an answer
        from teams_cli.messages import inboxes

        mailbox = inboxes.Mailbox(store, team, agent)
        return inboxes.is_handled(mailbox.inbox, MESSAGE.number_in(message.about or ""))
    task = _kept_task(store, team, message)
    if task is None:
        return False
    if event == events.TASK_EDITED:
        return task.owner == agent and (task.claimed_at or "") >= message.timestamp
    if task.assignee != agent and event in (events.TASK_ASSIGNED, events.TASK_ASSIGNED_BLOCKED, events.TASK_READY):
        return True
    if task.status == "pending":
        from teams_cli.tasks import dependencies
        from teams_cli.views import work

        if event == events.TASK_ASSIGNED_BLOCKED:
            return not dependencies.open_blockers(task, dependencies.stored(store, team))
        try:
            return work.about(task) in presence.load(store, team, agent).told
        except errors.TeamsError:
            return False
    return task.owner == agent


def is_for_later(store: Store, team: str, message: Message) -> bool:
    """Whether the message tells of an edit of a task that is kept for its reader, and that nobody can take yet: what
    it says is shown to who takes it.
    """
    is_edit = events.of(message)[0] == events.TASK_EDITED
    task = _kept_task(store, team, message) if is_edit else None
    if task is None or task.status != "pending":
        return False
    from teams_cli.tasks import dependencies

    return bool(dependencies.open_blockers(task, dependencies.stored(store, team)))


def _kept_task(store: Store, team: str, message: Message) -> Task | None:
    """The task that is kept for the reader of the message, if it is about one; None where that can't be read."""
    event, edited = events.of(message)
    about = edited if event == events.TASK_EDITED else message.about or ""
    if message.from_ != SYSTEM or message.type != "notice" or not about.startswith("task-"):
        return None
    return _task(store, team, about)


def _task(store: Store, team: str, key: str) -> Task | None:
    """The task of that id; None where it can't be read."""
    from teams_cli.tasks import tasks

    try:
        return tasks.get(store, team, key)
    except errors.TeamsError:
        return None


def _fits_in_a_line(message: Message) -> bool:
    return len(message.message) <= _WHOLE and "\n" not in message.message


def _message_line(message: Message, leader: str | None) -> str:
    """A line with the whole message, and the command that answers it if it asks for one; or with its beginning."""
    from teams_cli.views import steps

    if not _fits_in_a_line(message):
        return f"{message.id} from {message.from_} begins: {message.message.lstrip()[:_LONGEST].partition(chr(10))[0]}"
    step = steps.after_message(message.to_document(), leader)
    return f"{message.id} from {message.from_}: {message.message}{f' ({step})' if step else ''}"


def _in_a_line(body: str) -> str:
    return " ".join(body.split())


def _is_short(message: Message) -> bool:
    return len(_in_a_line(message.message)) <= _LONGEST


def _short(line: str, message: Message) -> str:
    return text.clipped(line, _LONGEST, f" ({message.id})")


def _note(store: Store, team: str, agent: str, number: int, whole: set[str]) -> None:
    """Note up to which message the agent was told, and which it was told whole, so that a wait does not end for them.
    On a disk that can't be written it is told again.
    """

    def change(known: presence.Agent) -> presence.Agent:
        if (known.told_to or 0) >= number and whole.issubset(known.told):
            return known
        return known.having(
            told_to=max(number, known.told_to or 0), told=[*known.told, *sorted(whole.difference(known.told))]
        )

    try:
        upsert(store, team, presence.AGENT, agent, presence.Agent(agent=agent), change)
    except errors.TeamsError:
        return
