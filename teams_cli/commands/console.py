"""The person's console: questions to the human, one at a time, alone or beside another command."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event, Thread

from teams_cli import errors, processes
from teams_cli.clients import permissions
from teams_cli.commands.call import Call
from teams_cli.names import HUMAN
from teams_cli.questions import answering, questions
from teams_cli.questions import human as human_queue
from teams_cli.questions.questions import Question
from teams_cli.store import pace
from teams_cli.store.contract import Store
from teams_cli.teams.permission import Caller, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class Gone(Exception):
    """The person went away: standard input was closed."""


def require_person(call: Call, team: str) -> str:
    """Return the name of the team, if the person may answer in it.

    Raises:
        NotAllowed: The token is missing, or another's.
        WrongState: The team is closed.
    """
    permissions.refuse_more(call.environ, permissions.LEVELS[-1], "act as the person")
    token = call.caller.token if call.caller else call.environ.get("TEAMS_TOKEN", "")
    return require(call.store, team, Caller(HUMAN, token=token, config=call.config), "answer").team.name


def ask_person_each(
    call: Call, team: str, once: bool, until: Callable[[], bool] | None = None
) -> Iterator[dict[str, Any]]:
    """Ask the person each question in order, until *until* returns True. Yield each question when it is settled."""
    has_ended = until or (lambda: False)
    alarm = None if until else pace.Alarm()  # *until* may become true without a change of the team
    question: Question | None = None

    def has_question_or_ended() -> bool:
        nonlocal question
        question = human_queue.next_for_human(call.store, team)
        return question is not None or has_ended()

    while True:
        pace.sleep_until(call.store, team, has_question_or_ended, None, {"team", "question"}, alarm)
        if question is None or has_ended():
            return
        try:
            settled = _ask_person(call, question, has_ended)
        except Gone:
            return
        if settled["status"] == "pending":  # its asker has gone, and it comes back last
            continue
        yield settled
        if once and settled["status"] != "deferred":  # a deferred question was not shown
            return


def _ask_person(call: Call, question: Question, has_ended: Callable[[], bool]) -> dict[str, Any]:
    store, team = call.store, question.team_name
    assert call.person is not None
    question = human_queue.begin_showing(store, question)
    if not question.open:
        return {"id": question.id, "status": question.status}

    def seconds_left() -> float:
        return questions.seconds_left(store, question)

    def is_open() -> bool:
        current = questions.get(store, team, question.id)
        return current.open and not has_ended() and not human_queue.gives_way(store, current)

    shown = human_queue.text_for_person(question)
    while (answer := call.person.ask(question.from_, shown, seconds_left, is_open)) is not None:
        require_person(call, team)
        try:
            return {"id": question.id, "status": settle(store, question, answer)}
        except errors.InvalidValue as refused:
            call.person.tell(f"{refused.message}. {refused.hint}")
        except errors.Conflict:  # it was answered elsewhere just now
            break
    return {"id": question.id, "status": questions.get(store, team, question.id).status}


def settle(store: Store, question: Question, answer: str) -> str:
    """Store the person's answer, or a skip if it is empty. Return the outcome."""
    if not answer:
        answering.skip_as_human(store, question.team_name, question.id)
        return "skipped"
    answered = answering.answer_as_human(store, question.team_name, question.id, answer)
    return "answered" if answered.answered_by_human else str(answered.status)


def has_person(call: Call, team: str) -> bool:
    """Whether a person sits at the terminal of this call and may answer. An agent is not a person."""
    from_agent = call.environ.get(processes.TAG) or call.sources.get("agent", ("", ""))[1] == "terminal"
    if from_agent or call.person is None or not call.person.is_here():
        return False
    try:
        return bool(require_person(call, team))
    except errors.TeamsError:
        return False


@contextmanager
def asking_person_beside(call: Call, team: str) -> Iterator[None]:
    """In a `with` block, show new questions to the person at this terminal, if there is one, and store the answers."""
    if not has_person(call, team):
        yield
        return
    assert call.person is not None
    ended = Event()
    with call.person.beside():
        Thread(target=_ask_until_ended, args=(call, team, ended), daemon=True).start()
        try:
            yield
        finally:
            ended.set()


def _ask_until_ended(call: Call, team: str, ended: Event) -> None:
    try:
        for settled in ask_person_each(call, team, False, ended.is_set):
            call.say(f"{settled['id']}: {settled['status']}")
    except errors.TeamsError:  # the team was closed: nobody asks any more
        return
