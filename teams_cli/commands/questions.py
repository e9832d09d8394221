"""Commands on questions, and the console in which the human answers them. The console shows one question at a time. It
is a command by itself, or runs beside another command.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from threading import Event, Thread

from teams_cli import errors, processes, text
from teams_cli.agents import logs
from teams_cli.clients import permissions
from teams_cli.commands.call import Call, Stream
from teams_cli.commands.declaration import Command, argument, in_group, option, switch
from teams_cli.environment import SANDBOX
from teams_cli.names import HUMAN, each_name
from teams_cli.questions import answering, asking, questions
from teams_cli.questions import human as human_queue
from teams_cli.questions.questions import Question
from teams_cli.store import pace
from teams_cli.store.contract import Store
from teams_cli.teams import history, settings
from teams_cli.teams.permission import Caller, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from teams_cli.commands.declaration import Parts
    from teams_cli.records.types import Depth


_ASK = """Ask the other members, or the human, a question, and wait for the answers.

The setting `broadcast` says who is asked: `agents`, `human`, or nobody (`false`). A fork of each agent answers while
the agent continues its work; an agent without a fork gets a message. With `human`, the human is not asked if you have
not seen earlier answers of the human yet, or if you repeat a question. The status is then `deferred`, and you get the
earlier answers. To ask the human after that, ask a different question.

Raises:
    NotAllowed: Questions are off in this team.
    InvalidValue: The question is blank, you asked yourself, you asked the human together with others, or the time is
        out of range.
    AgentNotFound: A member that you asked is not active.
    Conflict: You have too many open questions.
    WrongState: The team is closed, or was closed before the answers came.
"""
_SHOW = """Show a question: who was asked, the answers, and who has not answered.

Raises:
    QuestionNotFound: There is no such question.
"""
_HUMAN = """Answer the agents' questions in this terminal, one at a time as they come. Enter skips a question; Ctrl-C or
Ctrl-D ends the command.

Each question waits until its time limit.
"""


def _show(call: Call, question: str) -> Any:
    shown = questions.get(call.store, call.load_team().name, question)
    return {**questions.to_document(shown), **asking.result_of(call.store, shown)}


def _get(call: Call, open: bool, mine: bool) -> Any:
    listed = questions.all_of(call.store, call.load_team().name, call.problems)
    if open or mine:
        listed = [question for question in listed if question.open]
    if mine:
        listed = [question for question in listed if call.agent in question.waiting_for]
    return [questions.to_document(question) for question in listed]


def _respond(call: Call, text: str | None) -> Any:
    waiting = [question["id"] for question in _get(call, open=True, mine=True)] if call.agent else []
    if waiting:
        message = f"This answers nothing. Answer with: teams answer {waiting[0]} TEXT"
    else:
        message = "Answers are collected by themselves, and none of yours is waited for. Go on with your work."
    return {"status": "info", "message": message}


_ID = argument("ID", "The question's id, such as 7, #7 or ask-7.", name="question")
_RETRY_AFTER = 1.0
"""Seconds after which a question is shown at a terminal again if the store refused that."""
_LOOK_AGAIN = 10.0
"""Seconds after which a wait looks for answers even if nothing woke it."""
_TRIES = 3
"""How many times the collecting process is started at most. It is started again if it is killed."""


def _ask(
    call: Call, question: str, to: list[str], timeout: float | None, no_wait: bool, depth: Depth | None, human: bool
) -> Any:
    store, team = call.store, call.team
    if call.environ.get(SANDBOX) and not human and settings.value(call.load_team(), "broadcast") == "agents":
        raise errors.NotAllowed(
            "a client's sandbox has no network, so no agent can be forked",
            "Use the tool ask_others of the MCP server `team`; or ask the person: --human",
        )
    asked = asking.ask(store, team, call.caller, question, each_name(to), timeout, depth, human, not no_wait)
    collecting = _Collecting(call)
    if asked.status == "collecting":
        collecting.start(asked)
    if no_wait:
        status = "pending" if asked.status == "collecting" else asked.status
        return {**asking.result_of(store, asked), "status": status}
    return asking.result_of(store, _wait_for_answers(call, asked, collecting))


class _Collecting:
    """The process that collects the answers of forked agents and of commands. If it is killed, it is started again."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._tries_left = _TRIES
        self._process: tuple[int, str, str] | None = None

    def start(self, question: Question) -> None:
        """Ask the members. If forked agents or commands answer for some, start the process that collects answers."""
        from teams_cli.agents import answering as collector

        store = self._call.store
        self._tries_left -= 1
        pid = collector.start(store, question, dict(self._call.environ))
        self._process = (pid, processes.process_started(pid), processes.pid_scope(store.host)) if pid else None

    def look_after(self, question: Question, alarm: pace.Alarm) -> None:
        """If the process was killed before it was done, start it again. Set the *alarm* for the end of the process."""
        from teams_cli.agents import answering as collector

        if self._process is None:
            return
        if not self.is_running and self._tries_left and collector.is_cut_off(self._call.store, question):
            with suppress(OSError, errors.TeamsError):  # members may answer by themselves all the same
                self.start(question)
        if self._process:
            alarm.ring_at_end_of(*self._process)

    @property
    def is_running(self) -> bool:
        """Whether the process was started and has not ended. Also True if this process can't tell."""
        return self._process is not None and processes.has_ended(*self._process) is not True


def _wait_for_answers(call: Call, asked: Question, collecting: _Collecting) -> Question:
    """Wait until the question has all its answers, its time ends, or nobody is left who could answer.

    Raises:
        WrongState: The team was closed, so that nobody can answer any more.
    """
    alarm = pace.Alarm()

    def settled() -> bool:
        was_running = collecting.is_running  # looked up before the question, which the process changes before its end
        current = questions.get(call.store, call.team, asked.id)
        alarm.ring_in(_LOOK_AGAIN)
        alarm.ring_after(questions.seconds_left(call.store, current))
        if not current.open:
            return True
        team = call.load_team()
        if team.state == "closed":
            closed = history.of_closed(call.store, team.name)
            if current.answers:
                closed.hint = f"The answers so far: teams show-question {asked.id}. {closed.hint}"
            raise closed
        collecting.look_after(current, alarm)
        if was_running or collecting.is_running:  # copies of agents answer for members that have left, too
            return False
        return not any(name == HUMAN or team.member(name) for name in current.waiting_for)

    if asked.open:
        topics = {"team", f"question/{asked.id}"}
        try:
            pace.sleep_until(call.store, call.team, settled, None, topics, alarm, call.say)
        except BaseException:  # the command is interrupted, or its client left: the question must show this
            with suppress(errors.TeamsError):
                questions.stop_waiting(call.store, call.team, asked)
            raise
        questions.close(call.store, call.team, asked)
    return questions.get(call.store, call.team, asked.id)


class Gone(Exception):
    """Raised when the person can no longer answer, because standard input was closed."""


def require_person(call: Call, team: str) -> str:
    """Return the name of the team. Refuse the call if it may not act as the person in the team.

    Raises:
        NotAllowed: The token of the person is missing, or is the token of another member.
        WrongState: The team is closed.
    """
    permissions.refuse_more(call.environ, permissions.LEVELS[-1], "act as the person")
    token = call.caller.token if call.caller else call.environ.get("TEAMS_TOKEN", "")
    return require(call.store, team, Caller(HUMAN, token=token, config=call.config), "answer").team.name


def ask_person_each(
    call: Call, team: str, once: bool, until: Callable[[], bool] | None = None
) -> Iterator[dict[str, Any]]:
    """Ask the person the waiting questions in their order, and wait for more, until the function *until* returns True.
    With *once*, ask only one question. Yield the id and the status of each question that is settled.
    """
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
        if settled["status"] == "pending":  # its asker has gone, so it waits behind the others
            continue
        yield settled
        if once and settled["status"] != "deferred":  # a deferred question was not shown
            return


def _ask_person(call: Call, question: Question, has_ended: Callable[[], bool]) -> dict[str, Any]:
    """Show the question to the person until it is settled or *has_ended* says that no answer is wanted any more. Return
    its id and status.
    """
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

    question_text = human_queue.text_for_person(question)
    while (answer := call.person.ask(question.from_, question_text, seconds_left, is_open)) is not None:
        require_person(call, team)
        try:
            return {"id": question.id, "status": settle(store, question, answer)}
        except (errors.InvalidValue, errors.Busy, errors.StorageFailed) as refused:  # the person answers again
            call.person.tell(f"{refused.message}. {refused.hint}")
        except errors.Conflict:  # it was answered elsewhere just now
            break
    return {"id": question.id, "status": questions.get(store, team, question.id).status}


def settle(store: Store, question: Question, answer: str) -> str:
    """Record the person's *answer* to the question; if it is "", the person skips the question. Return the outcome in a
    word, such as `answered`.
    """
    answered = answering.answer_as_human(store, question.team_name, question.id, answer)
    if not answer:
        return "skipped"
    return "answered" if answered.answered_by_human else str(answered.status)


def has_person(call: Call, team: str) -> bool:
    """Return whether a person, rather than an agent, sits at the terminal of this call and may answer questions."""
    from_agent = call.environ.get(processes.TAG) or call.sources.get("agent", ("", ""))[1] == "terminal"
    if from_agent or call.person is None or not call.person.is_here():
        return False
    try:
        return bool(require_person(call, team))
    except errors.TeamsError:
        return False


@contextmanager
def asking_person_beside(call: Call, team: str) -> Iterator[None]:
    """In a `with` block, show new questions to the person at this terminal, and store the answers, while the command
    does its work. If nobody is there, do nothing.
    """
    if not has_person(call, team):
        yield
        return
    assert call.person is not None
    ended = Event()

    def ask_until_ended() -> None:
        complaints = logs.Complaints()
        while not ended.is_set():
            try:
                for settled in ask_person_each(call, team, False, ended.is_set):
                    call.say(f"{settled['id']}: {settled['status']}")
                return
            except (errors.Busy, errors.StorageFailed) as problem:
                if complaints.is_new(problem):
                    call.say(f"no question can be shown here now: {problem.message}")
                ended.wait(_RETRY_AFTER)
            except errors.TeamsError:  # the team was closed: nobody asks any more
                return

    with call.person.beside():
        Thread(target=ask_until_ended, daemon=True).start()
        try:
            yield
        finally:
            ended.set()


def words_of_result(document: dict[str, Any]) -> Parts:
    lines: Parts = [f"{document['requestId']}: {document['status']}"]
    lines += [document["note"]] if "note" in document else []
    for answer in document["responses"]:
        lines.append(f"{answer['responder_id']}{' (failed)' if answer.get('failed') else ''}:")
        lines += text.quoted(answer["content"], "| ")
    if document["status"] == "deferred":
        for answer in document.get("human_qa_history", ()):
            lines += [f"the human was asked: {answer['question']}", f"and answered: {answer['answer']}"]
        lines.append(document["human_qa_note"])
    if document["status"] == "timeout":
        lines.append(f"late answers are sent to you, and kept: teams show-question {document['requestId']}")
    return lines


def words_of_asked(question: dict[str, Any]) -> Parts:
    answered = {answer["responder"] for answer in question["answers"]}
    missing = question["waitingFor"] or [name for name in question["to"] if name not in answered]
    waits = f", no answer from {', '.join(missing)}" if missing else ""
    return [f"{question['id']}: {question['status']}, from {question['from']}{waits}: {question['question']}"]


def words_of_answered(question: dict[str, Any]) -> Parts:
    lines = words_of_asked(question)
    if question["answers"] and question["answers"][-1].get("late"):
        lines.append("your answer is late: it is kept, and sent to the asker")
    return lines


def words_of_whole(question: dict[str, Any]) -> Parts:
    lines = words_of_asked(question)
    for answer in question["answers"]:
        content = "skipped" if answer.get("skipped") else answer["content"]
        late = " (late)" if answer.get("late") else ""
        failed = " (failed)" if answer.get("failed") else ""
        lines.append(f"{answer['responder']}{failed}: {content}{late}")
    return lines


def words_of_questions(questions: list[dict[str, Any]]) -> Parts:
    return [line for question in questions for line in words_of_asked(question)] or ["no questions"]


COMMANDS = in_group(
    "Questions",
    Command(
        "ask-others",
        _ask,
        argument("QUESTION", "What you want to know.", name="question", text=True, called="text"),
        option("--to", "Ask only these members.", metavar="AGENT", many=True),
        option("--timeout", "How long to wait for answers.", metavar="SECONDS", seldom=True),
        switch("--no-wait", "Do not wait; `show-question` shows the answers later.", seldom=True),
        option("--depth", "How detailed the answers should be.", choices=("low", "medium", "high"), seldom=True),
        switch("--human", "Ask the human, whatever the setting `broadcast` says."),
        doc=_ASK,
        words=words_of_result,
        traits="long adding daily",
        held="question to timeout no_wait depth human",
        example='ask-others "Which grammar?" --to ann',
        want="ask, and wait for the answers",
        also={
            "ask question ask-question query": "",
            "ask/TO question/TO ask-question/TO": "ask-others --to AGENT QUESTION",
        },
    ),
    Command(
        "answer",
        lambda call, question, text: questions.to_document(
            answering.answer(call.store, call.team, call.caller, question, text)
        ),
        _ID,
        argument("TEXT", "The answer.", name="text", also="answer", text=True),
        doc=answering.answer,
        words=words_of_answered,
        answers=Question,
        traits="adding daily for_person",
        held="question text",
        example='answer 3 "The second one"',
        want="answer ask-ID",
        also="answer-question",
    ),
    Command(
        "skip-question",
        lambda call, question: questions.to_document(answering.skip(call.store, call.team, call.caller, question)),
        _ID,
        doc=answering.skip,
        words=words_of_asked,
        traits="for_person",
        held="question",
        example="skip-question 3",
        also="skip",
    ),
    Command(
        "show-question",
        _show,
        _ID,
        doc=_SHOW,
        words=words_of_whole,
        answers=Question,
        traits="reads",
        held="question",
        example="show-question 3",
        also="get-answers",
    ),
    Command(
        "get-questions",
        _get,
        switch("--open", "Only questions that still wait for answers."),
        switch("--mine", "Only questions that wait for your answer."),
        doc="List the questions by number.",
        words=words_of_questions,
        answers=list[Question],
        traits="reads",
        held="open mine",
        example="get-questions --mine",
        also="questions",
    ),
    Command(
        "human",
        lambda call, once: Stream(ask_person_each(call, require_person(call, call.team), once)),
        switch("--once", "End after one question."),
        doc=_HUMAN,
        changes=False,
        words=lambda done: [f"{done['id']}: {done['status']}"],
        traits="at_shell",
        example="human",
        also="console",
    ),
    Command(
        "respond-to-broadcast",
        _respond,
        argument("TEXT", "Any text.", name="text", text=True, required=False, called="answer"),
        doc="Do nothing. Prompts of older systems name this command; answers are collected without it.",
        changes=False,
        words=lambda info: [info["message"]],
        held="text",
        example="respond-to-broadcast",
    ),
)
