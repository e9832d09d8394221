"""Commands that start agents, wait for them, interrupt, stop and recall them."""

from __future__ import annotations

from teams_cli import agents, inboxes, interruptions, launching, outputs, sessions, teams
from teams_cli.commands.call import Outcome
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.errors import AgentNotFound, NotFinished
from teams_cli.launching import Order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.sessions import Session

_RUN = """Start an agent, wait until it and all that it led to are done, and print its output.

That is: the agent, the agents that it spawned and theirs, and every session that a message resumed. With --detach, go
on at once; `teams wait --agent` collects. Ctrl-C ends the waiting, not the agent. The exit status is 1 when the agent
failed.

Raises:
    InvalidValue: The prompt is blank, or the harness unknown.
    Conflict: There is an agent of that name.
    NotAllowed: Members use `spawn`.
"""
_RECALL = """List all who were in the team: status history and final state; with a name and --output, also the output.

Raises:
    AgentNotFound: There was none of that name.
"""
_BEFORE = """Ask whether you may finish: not while an agent that you spawned is at work, or mail to you is unread.

Raises:
    NotFinished: Not yet; says why.
"""


def _order(call: Call, prompt: str, agent_id: str | None, cwd: str, **wish: Any) -> Order:
    return Order(prompt, agent=agent_id, directory=cwd, environ=call.environ, **wish)


def _run(call: Call, detach: bool, **wish: Any) -> Any:
    order = _order(call, **wish)
    started = launching.run_agent(call.store, call.team, call.caller, order)
    if detach:
        return _started(started)
    told: dict[str, str] = {}
    try:
        found = launching.wait_for_run(call.store, call.team, started.run, lambda seen: _tell(call, seen, told))
    except KeyboardInterrupt:
        call.say(f"{started.agent} goes on: teams wait --agent {started.agent}, or teams stop-agent {started.agent}")
        raise
    first = next(session for session in found if session.agent == started.agent)
    settle_output(call, first)
    document = {**shown(call, first), "agents": [_summary(call, session) for session in found]}
    return Outcome(document, 0 if first.outcome == "completed" else 1)


def _tell(call: Call, found: list[Session], told: dict[str, str]) -> None:
    """Say what changed since it was last said."""
    for session in found:
        state = session.outcome or session.state if session.ended else session.state
        if told.get(session.agent) != state:
            told[session.agent] = state
            call.say(f"{session.agent}: {state} ({session.description})")


def settle_output(call: Call, session: Session) -> None:
    """The output was printed: it is no news in the caller's inbox any more."""
    for message in inboxes.outputs_of(call.store, call.team, session.caller, session.agent):
        inboxes.settle(call.store, call.team, session.caller, {message.number})


def _spawn(call: Call, wait: bool, **wish: Any) -> Any:
    order = _order(call, **wish)
    started = launching.spawn(call.store, call.team, call.caller, order)
    if not wait:
        return _started(started)
    done = launching.wait_for(call.store, call.team, started.agent)
    settle_output(call, done)
    return Outcome(shown(call, done), 0 if done.outcome == "completed" else 1)


def _started(session: Session) -> dict[str, Any]:
    return {key: value for key, value in session.to_json().items() if key in _STARTED}


_STARTED = ("agent", "caller", "harness", "description", "directory", "worktree", "branch", "state", "depth")


def shown(call: Call, session: Session) -> dict[str, Any]:
    """How the agent ended and what came out, as JSON."""
    return {
        "agent": session.agent,
        "outcome": session.outcome or session.state,
        "output": outputs.find(call.store, call.team, session.agent) if session.ended else None,
        "failure": session.failure,
        "exitStatus": session.exit_status,
    }


def _summary(call: Call, session: Session) -> dict[str, Any]:
    agent = agents.load(call.store, call.team, session.agent)
    return {
        "name": session.agent,
        "caller": session.caller,
        "description": session.description,
        "outcome": session.outcome or session.state,
        "turns": session.turns,
        "worktree": session.worktree,
        "statusHistory": [entry.status for entry in agent.status_history],
    }


def _interject(call: Call, to: str, text: str) -> Any:
    return interruptions.interject(call.store, call.team, call.caller, to, text, call.environ).to_json()


def _stop(call: Call, to: str) -> Any:
    return shown(call, interruptions.stop(call.store, call.team, call.caller, to))


def _pause(call: Call, to: str) -> Any:
    return _resting(interruptions.pause(call.store, call.team, call.caller, to))


def _resume(call: Call, to: str) -> Any:
    return _resting(interruptions.resume(call.store, call.team, call.caller, to, call.environ))


def _resting(session: Session) -> dict[str, Any]:
    """Whether the session rests, or will when its turn is over."""
    return {
        "agent": session.agent,
        "state": session.state,
        "paused": session.state == "paused" or session.pause_asked is not None,
    }


def _recall(call: Call, of: str | None, output: bool) -> Any:
    team = call.load_team()
    started = {session.agent: session for session in sessions.of_team(call.store, team.name, call.problems)}
    rows = []
    for member in team.members:
        if of is None or member.agent_id == of:
            session = started.get(member.agent_id)
            rows.append(_recalled(call, member.agent_id, session, bool(of and output)))
    if of is not None and not rows:
        raise AgentNotFound(f"team {team.name} had no agent {of!r}", "See `teams recall`.")
    return {"agents": rows}


def _recalled(call: Call, name: str, session: Session | None, output: bool) -> dict[str, Any]:
    agent = agents.load(call.store, call.team, name)
    row: dict[str, Any] = {"name": name, "statusHistory": [entry.to_json() for entry in agent.status_history]}
    if session is None:
        return {**row, "state": None}
    row["state"] = (session.outcome or session.state) if session.ended else "active"
    if output:
        row.update(output=outputs.find(call.store, call.team, name), failure=session.failure)
    return row


def _before_complete(call: Call) -> Any:
    reasons = sessions.unfinished(call.store, teams.load(call.store, call.team).name, call.agent)
    if reasons:
        raise NotFinished(
            f"{call.agent} may not finish yet: {'; '.join(reasons)}", "Wait: teams read-messages --wait 60"
        )
    return {"agent": call.agent, "mayFinish": True}


_ORDER = (
    argument("PROMPT", "What it shall do; with the harness `shell` a shell command.", name="prompt", text=True),
    option("--agent-id", "Its name, instead of the next alias.", metavar="AGENT"),
    option("--description", "In a few words; the beginning of the prompt unless given."),
    option("--harness", "What it is started with: shell, claude, codex, opencode, gemini, qwen, or your own."),
    option("--type", "Its role or specialty."),
    switch("--worktree", "Give it a git worktree and a branch of its own."),
    option("--answer", "The command that answers questions in its place.", metavar="COMMAND"),
    option("--cwd", "Where it works.", metavar="DIR", default="."),
)
_TO = argument("AGENT", "Which one.", name="to")

COMMANDS = table(
    Command("run-agent", _run, *_ORDER, switch("--detach", "Do not wait for it."), doc=_RUN),
    Command(
        "spawn", _spawn, *_ORDER, switch("--wait", "Wait until it is done, and print its output."), doc=launching.spawn
    ),
    Command(
        "interject",
        _interject,
        _TO,
        argument("TEXT", "What to tell it.", name="text", text=True),
        doc=interruptions.interject,
    ),
    Command("pause-agent", _pause, _TO, doc=interruptions.pause),
    Command("resume-agent", _resume, _TO, doc=interruptions.resume),
    Command("stop-agent", _stop, _TO, doc=interruptions.stop),
    Command(
        "recall",
        _recall,
        argument("AGENT", "Only this one.", name="of", required=False),
        switch("--output", "With a name: also what came out."),
        doc=_RECALL,
        reads=True,
    ),
    Command("before-complete", _before_complete, doc=_BEFORE, reads=True),
)
