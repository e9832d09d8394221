"""Questions to other agents or to the human, and their answers."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import parse_rfc3339, seconds_since
from teams_cli.names import id_of
from teams_cli.records.records import Owed, Record, field
from teams_cli.store.contract import Kind, Store, update
from teams_cli.teams import teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.records.types import (
        AskedWhom,
        Count,
        Depth,
        Name,
        QuestionId,
        QuestionStatus,
        Seconds,
        Text,
        Time,
        Word,
    )


class QuestionNotFound(errors.NotFound):
    """The team has no such question."""


class Answer(Record):
    """One responder's answer. *late* means that it came after the question was closed. *failed* means that the
    responder could not answer, and *content* says why.
    """

    responder: Name
    content: Text
    is_human: bool = False
    at: Time
    late: bool | None = None
    failed: bool | None = None
    skipped: bool | None = None


class Question(Record):
    """A question of the agent `from_` to the agents or the human in `to`. If it has an `operation`, it asks the human
    for permission to do this operation.
    """

    nested = {"answers": Answer, "owed": Owed}  # noqa: RUF012

    id: QuestionId = ""
    team_name: Name
    from_: Name
    question: Text
    mode: AskedWhom
    to: list[Name] = field(default_factory=list)
    depth: Depth = "medium"
    status: QuestionStatus = "pending"
    created_at: Time
    timeout: Seconds
    expires_at: Time
    shown_at: Time | None = None
    """When the human was first shown the question at a console. The time limit of the question counts from then."""
    closed_at: Time | None = None
    known: list[QuestionId] = field(default_factory=list)
    """The earlier questions that the human had answered, and whose answers the asker was shown instead of asking the
    human.
    """
    operation: Word | None = None
    asker_pid: Count | None = None
    """The process that waits for the answers. `asker_started` and `asker_boot` identify it further, because process ids
    are reused.
    """
    asker_started: Word | None = None
    asker_boot: Word | None = None
    left_at: Time | None = None
    """When the process that waits for the answers stopped waiting."""
    answers: list[Answer] = field(default_factory=list)
    owed: list[Owed] | None = None

    def awaited_by(self, pid: int, host: str) -> Question:
        """Return the question with a note that the process *pid* on *host* waits for the answers."""
        from teams_cli import processes

        started = processes.process_started(pid) or None
        return self.having(asker_pid=pid, asker_started=started, asker_boot=processes.pid_scope(host))

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody waits for the answers any more: the process that waited for them has stopped waiting or has
        ended. False if this is not known.
        """
        if self.left_at:
            return True
        if self.asker_pid is None:
            return False
        from teams_cli import processes  # imported only here, because most readers find no open question

        return processes.has_ended(self.asker_pid, self.asker_started, self.asker_boot) is True

    @property
    def is_unawaited(self) -> bool:
        """Whether the asker must be notified of a new answer, because none of its processes waits for answers. It is
        never notified of an answer to a request for permission.
        """
        return self.operation is None and (not self.open or self.asker_pid is None or self.is_abandoned)

    @property
    def open(self) -> bool:
        """Whether the question is still open for answers. An answer to a closed question counts as late."""
        return self.status in ("pending", "collecting")

    @property
    def answers_in_time(self) -> list[Answer]:
        """The answers that came in time."""
        return [answer for answer in self.answers if not answer.late]

    @property
    def waiting_for(self) -> list[str]:
        """The names of those that were asked and have not answered."""
        answered = {answer.responder for answer in self.answers}
        return [name for name in self.to if name not in answered]

    @property
    def answered_by_human(self) -> Answer | None:
        """The human's answer; None if the human gave none, skipped the question, or answered late."""
        return next((answer for answer in self.answers_in_time if answer.is_human and not answer.skipped), None)


QUESTION: Kind[Question] = Kind("question", Question, prefix="ask", numbered=True, logins="question")


def get(store: Store, team: str, ref: str) -> Question:
    """Return the question with the id *ref*. A question whose time has ended is returned as closed.

    Raises:
        QuestionNotFound: There is no such question.
    """
    key = id_of(ref, "ask")
    try:
        return in_time(store, store.get(team, QUESTION, key)[0])
    except errors.NotFound:
        raise QuestionNotFound(f"team {team} has no question {key}", "See: teams get-questions") from None


def all_of(store: Store, team: str, problems: list[errors.TeamsError]) -> list[Question]:
    """Return all questions by number, closed if their time has ended. *problems* gets the errors of damaged ones."""
    return [in_time(store, question) for question, _ in store.scan(team, QUESTION, problems)]


def in_time(store: Store, question: Question) -> Question:
    """Return the question as it is now: closed if its time has ended. The stored record may stay open forever, because
    the asker, which closes it, may have been killed before.
    """
    if question.open and store.now() >= parse_rfc3339(question.expires_at):
        return question.having(status="timeout", closed_at=question.expires_at)
    return question


def seconds_left(store: Store, question: Question) -> float:
    """Return the seconds that are left to answer the question; 0 if its time has ended."""
    return max(0.0, -seconds_since(question.expires_at, store.now()))


def close(store: Store, team: str, question: Question) -> Question:
    """Close the question because nobody answered it in time, and return it. A closed question is not changed."""

    def change(stored: Question) -> Question:
        return stored.having(status="timeout", closed_at=teams.now(store)) if stored.open else stored

    return update(store, team, QUESTION.even_in_closed_team, question.id, change)[1]


def stop_waiting(store: Store, team: str, question: Question) -> None:
    """Record that the asker of the question no longer waits. Answers are still accepted."""

    def change(stored: Question) -> Question:
        return stored.having(left_at=teams.now(store)) if stored.open else stored

    update(store, team, QUESTION.even_in_closed_team, question.id, change)


_INTERNAL = ("askerPid", "askerStarted", "askerBoot", "owed")


def to_document(question: Question) -> dict[str, Any]:
    """Return the question as JSON. While it is open, `waitingFor` names those that have not answered yet. `leftAlone`
    is set if nobody waits for the answers any more.
    """
    document = {key: value for key, value in question.to_json().items() if key not in _INTERNAL}
    document["waitingFor"] = question.waiting_for if question.open else []
    if question.open and question.is_abandoned:
        document["leftAlone"] = True
    return document
