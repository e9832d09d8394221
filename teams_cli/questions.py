"""Questions to the other agents or to the human, their answers, and what the human has answered before."""

from __future__ import annotations

from datetime import timedelta

from teams_cli import history, settings, teams, text
from teams_cli.clock import parse_rfc3339, rfc3339
from teams_cli.errors import Conflict, InvalidValue, NotAllowed, NotFound, QuestionNotFound, TeamsError, WrongState
from teams_cli.names import HUMAN, id_of
from teams_cli.records import Record, field
from teams_cli.roles import require
from teams_cli.store.contract import Kind, update

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.caller import Caller
    from teams_cli.shapes import AskedWhom, Depth, Name, QuestionId, QuestionStatus, Seconds, Text, Time, Word
    from teams_cli.store.contract import Store
    from teams_cli.teams import Team

HISTORY_NOTE = (
    "The human has already answered questions this session. Review the history above - your question may already be "
    "answered. If you still need different information, call ask_others with a more specific question."
)
OFF = "false"
ALLOW, ALWAYS = "allow", "always"


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
    """One question. `known` counts the answers of the human that its asker was shown with it, or knew."""

    nested = {"answers": Answer}  # noqa: RUF012

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
    closed_at: Time | None = None
    known: list[QuestionId] = field(default_factory=list)
    operation: Word | None = None
    answers: list[Answer] = field(default_factory=list)

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
        """Who was asked and has not answered."""
        answered = {answer.responder for answer in self.answers}
        return [name for name in self.to if name not in answered]

    @property
    def answered_by_human(self) -> Answer | None:
        """The person's answer, if it is one: neither late nor skipped."""
        return next((a for a in self.counted if a.is_human and not a.skipped), None)


QUESTION: Kind[Question] = Kind("question", Question, prefix="ask", numbered=True)


def ask(
    store: Store,
    team_name: str,
    caller: Caller | None,
    question: str,
    to: list[str],
    timeout: float | None = None,
    depth: Depth | None = None,
    human: bool = False,
) -> Question:
    """Ask the other members, some of them, or the human; who is asked by default the team's setting `broadcast` says.

    Raises:
        NotAllowed: Questions are off in this team.
        InvalidValue: The question is blank, or somebody asked is oneself.
        AgentNotFound: Somebody asked is no active member.
        Conflict: As many questions of the caller's as are allowed are open.
    """
    team = require(store, team_name, caller, "ask-others")
    assert caller is not None
    text.checked(question, "question")
    mode = HUMAN if human else str(settings.value(team, "broadcast"))
    if mode == OFF:
        raise NotAllowed("questions are off in this team", "The leader turns them on: teams set broadcast agents")
    _refuse_too_many(store, team, caller.name)
    asked = _asked(team, caller.name, mode, to)
    seconds = float(settings.value(team, "broadcast_timeout")) if timeout is None else timeout
    now = store.now()
    draft = Question(
        team_name=team_name,
        from_=caller.name,
        question=question,
        mode="human" if mode == HUMAN else "agents",
        to=asked,
        depth=depth or settings.value(team, "response_depth"),  # type: ignore[arg-type]  # one of the setting's choices
        created_at=rfc3339(now),
        timeout=seconds,
        expires_at=rfc3339(now + timedelta(seconds=seconds)),
    )
    made, _ = store.create(team_name, QUESTION, None, _as_it_starts(store, draft))
    history.note(store, team_name, caller.name, "question asked", question=made.id, to=asked)
    return made


def _refuse_too_many(store: Store, team: Team, asker: str) -> None:
    most = int(settings.value(team, "max_broadcasts_per_agent"))
    going = [question.id for question in of_team(store, team.name, []) if question.open and question.from_ == asker]
    if len(going) >= most:
        raise Conflict(f"{asker} has {len(going)} open questions: {', '.join(going)}", "Wait for their answers.")


def _asked(team: Team, asker: str, mode: str, to: list[str]) -> list[str]:
    """Who is to answer."""
    if mode == HUMAN:
        return [HUMAN]
    if not to:
        return [name for name in team.active_names() if name != asker]
    found = list(dict.fromkeys(teams.find_recipient(team, name) for name in to))
    if asker in found:
        raise InvalidValue("you can't ask yourself", "Name other members: teams list-agents")
    return found


def _as_it_starts(store: Store, draft: Question) -> Question:
    """The question collecting; or complete when there is nobody to ask; or deferred to what the human said before."""
    if not draft.to:
        return draft.having(status="complete", closed_at=draft.created_at)
    if draft.to != [HUMAN]:
        return draft.having(status="collecting")
    answered = _answered_elsewhere(store, draft)
    if answered:
        return draft.having(status="deferred", known=answered, closed_at=draft.created_at)
    return draft.having(status="pending")


def _answered_elsewhere(store: Store, draft: Question) -> list[str]:
    """The questions whose answers the asker shall look at before the human is asked; none when it may ask.

    Its first question after the human has answered anything is deferred to that, and so is one that it asks again.
    """
    earlier = of_team(store, draft.team_name, [])
    answered = [q.id for q in earlier if q.answered_by_human and not q.operation]
    own = [q for q in earlier if q.from_ == draft.from_ and q.to == [HUMAN] and q.id != draft.id and not q.operation]
    shown = {key for question in own for key in question.known} | {q.id for q in own if q.answered_by_human}
    again = any(q.question == draft.question and (q.status == "deferred" or q.answered_by_human) for q in own)
    return answered if again or not shown else []


def defer(store: Store, team: str, question: Question) -> Question:
    """The question as it is now: one that waits for the human is deferred once the human answered another's."""
    if question.status != "pending" or question.to != [HUMAN] or question.operation:
        return question
    answered = _answered_elsewhere(store, question)
    if not answered:
        return question

    def change(found: Question) -> Question:
        if found.status != "pending":
            return found
        return found.having(status="deferred", known=answered, closed_at=teams.now(store))

    return update(store, team, QUESTION, question.id, change)[1]


def next_for_human(store: Store, team: str) -> Question | None:
    """The oldest question that waits for the person."""
    for question in of_team(store, team, []):
        if question.to == [HUMAN] and question.open:
            question = defer(store, team, question)
            if question.open:
                return question
    return None


def load(store: Store, team: str, word: str) -> Question:
    """The question of that id; one whose time is over is closed.

    Raises:
        QuestionNotFound: There is none.
    """
    key = id_of(word, "ask")
    try:
        return _in_time(store, store.get(team, QUESTION, key)[0])
    except NotFound:
        raise QuestionNotFound(f"team {team} has no question {key}", "See `teams get-questions`.") from None


def of_team(store: Store, team: str, problems: list[TeamsError]) -> list[Question]:
    """All questions, by number; those whose time is over are closed."""
    return [_in_time(store, question) for question, _ in store.scan(team, QUESTION, problems)]


def _in_time(store: Store, question: Question) -> Question:
    """The question, closed if its time is over: whoever asked may be gone, and nobody waits for it any more."""
    if question.open and store.now() >= parse_rfc3339(question.expires_at):
        return question.having(status="timeout", closed_at=question.expires_at)
    return question


def close(store: Store, team: str, question: Question) -> Question:
    """Write down that the question's time is over, if it still waits."""

    def change(found: Question) -> Question:
        return found.having(status="timeout", closed_at=teams.now(store)) if found.open else found

    return update(store, team, QUESTION, question.id, change)[1]


def answer(store: Store, team_name: str, caller: Caller | None, word: str, content: str) -> Question:
    """Answer a question that you were asked, once. After its time is over the answer is kept, and marked as late.

    Raises:
        QuestionNotFound: There is none.
        NotAllowed: You were not asked.
        WrongState: You have answered it.
    """
    require(store, team_name, caller, "answer", word)
    assert caller is not None
    text.checked(content, "answer")
    key = load(store, team_name, word).id
    given = Answer(responder=caller.name, content=content, is_human=caller.is_human, at=teams.now(store))
    return record(store, team_name, key, given)


def answer_as_human(store: Store, team: str, key: str, content: str) -> Question:
    """The person at the console answers a question."""
    text.checked(content, "answer")
    given = Answer(responder=HUMAN, content=content, is_human=True, at=teams.now(store))
    return record(store, team, key, given)


def skip(store: Store, team_name: str, word: str) -> Question:
    """The person skips a question: it is closed at once, without an answer."""
    given = Answer(responder=HUMAN, content="", is_human=True, at=teams.now(store), skipped=True)
    return record(store, team_name, load(store, team_name, word).id, given)


def record(store: Store, team: str, key: str, given: Answer) -> Question:
    """Add an answer to the question; the last one completes it."""

    def change(stored: Question) -> Question:
        question = _in_time(store, stored)
        if given.responder not in question.to:
            raise NotAllowed(f"{given.responder} was not asked {question.id}", f"It is to {', '.join(question.to)}.")
        if given.responder not in question.waiting_for:
            raise WrongState(f"{given.responder} has answered {question.id}", "An answer stands.")
        said = given if question.open else given.having(late=True)
        changed = question.having(answers=[*question.answers, said])
        if changed.open and not changed.waiting_for:
            return changed.having(status="complete", closed_at=given.at)
        return changed.having(status="collecting") if changed.open else changed

    _, question = update(store, team, QUESTION, key, change)
    if not given.skipped:
        history.note(store, team, given.responder, "question answered", question=key)
    if question.operation and _said(question) == ALWAYS:
        _grant(store, team, question.from_, question.operation)
    return question


def _said(question: Question) -> str:
    said = question.answered_by_human
    return said.content.strip().lower() if said else ""


def allows(question: Question) -> bool:
    """Whether the human allowed what the question asks leave for."""
    return _said(question) in (ALLOW, ALWAYS, "y", "yes")


def _grant(store: Store, team_name: str, agent: str, operation: str) -> None:
    """Allow it for this agent and operation from now on."""

    def change(team: Team) -> Team:
        if team.grants_to(agent, operation):
            return team
        return team.having(grants=[*team.grants, teams.Grant(agent=agent, operation=operation)])

    update(store, team_name, teams.TEAM, team_name, change)


def human_history(store: Store, team: str) -> list[dict[str, str]]:
    """What the human answered in this team so far."""
    found = []
    for question in of_team(store, team, []):
        if (said := question.answered_by_human) and not question.operation:
            found.append({"question": question.question, "answer": said.content})
    return found


def as_result(store: Store, question: Question) -> dict[str, Any]:
    """The question as its asker gets it back."""
    document: dict[str, Any] = {
        "requestId": question.id,
        "status": question.status,
        "responses": [
            {"responder_id": a.responder, "content": a.content, "is_human": a.is_human, **_flags(a)}
            for a in question.counted
            if not a.skipped
        ],
    }
    if not question.to:
        document["note"] = "There is nobody else to ask."
    if any(a.skipped for a in question.counted):
        document["skipped"] = True
    if question.to == [HUMAN]:
        said = human_history(store, question.team_name)
        if said and (question.status == "deferred" or question.answered_by_human):
            document.update(human_qa_history=said, human_qa_note=HISTORY_NOTE)
    return document


def _flags(answer: Answer) -> dict[str, bool]:
    return {"failed": True} if answer.failed else {}


def as_shown(question: Question) -> dict[str, Any]:
    """The question as JSON, with who has not answered yet."""
    return {**question.to_json(), "waitingFor": question.waiting_for if question.open else []}
