"""Commands on questions, and the person's console."""

from __future__ import annotations

from teams_cli.clients import permissions
from teams_cli.clock import seconds_since
from teams_cli.commands.call import Call, Gone, Stream
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.errors import Conflict, InvalidValue
from teams_cli.names import HUMAN
from teams_cli.questions import answering, asking, questions
from teams_cli.questions import human as human_queue
from teams_cli.questions.questions import Question
from teams_cli.records.annotations import Any, Iterator
from teams_cli.store import pace
from teams_cli.store.contract import Store
from teams_cli.teams.caller import Caller
from teams_cli.teams.permission import require

_ASK = """Ask the other members something, or the human, and wait for the answers.

Whom it asks is the team's setting `broadcast`: `agents`, `human`, or `false` for nobody. Agents answer through a copy
of themselves and work on. What the human has answered before comes back as `deferred`; asking something else after that
asks the human again.

Raises:
    NotAllowed: Questions are off in this team.
    InvalidValue: The question is blank, you ask yourself, the human is not asked alone, or the time is out of bounds.
    AgentNotFound: Somebody you ask is no active member.
    Conflict: As many of your questions as are allowed are open.
"""
_SHOW = """Show a question: who was asked, who answered what, and who has not yet.

Raises:
    QuestionNotFound: There is none of that id.
"""
_GET = """List questions by number; --open: still waiting for answers, --mine: waiting for yours."""
_HUMAN = """Answer the agents' questions, here, one at a time as they come; Enter skips one. Ctrl-C or Ctrl-D ends it.

Questions wait for you until their time is over.
"""
_RESPOND = """Old prompts call this: answers are collected by themselves, and nothing is to be done."""


def _answer(call: Call, question: str, text: str) -> Any:
    return questions.to_document(answering.answer(call.store, call.team, call.caller, question, text))


def _skip(call: Call, question: str) -> Any:
    return questions.to_document(answering.skip(call.store, call.team, call.caller, question))


def _show(call: Call, question: str) -> Any:
    found = questions.get(call.store, call.load_team().name, question)
    return {**questions.to_document(found), **asking.result_of(call.store, found)}


def _get(call: Call, open: bool, mine: bool) -> Any:
    found = questions.all_of(call.store, call.load_team().name, call.problems)
    if open or mine:
        found = [question for question in found if question.open]
    if mine:
        found = [question for question in found if call.agent in question.waiting_for]
    return [questions.to_document(question) for question in found]


def _human(call: Call, once: bool) -> Any:
    return Stream(_console(call, _require_person(call), once))


def _require_person(call: Call) -> str:
    """The name of the team, in which the person may answer: it is open, and in a secure one the token is the human's.

    Raises:
        NotAllowed: The token is missing, or another's.
        WrongState: The team is closed.
    """
    permissions.refuse_more(call.environ, permissions.LEVELS[-1], "act as the person")
    token = call.caller.token if call.caller else call.environ.get("TEAMS_TOKEN", "")
    return require(call.store, call.team, Caller(HUMAN, token=token, config=call.config), "answer").team.name


def _console(call: Call, team: str, once: bool) -> Iterator[dict[str, Any]]:
    """Put the questions to the person, first come first served; each is told when it is settled."""
    assert call.person is not None
    while True:
        waiting: list[Question] = []

        def arrived(waiting: list[Question] = waiting) -> bool:
            found = human_queue.next_for_human(call.store, team)
            waiting[:] = [found] if found else []
            return bool(found)

        pace.sleep_until(call.store, team, arrived, None)
        try:
            yield _put(call, waiting[0])
        except Gone:
            return
        if once:
            return


def _put(call: Call, question: Question) -> dict[str, Any]:
    store, team = call.store, question.team_name
    assert call.person is not None

    def left() -> float:
        return -seconds_since(question.expires_at, store.now())

    def open() -> bool:
        return questions.get(store, team, question.id).open

    while (said := call.person.ask(question.from_, question.question, left, open)) is not None:
        _require_person(call)
        try:
            return {"id": question.id, "status": _settle(store, question, said)}
        except InvalidValue as refused:
            call.person.tell(f"{refused.message}. {refused.hint}")
        except Conflict:  # it was answered elsewhere just now
            break
    return {"id": question.id, "status": questions.get(store, team, question.id).status}


def _settle(store: Store, question: Question, said: str) -> str:
    """Take what the person said, or that there is nothing to say; what came of it."""
    if not said:
        answering.skip_as_human(store, question.team_name, question.id)
        return "skipped"
    answered = answering.answer_as_human(store, question.team_name, question.id, said)
    return "answered" if answered.answered_by_human else str(answered.status)


def _respond(call: Call, text: str | None) -> Any:
    waiting = [question["id"] for question in _get(call, open=True, mine=True)] if call.agent else []
    if waiting:
        message = f"This answers nothing. Answer with: teams answer {waiting[0]} TEXT"
    else:
        message = "Answers are collected by themselves: your shadow has answered already. Go on with your work."
    return {"status": "info", "message": message}


_ID = argument("ID", "The question: 7, #7 or ask-7.", name="question")

COMMANDS = table(
    "Questions",
    Command(
        "ask-others",
        "commands.runners.asking:ask",
        argument("QUESTION", "What you want to know.", name="question", text=True, called="text"),
        option("--to", "Ask this member only; may be repeated.", metavar="AGENT", many=True),
        option("--timeout", "Wait at most so long.", type=float, metavar="SECONDS", seldom=True),
        switch("--no-wait", "Return at once; `show-question` has the answers later.", seldom=True),
        option("--depth", "How deep the answers should go.", choices=("low", "medium", "high"), seldom=True),
        switch("--human", "Ask the human, whatever the setting."),
        doc=_ASK,
        words="questions:result",
        long=True,
        adding=True,
        daily=True,
        example='ask-others "Which grammar?" --to ann',
        want="ask, and wait for answers",
        also="ask question ask-question query",
    ),
    Command(
        "answer",
        _answer,
        _ID,
        argument("TEXT", "The answer.", name="text", text=True),
        doc=answering.answer,
        words="questions:asked",
        answers=Question,
        adding=True,
        daily=True,
        example='answer 3 "The second one"',
        want="answer a question",
        also="answer-question",
    ),
    Command(
        "skip-question", _skip, _ID, doc=answering.skip, words="questions:asked", example="skip-question 3", also="skip"
    ),
    Command(
        "show-question",
        _show,
        _ID,
        doc=_SHOW,
        reads=True,
        words="questions:whole",
        answers=Question,
        example="show-question 3",
        also="get-question get-answers",
    ),
    Command(
        "get-questions",
        _get,
        switch("--open", "Only those that wait for answers."),
        switch("--mine", "Only those that wait for yours."),
        doc=_GET,
        reads=True,
        words="questions:questions",
        answers=list[Question],
        example="get-questions --mine",
        also="questions list-questions",
    ),
    Command(
        "human",
        _human,
        switch("--once", "End after one question."),
        doc=_HUMAN,
        changes=False,
        at_shell=True,
        words="questions:settled",
        example="human",
        also="console",
    ),
    Command(
        "respond-to-broadcast",
        _respond,
        argument("TEXT", "Anything.", name="text", text=True, required=False),
        doc=_RESPOND,
        changes=False,
        words="questions:information",
        example="respond-to-broadcast",
    ),
)
