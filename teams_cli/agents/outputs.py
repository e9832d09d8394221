"""The last output of each started agent, which is stored, and is sent to the agent's caller: the member that started
the agent. A new generation of an agent's session begins each time the agent is started or resumed.
"""

from __future__ import annotations

from teams_cli.agents.sessions import Session
from teams_cli.messages import messages
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.records.records import Record, field
from teams_cli.store.contract import Kind, Store, get_if_there, upsert
from teams_cli.text import MAX_RESULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from teams_cli.records.types import Count, Name, Text


_RECENT = 1000
"""Number of the newest messages that are searched for an answer of the agent."""
_WRITTEN = ("plain", "reply", "broadcast")
"""The types of messages that an agent writes itself."""
_MOST_IN_MESSAGE = 60_000
"""Maximum number of bytes of an output in one message, so that a remark still fits in."""


class Output(Record):
    """The output of one generation of an agent's session. It is stored apart from the session, because it is long and
    the session is read often.
    """

    agent: Name
    generation: Count
    text: Text
    earlier: list[Text] = field(default_factory=list)
    """The outputs of earlier turns, oldest first; together at most as long as one output may be."""


OUTPUT: Kind[Output] = Kind("output", Output, key="agent", logins="own")


def keep(store: Store, team: str, agent: str, generation: int, text: str, earlier: Sequence[str]) -> None:
    """Store the output of this *generation* of the agent's session, and the outputs of its *earlier* turns. If the
    output of a newer generation is stored already, nothing is changed.
    """

    def with_output(stored: Output) -> Output:
        if generation < stored.generation:
            return stored
        is_new = generation > stored.generation  # else this is stored already, by a process that was killed
        texts = [*stored.earlier, stored.text, *earlier] if is_new else stored.earlier
        newest_first: list[str] = []
        room = MAX_RESULT
        for earlier_text in reversed(texts):
            room -= len(earlier_text.encode())
            if earlier_text.strip() and room >= 0:
                newest_first.append(earlier_text)
        return Output(agent=agent, generation=generation, text=text, earlier=newest_first[::-1])

    upsert(store, team, OUTPUT.even_in_closed_team, agent, Output(agent=agent, generation=0, text=""), with_output)


def find(store: Store, team: str, agent: str) -> str | None:
    """Return the text of the last output of the agent; None if there is no output."""
    output = load(store, team, agent)
    return output.text if output else None


def load(store: Store, team: str, agent: str) -> Output | None:
    """Return the record of the last output of the agent; None if there is no output."""
    return get_if_there(store, team, OUTPUT, agent)


def is_answered(store: Store, team: str, session: Session) -> bool:
    """Whether the caller of the session needs no message about the end of this generation. True if mail had begun the
    generation, the generation was completed, and one of these applies:

    * The agent wrote to the caller.
    * The agent wrote to another sender of that mail, and no mail came from the caller or the human.
    * The agent has no output, and the caller expects none: the caller sent none of the mail, or its newest message only
      informs.
    """
    if not _was_completed_after_mail(session):
        return False
    has_output = bool((find(store, team, session.agent) or "").strip())
    if not has_output and not _caller_expects_answer(store, team, session):
        return True
    senders = _senders(session)
    addressees = {session.caller}  # it is enough that the agent wrote to one of them
    if session.caller not in senders and HUMAN not in senders:
        addressees |= senders
    return any(_has_written_to(store, team, session, name) for name in addressees)


def _caller_expects_answer(store: Store, team: str, session: Session) -> bool:
    """Whether mail from the caller began a turn of this generation, and the caller's newest message expects an answer,
    that is, does not only inform. A message that is too old to be found counts as one that expects an answer.
    """
    if session.caller not in _senders(session):
        return False
    start = max(0, store.last(team, MESSAGE) - _RECENT)
    mail = store.read(team, MESSAGE, session.agent, start, [])
    from_caller = [message for message in mail if message.from_ == session.caller]
    return not (from_caller and from_caller[-1].only_informs)


def is_waited_for(session: Session) -> bool:
    """Whether the output should resume the caller of the session. False if this generation was begun by mail, none of
    it from the caller, and was completed.
    """
    return not _was_completed_after_mail(session) or session.caller in _senders(session)


def _was_completed_after_mail(session: Session) -> bool:
    """Whether this generation of the session was completed and was begun by mail. Mail begins every generation but the
    first.
    """
    return session.generation > 1 and session.outcome == "completed"


def _senders(session: Session) -> set[str]:
    """Return the senders of the messages that began turns since the session was started, or started anew."""
    return {resume.by for resume in session.resumes if resume.at >= session.started_at}


def _has_written_to(store: Store, team: str, session: Session, name: str) -> bool:
    """Whether the agent wrote to *name*, or answered a question from *name*, since its session was started anew."""
    agent, since = session.agent, session.started_at
    start = max(0, store.last(team, MESSAGE) - _RECENT)
    for message in store.read(team, MESSAGE, name, start, []):
        if message.from_ == agent and message.timestamp >= since and message.type in _WRITTEN:
            return True
    asked = [question for question in questions.all_of(store, team, []) if question.from_ == name]
    answers = [answer for question in asked for answer in question.answers]
    return any(answer.responder == agent and answer.at >= since for answer in answers)


def send(store: Store, team: str, session: Session, earlier: Sequence[str]) -> Message:
    """Send the caller the output of the session, or the reason why there is none, as a message from the agent. The
    message does not wake the caller. If there were *earlier* outputs, the message names the command that shows them.
    """
    if session.outcome == "completed":
        output = find(store, team, session.agent) or ""
        body = output if output.strip() else f"Agent {session.agent} completed."
        if earlier:
            body = f"{body.rstrip()}\n[Its earlier turns said more: teams recall {session.agent} --output]"
    elif session.outcome == "stopped":
        body = f"Agent {session.agent} was stopped: {session.failure}"
    else:
        body = f"Agent {session.agent} failed: {session.failure}"
    # A name may be as long as the first part of a uid, so the number is in a second part.
    uid = f"{session.agent}~output-{session.generation}"
    if len(body.encode()) > _MOST_IN_MESSAGE:
        start = body.encode()[:_MOST_IN_MESSAGE].decode(errors="ignore")
        body = f"{start}\n[{len(body) - len(start)} more characters: teams recall {session.agent} --output]"
    to, event = session.caller, f"agent-{session.outcome}"
    return messages.notify(
        store, team, to, body, uid, "output", session.agent, wake=False, even_in_closed_team=True, event=event
    )
