"""Questions to other agents or to the human, and their answers."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import parse_rfc3339, seconds_since
from teams_cli.names import id_of
from teams_cli.records.records import Owed, Record, field
from teams_cli.store.contract import Kind, Store
from teams_cli.store.retrying import update
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
    """One responder's answer. A late one came after the question was closed; a failed one says why there is none."""

    responder: Name
    content: Text
    is_human: bool = False
    at: Time
    late: bool | None = None
    failed: bool | None = None
    skipped: bool | None = None


class Question(Record):
    """One question. `known` counts the human's answers that its asker was shown with it, or knew.

    The process that waits for the answers is noted, and when it stopped waiting.
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
    """When the person was first shown the question at a console. Its time runs from then."""
    closed_at: Time | None = None
    known: list[QuestionId] = field(default_factory=list)
    operation: Word | None = None
    asker_pid: Count | None = None
    asker_started: Word | None = None
    asker_boot: Word | None = None
    left_at: Time | None = None
    answers: list[Answer] = field(default_factory=list)
    owed: list[Owed] | None = None

    def awaited_by(self, pid: int, host: str) -> Question:
        """Return the question with that process as the one that waits for its answers."""
        from teams_cli import processes

        started = processes.process_started(pid) or None
        return self.having(asker_pid=pid, asker_started=started, asker_boot=processes.pid_scope(host))

    @property
    def left_alone(self) -> bool:
        """Whether the process that waited for the answers is gone, as far as is known."""
        if self.left_at or self.asker_pid is None:
            return self.left_at is not None
        from teams_cli import processes  # most that look at questions find none that is open

        return processes.has_ended(self.asker_pid, self.asker_started, self.asker_boot) is True

    @property
    def is_unawaited(self) -> bool:
        """Whether the asker must be notified of an answer that comes now, since no process of its own waits for it."""
        return self.operation is None and (not self.open or self.asker_pid is None or self.left_alone)

    @property
    def open(self) -> bool:
        """Whether answers still count."""
        return self.status in ("pending", "collecting")

    @property
    def counted(self) -> list[Answer]:
        """The answers that came in time."""
        return [answer for answer in self.answers if not answer.late]

    @property
    def waiting_for(self) -> list[str]:
        """The agents that were asked and have not answered."""
        answered = {answer.responder for answer in self.answers}
        return [name for name in self.to if name not in answered]

    @property
    def answered_by_human(self) -> Answer | None:
        """The person's answer, if it is neither late nor skipped."""
        return next((a for a in self.counted if a.is_human and not a.skipped), None)


QUESTION: Kind[Question] = Kind("question", Question, prefix="ask", numbered=True, logins="question")


def get(store: Store, team: str, word: str) -> Question:
    """Return the question with that id. If its time is over, it is returned as closed.

    Raises:
        QuestionNotFound: There is none.
    """
    key = id_of(word, "ask")
    try:
        return in_time(store, store.get(team, QUESTION, key)[0])
    except errors.NotFound:
        raise QuestionNotFound(f"team {team} has no question {key}", "See: teams get-questions") from None


def all_of(store: Store, team: str, problems: list[errors.TeamsError]) -> list[Question]:
    """Return all questions, by number, closed if their time is over."""
    return [in_time(store, question) for question, _ in store.scan(team, QUESTION, problems)]


def in_time(store: Store, question: Question) -> Question:
    """Return the question. If its time is over, it is returned as closed, because its asker may be gone, so that nobody
    else closes it.
    """
    if question.open and store.now() >= parse_rfc3339(question.expires_at):
        return question.having(status="timeout", closed_at=question.expires_at)
    return question


def seconds_left(store: Store, question: Question) -> float:
    """Return the seconds until the question's time is over, at least 0."""
    return max(0.0, -seconds_since(question.expires_at, store.now()))


def close(store: Store, team: str, question: Question) -> Question:
    """Store that the question's time is over, if it is still open."""

    def change(found: Question) -> Question:
        return found.having(status="timeout", closed_at=teams.now(store)) if found.open else found

    return update(store, team, QUESTION.also_closed, question.id, change)[1]


def leave(store: Store, team: str, question: Question) -> None:
    """Note that its asker waits no more. Answers are still kept."""

    def change(found: Question) -> Question:
        return found.having(left_at=teams.now(store)) if found.open else found

    update(store, team, QUESTION.also_closed, question.id, change)


def to_document(question: Question) -> dict[str, Any]:
    """Return the question as JSON, with who has not answered yet, and whether nobody waits for the answers any more."""
    shown = {key: value for key, value in question.to_json().items() if key not in _OF_THE_PROCESS}
    alone = {"leftAlone": True} if question.open and question.left_alone else {}
    return {**shown, "waitingFor": question.waiting_for if question.open else [], **alone}


_OF_THE_PROCESS = ("askerPid", "askerStarted", "askerBoot", "owed")
