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
    """The person went away, as standard input was closed."""


def require_person(call: Call, team: str) -> str:
    """Return the name of the team, if the person may answer in it.

    Raises:
        NotAllowed: The token is missing, or another's.
        WrongState: The team is closed.
    """
    permissions.refuse_more(call.environ, permissions.LEVELS[-1], "act as the person")
    token = call.caller.token if call.caller else call.environ.get("TEAMS_TOKEN", "")
    return require(call.store, team, Caller(HUMAN, token=token, config=call.config), "answer").team.name


def put_all(call: Call, team: str, once: bool, until: Callable[[], bool] | None = None) -> Iterator[dict[str, Any]]:
    """Ask the person each question in order, *until* that returns true. Yield each question when it is settled."""
    over = until or (lambda: False)
    alarm = None if until else pace.Alarm()  # what ends it may be no change
    while True:
        waiting: list[Question] = []

        def arrived(waiting: list[Question] = waiting) -> bool:
            question = human_queue.next_for_human(call.store, team)
            waiting[:] = [question] if question else []
            return bool(question) or over()

        pace.sleep_until(call.store, team, arrived, None, {"team", "question"}, alarm)
        if over():
            return
        try:
            settled = _put(call, waiting[0], over)
        except Gone:
            return
        if settled["status"] == "pending":  # its asker has gone, and it comes back last
            continue
        yield settled
        if once and settled["status"] != "deferred":  # which nobody was shown
            return


def _put(call: Call, question: Question, over: Callable[[], bool]) -> dict[str, Any]:
    store, team = call.store, question.team_name
    assert call.person is not None
    question = human_queue.begin_showing(store, question)
    if not question.open:
        return {"id": question.id, "status": question.status}

    def left() -> float:
        return questions.seconds_left(store, question)

    def open() -> bool:
        current = questions.get(store, team, question.id)
        return current.open and not over() and not human_queue.gives_way(store, current)

    while (answer := call.person.ask(question.from_, human_queue.text_for_person(question), left, open)) is not None:
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
def beside(call: Call, team: str) -> Iterator[None]:
    """In a `with` block, show new questions to the person at this terminal, if there is one, and store the answers."""
    if not has_person(call, team):
        yield
        return
    assert call.person is not None
    over = Event()
    with call.person.beside():
        Thread(target=_serve, args=(call, team, over), daemon=True).start()
        try:
            yield
        finally:
            over.set()


def _serve(call: Call, team: str, over: Event) -> None:
    try:
        for settled in put_all(call, team, False, over.is_set):
            call.say(f"{settled['id']}: {settled['status']}")
    except errors.TeamsError:  # the team was closed: nobody asks any more
        return
