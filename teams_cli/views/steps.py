"""Next steps: the command that an agent runs after a message, a decision, a wait, or its brief."""

from __future__ import annotations

from teams_cli.names import HUMAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from teams_cli.teams.teams import Team

    Document = dict[str, Any]

CLAIM = "teams claim-task --next"
WAIT = "teams wait"
_PATIENCE = 540
"""How many seconds a command waits: somewhat less than agents' tools let a command run. A command that its tool kills
may have claimed a task that the agent never hears of.
"""
WAIT_A_WHILE = f"{WAIT} --timeout {_PATIENCE}"
WAIT_TO_WORK = f"teams wait --claim --timeout {_PATIENCE}"
WAIT_TO_LEAD = f"teams wait --needed --timeout {_PATIENCE}"
READ = "teams read-messages"
_EXAMPLE = """- id: a
  title: TITLE
  description: |
    TEXT
  check: "COMMAND"  # must pass on committed work
  planRequired: true  # you approve its owner's plan first
  reviewBy: NAME  # accepts it when it is done
- {title: TITLE, blockedBy: [a], for: MEMBER}
# all other keys: priority: high, touches: [FILE, DIRECTORY/], require: [SKILL], checkIn: DIRECTORY, run: COMMAND,
# after: [a] (starts now, completes after a), blocks: [task-9] (an existing task)
"""
_PATIENTLY = f"--wait {_PATIENCE}"
_QUESTION_MARKS = ("?", "\N{FULLWIDTH QUESTION MARK}")
_SIGNS_OF_ASKING = (*_QUESTION_MARKS, "please", "tell me", "let me know")
_SIGNS_OF_NO_NEED = (
    "no answer needed",
    "no reply needed",
    "needs no answer",
    "no need to answer",
    "no need to reply",
    "unless you say",
    "unless you object",
    "unless i hear",
    "otherwise i go on",
    "i do not wait",
)
CREATE = f"teams create-task TITLE, or teams create-task --from - <<'.'\n{_EXAMPLE}."
CLOSE = "teams close-team"
IF_NOBODY_IS_LEFT = f"teams run-agent PROMPT --detach, or {CLOSE}"
LEADING = (
    "To lead, run `teams wait --needed`: it returns for plans to decide, questions, failures, stalls and when all is "
    "done (--completed N: also after N more tasks). Edit tasks with `teams update-task ID,ID --append TEXT` (or "
    "--owner NAME, --blocked-by ID, --after ID, --unblock ID); owners are notified. Write the rules for all tasks "
    "(where members work, how their work gets to the main branch) into one committed file, and name it in each task. "
    "Plan so that nobody is idle: tasks on a base that is soon there use `after` instead of `blockedBy`, and the last "
    "task is split for all members. Members end when all tasks are settled: a last task with `reviewBy: YOUR NAME` is "
    "open until you accept it."
)
"""The explanation for an agent that creates a team."""


def after_message(message: Document, team: Team, subject: Document | None = None) -> str | None:
    """Return the next command for the reader of a message, according to its kind; None if it only had to be read.

    *subject* is what the message is about, in its present state: a plan, a task, or the page of an agreement.
    """
    about = str(message.get("about") or "")
    if about.startswith("ask-"):
        return answer(about)
    if about.startswith("plan-") and subject is not None:
        if message["to"] == subject["from"]:
            return after_decision(subject)
        return decide(about) if subject["isOpen"] else None
    if about.startswith("shutdown-"):
        return end(about)
    if about.startswith("agree-"):
        tasks, _, version = about.removeprefix("agree-").partition("~")
        if subject is None or str(subject["version"]) != version:
            return None  # somebody has proposed another version since
        if message["to"] in subject.get("agreed", ()):
            return None
        return f"teams agree {tasks.replace('-', ',')} --version {version}"
    if about.startswith("task-"):
        if subject is None or subject["status"] != "in_review":
            return None
        reader = message["to"]
        return review(about, claims_next=reader not in (team.leader, HUMAN), leads=reader == team.leader)
    if about.startswith("msg-"):
        return reply(about)
    if message.get("event") == "agent-failed":
        return f"teams restart-agent {message['from']}"
    return reply(message["id"]) if expects_answer(message, team) else None


def expects_answer(message: Document, team: Team) -> bool:
    """Return whether somebody waits for an answer to the message: its text asks for one, it must be acknowledged, or
    the leader or the person sent it. Notices, answers and mere information need no answer, nor does a sender who has
    left.
    """
    sender = message["from"]
    if message["type"] != "plain" or message.get("fyi") or "replyTo" in message:
        return False
    if sender != HUMAN and not team.member(sender):
        return False
    return "ackBy" in message or sender in (team.leader, HUMAN) or asks(message["message"])


def asks(body: str) -> bool:
    """Return whether the text of a message asks its reader for something, and does not say that its writer goes on
    without an answer.
    """
    text = body.lower()
    return any(sign in text for sign in _SIGNS_OF_ASKING) and not any(sign in text for sign in _SIGNS_OF_NO_NEED)


def is_question(body: str) -> bool:
    """Return whether the text of a message has a question."""
    return any(mark in body for mark in _QUESTION_MARKS)


def after_reading(messages: list[Document], team: Team, subject_of: Callable[[Document], Document | None]) -> str:
    """Return the next command after the *messages* were read: the command for the first message that asks for a
    decision. If there is none, it is the command for the first message that asks for anything, else "".

    If several messages want an answer, the command that closes all of them is added. Messages that were read before do
    not count, because they are listed with their own commands. *subject_of* returns what a message is about, as in
    `after_message`.
    """
    answers: list[str] = []
    decisions: list[str] = []
    for message in messages:
        subject = subject_of(message)
        if "readBefore" not in message and (step := after_message(message, team, subject)):
            (answers if subject is None else decisions).append(step)
    asked_for = [*decisions, *answers]
    if len(asked_for) > 1 and is_reply(asked_for[0]):
        return f"{asked_for[0]}, or teams ack"
    return asked_for[0] if asked_for else ""


def reply(message: str) -> str:
    return f"teams reply {message} TEXT"


def is_reply(step: str) -> bool:
    return step.startswith("teams reply ")


def answer(question: str) -> str:
    return f"teams answer {question} TEXT"


def decide(plan: str) -> str:
    approve = f"teams approve-plan {plan}"
    return f"{approve}, or {approve} --note TEXT, or teams reject-plan {plan} --feedback WHY"


def propose(task: str) -> str:
    return f"teams propose-plan TEXT --task {task} {_PATIENTLY}"


def revise(plan: str, task: str | None) -> str:
    for_task = f" --task {task}" if task else ""
    return f"teams propose-plan TEXT{for_task} --revises {plan} {_PATIENTLY}"


def after_decision(plan: Document) -> str | None:
    """Return the next command for the author of a plan that was approved or rejected; None if there is none now."""
    if plan["taskState"] == "over":
        return None
    if plan["status"] == "rejected":
        return None if plan["isReplaced"] else revise(plan["id"], plan.get("task"))
    if plan["taskState"] == "ready":
        return f"teams claim-task {plan['task']}"
    return complete(plan["task"]) if plan["taskState"] == "in_progress" else None


def end(shutdown: str) -> str:
    return f"teams approve-shutdown {shutdown}, or teams reject-shutdown {shutdown} WHY"


def after_shutdown(agent: str) -> str:
    return f"{agent} was shut down: you are done"


def read_page(key: str) -> str:
    return f"teams shared {key}"


def review(task: str, claims_next: bool = False, leads: bool = False) -> str:
    """Return the commands with which a reviewer accepts or rejects the task. With *claims_next*, they then claim
    another task. A reviewer that *leads* then waits until it is needed.
    """
    options = ""
    if claims_next:
        options = f" --next {_PATIENTLY}"
    elif leads:
        options = f" {_PATIENTLY}"
    return f"teams review-task {task} --accept{options}, or teams review-task {task} --reject WHY{options}"


def after_landing(landing: Document, agent: str, lands_by_itself: bool) -> str:
    """Return the command with which the *agent* lands its task again, after a landing whose check failed or that had a
    conflict. Return "" for any other landing, and for a task of another agent.

    If *lands_by_itself* is set, completed tasks land without a command, so the command only completes the task.
    """
    if landing["state"] not in ("red", "conflict") or landing.get("owner") != agent:
        return ""
    task = landing["task"]
    if lands_by_itself:
        return complete(task)
    return f"teams update-task {task} --status completed && teams land {task}"


def complete(task: str, has_result: bool = False) -> str:
    result = "" if has_result else " --result RESULT"
    return f"teams update-task {task} --status completed{result} --next {_PATIENTLY}"


def start_now(tasks: Sequence[str], blockers: Sequence[str]) -> str:
    """Return the command that lets *tasks* start now, and complete after their present *blockers*."""
    awaited = ",".join(blockers)
    return f"teams update-task {','.join(tasks)} --unblock {awaited} --after {awaited}"


def unassign(tasks: Sequence[str]) -> str:
    """Return the command that lets every member claim *tasks*."""
    return f"teams update-task {','.join(tasks)} --unassign"


def join(team: str, name: str, claim: bool = True) -> str:
    parts = ["teams join-team", team, f"--as {name}" if name else "", "--claim" if claim else "", _PATIENTLY]
    return " ".join(filter(None, parts))


def outside(team: str, teams: list[str], name: str, own_teams: Sequence[str] = ()) -> str:
    """Return the next command for an agent whose team is not known. If it is in several teams, *own_teams*, the command
    names one of them. The human is in all teams, and has to name one as well.

    If the agent is in no team, the command joins or creates the *team* that the agent named. If it named none (""), the
    command joins the only team that exists. *teams* lists all teams that exist.
    """
    if own_teams or (name == HUMAN and teams and not team):
        return f"teams brief --team NAME --as {name}"
    if team or not teams:
        named = team or "NAME"
        return f"{join(named, name, claim=name != HUMAN)}, or teams spawn-team {named}"
    return join(teams[0] if len(teams) == 1 else "NAME", name)


def following(brief: Document, works: bool, after_all: str) -> str:
    """Return the next command for the reader of the *brief*; "" if nothing is left to do. *works* says that the reader
    may claim tasks, and *after_all* is the command for a leader when no task can go on.
    """
    step: str | None = None
    if "closed" in brief:
        step = f"teams show-team {brief['team']}" if brief["leads"] else None
    elif brief["role"] == HUMAN and brief["questions"]:
        step = "teams human"
    elif brief["role"] is None:
        step = after_shutdown(brief["agent"]) if brief.get("stopped") else join(brief["team"], brief["agent"])
    elif brief["shutdown"]:
        step = end(brief["shutdown"])
    elif brief["unread"]:
        step = READ
    elif brief["toAnswer"]:
        step = answer(brief["toAnswer"])
    elif brief["proposed"]:
        plan = brief["proposed"][0]
        step = decide(plan["id"]) if plan["whole"] else f"teams show-plan {plan['id']}"
    elif brief["toReview"]:
        step = review(brief["toReview"][0], works, brief["leads"])
    elif brief["myTasks"]:
        step = work(brief)
    elif brief["readyForMe"]:
        step = CLAIM
    elif brief["unhandled"]:
        step = reply(brief["unhandled"][0])
    elif brief["leads"] and not brief["tasks"]:
        step = CREATE
    elif brief["leads"]:
        step = WAIT_TO_LEAD if brief["going"] else after_all
    elif brief["going"] or brief["stuck"] or not brief["tasks"]:
        step = WAIT_TO_WORK if works else WAIT
    return step or ""


def work(brief: Document) -> str | None:
    """Return the next command for the first task in `myTasks` that waits for no other task. If all tasks wait, return
    the command that unblocks the first one or waits for its blocker, or that waits for other work if their results are
    stored. If there are no tasks, return None.
    """
    own_tasks = brief["myTasks"]
    task = next((task for task in own_tasks if not task["waitsFor"]), None)
    if task is None:
        if own_tasks and all(task["hasResult"] for task in own_tasks):
            return WAIT_TO_WORK
        return _unblock(own_tasks[0]) if own_tasks else None
    if task["inVain"]:
        return _unblock(task)
    if task["plan"] == "proposed":
        return WAIT_A_WHILE
    if task["plan"] == "rejected":
        return revise(task["planId"], task["id"])
    return propose(task["id"]) if task["plan"] == "required" else complete(task["id"], task["resultIsKept"])


def _unblock(task: Document) -> str:
    """Return the command after which the owner of a blocked *task* can go on, or which waits until it can."""
    if task["inVain"]:
        return f"teams update-task {task['id']} --unblock {','.join(task['inVain'])}"
    if task["toDoFirst"]:
        return f"teams claim-task {task['toDoFirst']}"
    return f"teams wait --task {task['waitsFor'][0]}"


def is_wait(step: str) -> bool:
    return step == WAIT or step.startswith(f"{WAIT} ")
