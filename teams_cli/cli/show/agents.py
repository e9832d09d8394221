"""Agents that were started, in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.show import present

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.tables import Table

    Parts = list[str | Table]


def run(done: dict[str, Any]) -> Parts:
    if "state" in done:
        return _started(done)
    lines = ended(done)
    if len(done.get("agents", ())) > 1:
        lines += ["", *(line for agent in done["agents"] for line in _summary(agent))]
    return lines


def _started(session: dict[str, Any]) -> Parts:
    tree = f", in {session['worktree']} on {session['branch']}" if "worktree" in session else ""
    return [f"{session['agent']}: started{tree} ({session['description']})"]


def ended(done: dict[str, Any]) -> Parts:
    """How an agent ended, and what came out."""
    if done["outcome"] == "completed":
        output = text.quoted(done["output"])
        return [f"{done['agent']}: completed{'' if output else ' without output'}", *output]
    head = f"{done['agent']}: {done['outcome']}: {done['failure']}"
    return present(head, *text.quoted(done["output"]), done.get("hint"))


def _summary(agent: dict[str, Any]) -> Parts:
    tree = f", in {agent['worktree']}" if agent["worktree"] else ""
    head = f"{agent['name']}: {agent['outcome']} after {agent['turns']} turn(s){tree} ({agent['description']})"
    return [head, *(f"  → {status}" for status in agent["statusHistory"])]


def resting(done: dict[str, Any]) -> Parts:
    how = f"resumed ({done['state']})"
    if done["paused"]:
        how = "paused" if done["state"] == "paused" else "will pause after its turn"
    return [f"{done['agent']}: {how}"]


def recalled(found: dict[str, Any]) -> Parts:
    lines: Parts = []
    for agent in found["agents"]:
        lines.append(f"{agent['name']}: {agent['state'] or 'not started by teams'}")
        lines += [f"  → {entry['status']}" for entry in agent["statusHistory"]]
        lines += [*text.quoted(agent.get("output")), *text.quoted(agent.get("failure"))]
    return lines or ["no agents"]


def printed(said: dict[str, Any]) -> Parts:
    return [*text.quoted("\n".join(said["lines"]))]


def interjected(message: dict[str, Any]) -> Parts:
    return [f"{message['id']}: sent to {message['to']}, interrupting"]


def restarted(message: dict[str, Any]) -> Parts:
    told = f", notified by {message['id']}" if message.get("id") else ""
    return [f"{message['to']}: restarted{told}"]


def may_finish(done: dict[str, Any]) -> Parts:
    if done["mayFinish"]:
        return [f"{done['agent']}: may finish"]
    waits = [f"{name} still works for it" for name in done["waitForSessions"]]
    unread = [f"unread: {', '.join(done['unread'])}"] if done["unread"] else []
    return [f"{done['agent']}: may not finish yet: {'; '.join([*waits, *unread])}"]
