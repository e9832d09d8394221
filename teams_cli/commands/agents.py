"""Commands that start agents, wait for them, interrupt, stop and recall them."""

from __future__ import annotations

import time

from teams_cli import errors, text
from teams_cli.agents import ending, interrupting, logs, outputs, resuming, sessions, starting, waking
from teams_cli.agents.sessions import Session
from teams_cli.agents.starting import StartRequest
from teams_cli.clients import known, permissions
from teams_cli.commands import messages, questions
from teams_cli.commands.call import Call, Outcome, Stream
from teams_cli.commands.declaration import Command, argument, in_group, option, present, switch
from teams_cli.messages import reading
from teams_cli.messages.messages import Message
from teams_cli.teams import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from teams_cli.commands.declaration import Parts

_FIELDS_OF_STARTED = (
    *("agent", "caller", "harness", "model", "permissions", "description"),
    *("directory", "worktree", "branch", "state", "depth"),
)
_COMMAND_NOT_FOUND = 127
"""The exit status of a shell that can't find the command."""
_NO_COMMAND = "The harness is `shell`, which runs the prompt as a command; for a model: --harness claude, or another."
_RUN = """Start an agent, wait until it is done, and print its output.

The agent is done only when all agents that it spawned are done, and all sessions that messages resumed. With
--detach, the command returns at once; `teams wait --agent` shows the output later. Ctrl-C ends the waiting, not the
agent. The exit status is 1 if the agent failed.

Raises:
    InvalidValue: The prompt is blank, or the harness is unknown.
    Conflict: An agent has that name already.
    NotAllowed: You are a member; use `spawn`.
"""
_RECALL = """List all past and present agents, with their activities and final state. With a name and --output, also
show the output of that agent.

Raises:
    AgentNotFound: There was no agent of that name.
"""
_LOOK_AGAIN = 0.2
_LOGS = """Show the latest output of an agent that `teams` started on this machine. With --follow, continue until the
agent is done.

Some clients print only one JSON document, at the end of each turn. To see the messages and results that the agent sent
you, use `read-messages`.

Raises:
    AgentNotFound: `teams` started no agent of that name.
"""
_FINISH = """Ask whether you may finish. You may not while an agent that you spawned is at work, or while you have
unread messages.

Raises:
    NotFinished: You may not finish yet; the error says why.
"""


class NotFinished(errors.Conflict):
    """Raised when the caller may not finish yet, because agents that it started are at work, or because it has unread
    messages.
    """


def _request(call: Call, prompt: str, agent_id: str | None, cwd: str, **options: Any) -> StartRequest:
    return StartRequest(prompt, agent=agent_id, directory=cwd, environ=call.environ, **options)


def _run(call: Call, detach: bool, **options: Any) -> Any:
    """Start an agent. Unless *detach* is set, wait until all agents of its run are done, and return the outcome."""
    started = starting.run_agent(call.store, call.team, call.caller, _request(call, **options))
    if detach:
        return _started(started)
    reported: dict[str, str] = {}

    def report(sessions: list[Session]) -> None:
        for session in sessions:
            state = session.outcome_or_state if session.ended else session.state
            if reported.get(session.agent) != state:
                reported[session.agent] = state
                call.say(f"{session.agent}: {state} ({session.description})")

    try:
        with questions.asking_person_beside(call, call.team):
            ended_sessions = waking.wait_for_run(call.store, call.team, started.run, report)
    except KeyboardInterrupt:
        call.say(f"{started.agent} continues: teams wait --agent {started.agent}, or teams stop-agent {started.agent}")
        raise
    session = next(session for session in ended_sessions if session.agent == started.agent)
    call.once_shown(lambda: settle_output(call, session))
    document = {**result_of(call, session), "agents": [_summary(call, each) for each in ended_sessions]}
    return Outcome(document, 0 if session.outcome == "completed" else 1)


def settle_output(call: Call, session: Session) -> None:
    """Mark the message with the agent's output as handled, since the caller has just seen the output."""
    for message in reading.outputs_of(call.store, call.team, session.caller, session.agent):
        reading.mark_handled(call.store, call.team, session.caller, {message.number}, even_in_closed_team=True)


def _spawn(call: Call, wait: bool, **options: Any) -> Any:
    started = starting.spawn(call.store, call.team, call.caller, _request(call, **options))
    if not wait:
        return _started(started)
    session = waking.wait_for(call.store, call.team, started.agent)
    call.once_shown(lambda: settle_output(call, session))
    return Outcome(result_of(call, session), 0 if session.outcome == "completed" else 1)


def _started(session: Session) -> dict[str, Any]:
    return {key: value for key, value in session.to_document().items() if key in _FIELDS_OF_STARTED}


def result_of(call: Call, session: Session) -> dict[str, Any]:
    """Return the outcome of the agent as JSON, with its output if the session has ended."""
    return _result(session, outputs.load(call.store, call.team, session.agent) if session.ended else None)


def _result(session: Session, output: outputs.Output | None) -> dict[str, Any]:
    """Return the outcome of the session as JSON, with its *output*. If a shell was started with a prompt that was
    probably meant for a model, a hint is added.
    """
    document = {
        "agent": session.agent,
        "outcome": session.outcome_or_state,
        **_last_words(output),
        "failure": session.failure,
        "exitStatus": session.exit_status,
    }
    if session.harness == "shell" and session.exit_status == _COMMAND_NOT_FOUND:
        document["hint"] = _NO_COMMAND
    return document


def _last_words(output: outputs.Output | None) -> dict[str, Any]:
    """Return the output of the agent's last turn under `output`, and the outputs of earlier turns under `earlier`."""
    if output is None:
        return {"output": None}
    return {"output": output.text, "earlier": output.earlier} if output.earlier else {"output": output.text}


def _logs(call: Call, of: str, lines: int, follow: bool) -> Any:
    if lines < 0:
        raise errors.InvalidValue(f"{lines} is not a valid number of lines", "Give 0 or more.")
    team = call.load_team().name
    session = sessions.find(call.store, team, of)
    if session is None:
        raise errors.AgentNotFound(f"teams started no agent {of!r}", "Only agents that it started have logs.")
    if session.host not in ("", call.store.host):
        raise errors.WrongState(
            f"{of} ran on {session.host}, which has its log", f"See its results: teams recall {of} --output"
        )
    if follow:
        return Stream(_follow(call, team, session, lines))
    printed = logs.tail(call.store, team, of, session.turns, lines) if lines else []
    if not printed and session.outcome == "failed":
        call.say(f"{of} {session.outcome_or_state}: {session.failure}")
    return {"agent": of, "lines": printed}


def _follow(call: Call, team: str, session: Session, lines: int) -> Iterator[dict[str, Any]]:
    """Yield the last *lines* lines of the agent's output, and then new lines until the agent is done."""
    follower = logs.Follower(call.store, team, session.agent)
    try:
        printed = follower.lines(session.turns)
        yield {"agent": session.agent, "lines": printed[-lines:] if lines else []}
        has_ended = False
        while not has_ended:
            session = sessions.get(call.store, team, session.agent)
            has_ended = session.ended and not session.keeper_lives
            if printed := follower.lines(session.turns, has_ended):
                yield {"agent": session.agent, "lines": printed}
            if not has_ended:
                time.sleep(_LOOK_AGAIN)
    finally:
        follower.close()


def _summary(call: Call, session: Session) -> dict[str, Any]:
    agent = presence.load(call.store, call.team, session.agent)
    return {
        "name": session.agent,
        "caller": session.caller,
        "description": session.description,
        "outcome": session.outcome_or_state,
        "turns": session.turns,
        "worktree": session.worktree,
        "statusHistory": [entry.status for entry in agent.status_history],
    }


def _stop(call: Call, to: str) -> Any:
    """Stop an agent: end its client if the client was opened without a person, or else stop its session."""
    if interrupting.stop_unattended(call.store, call.team, call.caller, to, call.environ):
        ended = {"outcome": "stopped", "output": None, "failure": "its client was ended", "exitStatus": None}
        return {"agent": to, **ended}
    stopped = interrupting.stop(call.store, call.team, call.caller, to)
    return _result(stopped, call.try_to(lambda: outputs.load(call.store, call.team, to)))


def _with_rest(call: Call, message: Message) -> dict[str, Any]:
    """Return the message as JSON, and say if its recipient can't begin a turn for it now."""
    document: dict[str, Any] = message.to_json()
    # The message is sent, so a failure here is only reported.
    if resting := call.try_to(lambda: resuming.at_rest(call.store, call.team, [message.to])):
        document["readLater"] = resting
    return document


def _resume(call: Call, to: str) -> Any:
    resumed = interrupting.resume(call.store, call.team, call.caller, to)
    # The agent is resumed, so a failure to start its turn at once is only reported.
    woken = call.try_to(lambda: interrupting.wake(call.store, call.team, call.known_caller, resumed, call.environ))
    return _pause_state(woken or resumed)


def _pause_state(session: Session) -> dict[str, Any]:
    """Return the state of the session as JSON. `paused` is also true if it will pause after its present turn."""
    return {
        "agent": session.agent,
        "state": session.state,
        "paused": session.state == "paused" or session.pause_asked is not None,
    }


def _recall(call: Call, of: str | None, output: bool) -> Any:
    team = call.load_team()
    started = {session.agent: session for session in ending.all_of(call.store, team.name, call.problems)}
    rows = []
    names = [member.agent_id for member in team.roster() if of in (None, member.agent_id)]
    for name in names:
        history = presence.load(call.store, call.team, name).status_history
        row: dict[str, Any] = {"name": name, "statusHistory": [entry.to_json() for entry in history], "state": None}
        if session := started.get(name):
            row["state"] = session.outcome_or_state if session.ended else "active"
            if of and output:
                row.update(_last_words(outputs.load(call.store, call.team, name)), failure=session.failure)
        rows.append(row)
    if of is not None and not rows:
        raise errors.AgentNotFound(f"team {team.name} had no agent {of!r}", "See: teams recall")
    return {"agents": rows}


def _before_complete(call: Call, look: bool = False) -> Any:
    """Refuse the caller if it may not finish yet. With *look*, only return what it has to wait for."""
    working, unread = ending.unfinished(call.store, call.load_team().name, call.agent)
    may_finish = not (working or unread)
    if look:
        document = {"agent": call.agent, "mayFinish": may_finish, "waitForSessions": working, "unread": unread}
        if unread:
            document["resumePrompt"] = f"{len(unread)} unread: teams read-messages"
        return document
    if not may_finish:
        reasons = [f"{name} still works for you" for name in working]
        reasons += [f"unread messages: {', '.join(unread)}"] if unread else []
        message = f"{call.agent} may not finish yet: {'; '.join(reasons)}"
        raise NotFinished(message, "Wait: teams read-messages --wait 60")
    return {"agent": call.agent, "mayFinish": True}


_PARAMETERS_TO_START = (
    argument(
        "PROMPT", "What the agent should do; with the harness `shell`, a shell command.", name="prompt", text=True
    ),
    option("--agent-id", "The agent's name, instead of the next alias.", metavar="AGENT", seldom=True),
    option("--description", "A summary of the work; the default is the beginning of the prompt.", seldom=True),
    option("--harness", f"The agent's client: {', '.join(known.names())}, or a harness of your own."),
    option(
        "--acp-command", "With the harness `acp`: the command that starts the client.", metavar="COMMAND", seldom=True
    ),
    option("--model", "The model for its client.", metavar="MODEL", seldom=True),
    option("--permissions", permissions.HELP, choices=permissions.LEVELS, metavar="LEVEL", seldom=True),
    option("--type", "Its role or specialty.", seldom=True),
    switch("--worktree", "Give it its own git worktree and branch.", seldom=True),
    option("--answer", "A command that answers questions for it.", metavar="COMMAND", seldom=True),
    option("--cwd", "The directory where it works.", metavar="DIR", default=".", seldom=True),
)
_AGENT = argument("AGENT", "The agent.", name="to")


def words_of_run(done: dict[str, Any]) -> Parts:
    if "state" in done:
        place = f", in {done['worktree']} on {done['branch']}" if "worktree" in done else ""
        return [f"{done['agent']}: started{place} ({done['description']})"]
    lines = words_of_ended(done)
    if len(done.get("agents", ())) > 1:
        lines.append("")
        for agent in done["agents"]:
            place = f", in {agent['worktree']}" if agent["worktree"] else ""
            head = f"{agent['name']}: {agent['outcome']} after {agent['turns']} turn(s){place}"
            lines.append(f"{head} ({agent['description']})")
            lines += [f"  → {status}" for status in agent["statusHistory"]]
    return lines


def words_of_ended(done: dict[str, Any]) -> Parts:
    if done["outcome"] == "completed":
        output = _output_lines(done)
        return [f"{done['agent']}: completed{'' if output else ' without output'}", *output]
    head = f"{done['agent']}: {done['outcome']}: {done['failure']}"
    return present(head, *_output_lines(done), done.get("hint"))


def _output_lines(agent: dict[str, Any]) -> list[str]:
    """Return the lines of the agent's outputs, oldest first."""
    return [line for output in (*agent.get("earlier", ()), agent.get("output")) for line in text.quoted(output)]


def words_of_resting(done: dict[str, Any]) -> Parts:
    if done["state"] == "paused":
        state = "paused"
    elif done["paused"]:
        state = "will pause after its turn"
    else:
        state = f"resumed ({done['state']})"
    return [f"{done['agent']}: {state}"]


def words_of_recalled(document: dict[str, Any]) -> Parts:
    lines: Parts = []
    for agent in document["agents"]:
        lines.append(f"{agent['name']}: {agent['state'] or 'not started by teams'}")
        lines += [f"  → {entry['status']}" for entry in agent["statusHistory"]]
        lines += [*_output_lines(agent), *text.quoted(agent.get("failure"))]
    return lines or ["no agents"]


def words_of_interjected(message: dict[str, Any]) -> Parts:
    interrupting = "" if message.get("readLater") else ", interrupting"
    return [f"{message['id']}: sent to {message['to']}{interrupting}", *messages.words_of_resting(message)]


def words_of_restarted(message: dict[str, Any]) -> Parts:
    restarted = "to be restarted" if message.get("readLater") else "restarted"
    notified = f", notified by {message['id']}" if message.get("id") else ""
    return [f"{message['to']}: {restarted}{notified}", *messages.words_of_resting(message)]


def words_of_may_finish(done: dict[str, Any]) -> Parts:
    if done["mayFinish"]:
        return [f"{done['agent']}: may finish"]
    waits = [f"{name} still works for it" for name in done["waitForSessions"]]
    unread = [f"unread: {', '.join(done['unread'])}"] if done["unread"] else []
    return [f"{done['agent']}: may not finish yet: {'; '.join([*waits, *unread])}"]


COMMANDS = in_group(
    "Agents",
    Command(
        "run-agent",
        _run,
        *_PARAMETERS_TO_START,
        switch("--detach", "Do not wait for the agent.", seldom=True),
        doc=_RUN,
        words=words_of_run,
        traits="long adding daily",
        held="prompt agent_id description model permissions worktree cwd/ detach",
        example='run-agent "Review the last commit" --harness claude',
        also="start-agent launch launch-agent create-agent new-agent agent",
    ),
    Command(
        "spawn",
        _spawn,
        *_PARAMETERS_TO_START,
        switch("--wait", "Wait until it is done, and print its output.", seldom=True),
        doc=starting.spawn,
        words=words_of_run,
        traits="long adding daily",
        held="prompt agent_id description model permissions worktree cwd/ wait",
        example='spawn "Check the links" --harness claude',
        also="spawn-agent fork",
    ),
    Command(
        "interject",
        lambda call, to, text: _with_rest(
            call, interrupting.interject(call.store, call.team, call.caller, to, text, call.environ)
        ),
        argument("AGENT", "The agent.", name="to", called="to"),
        argument("TEXT", "The text.", name="text", also="message", text=True),
        doc=interrupting.interject,
        words=words_of_interjected,
        answers=Message,
        held="to text",
        example='interject bob "Stop: the design has changed"',
        also="interrupt",
    ),
    Command(
        "pause-agent",
        lambda call, to: _pause_state(interrupting.pause(call.store, call.team, call.caller, to)),
        _AGENT,
        doc=interrupting.pause,
        words=words_of_resting,
        held="to",
        example="pause-agent bob",
        also="pause",
    ),
    Command(
        "resume-agent",
        _resume,
        _AGENT,
        doc=interrupting.resume,
        words=words_of_resting,
        held="to",
        example="resume-agent bob",
        also="resume continue unpause",
    ),
    Command(
        "restart-agent",
        lambda call, to, fresh, uid: _with_rest(
            call, interrupting.restart(call.store, call.team, call.caller, to, fresh, call.environ, uid)
        ),
        _AGENT,
        switch("--fresh", "Begin in a new session of its client."),
        option("--uid", "An id of your choice: repeating the command with the same id has no effect.", seldom=True),
        doc=interrupting.restart,
        words=words_of_restarted,
        answers=Message,
        held="to fresh uid",
        example="restart-agent bob --fresh",
        also="restart reset reset-agent looping",
    ),
    Command(
        "stop-agent",
        _stop,
        _AGENT,
        doc=interrupting.stop,
        words=words_of_ended,
        traits="long",
        held="to",
        example="stop-agent bob",
        also="stop kill kill-agent terminate",
    ),
    Command(
        "recall",
        _recall,
        argument("AGENT", "Show only this agent.", name="of", required=False),
        switch("--output", "With a name: also show the agent's output."),
        doc=_RECALL,
        words=words_of_recalled,
        traits="reads daily",
        held="of output",
        example="recall bob --output",
        also={"past-agents": "", "output": "recall AGENT --output", "show-agent": "recall AGENT --output"},
    ),
    Command(
        "logs",
        _logs,
        argument("AGENT", "The agent.", name="of"),
        option("--lines -n", "How many of the last lines to show.", type=int, metavar="N", default=100),
        switch("--follow -f", "Continue until the agent is done.", at_shell=True),
        doc=_LOGS,
        words=lambda document: [*text.quoted("\n".join(document["lines"]))],
        traits="reads",
        held="of lines follow",
        example="logs bob --follow",
    ),
    Command(
        "before-complete",
        _before_complete,
        switch("--look", "Say what is left to do, but refuse nothing; this is for the hook of a client."),
        doc=_FINISH,
        words=words_of_may_finish,
        traits="reads",
        held="look",
        example="before-complete",
    ),
)
