"""Answers on agents, their worktrees, overlaps and use of tokens, in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.show import present
from teams_cli.cli.tables import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.show import Parts


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
        output = _said(done)
        return [f"{done['agent']}: completed{'' if output else ' without output'}", *output]
    head = f"{done['agent']}: {done['outcome']}: {done['failure']}"
    return present(head, *_said(done), done.get("hint"))


def _said(agent: dict[str, Any]) -> list[str]:
    """What the agent said at the end of its turns, the last at the end."""
    return [line for said in (*agent.get("earlier", ()), agent.get("output")) for line in text.quoted(said)]


def _summary(agent: dict[str, Any]) -> Parts:
    tree = f", in {agent['worktree']}" if agent["worktree"] else ""
    head = f"{agent['name']}: {agent['outcome']} after {agent['turns']} turn(s){tree} ({agent['description']})"
    return [head, *(f"  → {status}" for status in agent["statusHistory"])]


def resting(done: dict[str, Any]) -> Parts:
    how = f"resumed ({done['state']})"
    if done["paused"]:
        how = "paused" if done["state"] == "paused" else "will pause after its turn"
    return [f"{done['agent']}: {how}"]


def recalled(document: dict[str, Any]) -> Parts:
    lines: Parts = []
    for agent in document["agents"]:
        lines.append(f"{agent['name']}: {agent['state'] or 'not started by teams'}")
        lines += [f"  → {entry['status']}" for entry in agent["statusHistory"]]
        lines += [*_said(agent), *text.quoted(agent.get("failure"))]
    return lines or ["no agents"]


def printed(document: dict[str, Any]) -> Parts:
    return [*text.quoted("\n".join(document["lines"]))]


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


def worktrees(document: Any) -> Parts:
    if isinstance(document, list):
        rows = []
        for row in document:
            holds = "may hold work" if row["state"] == "unknown" else row["state"]
            rows.append([row["agent"], holds, str(row["commits"]), str(row["uncommitted"]), row["path"]])
        more = [f"{row['agent']}: {', '.join(row['holds'])}" for row in document if _is_more(row)]
        return [Table(["agent", "holds", "commits", "uncommitted", "path"], rows, "no worktrees"), *more]
    if "diff" in document:
        return patch(document, "nothing")
    kept = [f"kept as {document['kept']}: teams worktree restore {document['kept']}"] if document.get("kept") else []
    if document["state"] == "merged":
        merged = f"{document['branch']}: merged into {document['onto']} as {document['commit'][:10]}"
        return [f"{merged}; worktree and branch removed", *kept]
    if document["state"] == "restored":
        return [f"{document['path']}: restored, on {document['branch']}"]
    nothing = f"nothing to merge into {document['onto']}; " if "onto" in document else ""
    return [f"{document['path']}: {nothing}removed, with {document['branch']}", *kept]


def kept_work(kept: list[dict[str, Any]]) -> Parts:
    rows = [[work["ref"], work["at"], ", ".join(work["holds"]) or "no changes"] for work in kept]
    return [Table(["kept", "at", "holds"], rows, "no kept work")]


def _is_more(row: dict[str, Any]) -> bool:
    """Whether it holds other things than its commits and files."""
    return any(what.partition(" ")[2].rstrip("s") not in ("commit", "uncommitted file") for what in row["holds"])


def overlaps(overlaps: list[dict[str, Any]]) -> Parts:
    rows = []
    for overlap in overlaps:
        places = [":".join(filter(None, (each["file"], ",".join(each["symbols"])))) for each in overlap["places"]]
        rows.append([" ".join(overlap["agents"]), " ".join(overlap["branches"]), text.listed(places, 20)])
    return [Table(["agents", "branches", "conflict in"], rows, "nobody's changes conflict")]


def patch(document: dict[str, Any], nothing: str = "nothing there") -> Parts:
    return document["diff"].rstrip("\n").split("\n") if document["diff"] else [f"{document['agent']} changed {nothing}"]


_HEADS = ["turns", "input", "cached", "output", "total", "time"]


def spent(document: dict[str, Any]) -> Parts:
    by = document["by"]
    rows = [_row(row[by], row) for row in document["rows"]]
    if rows:
        rows.append(_row("total", document["total"]))
    lines: Parts = [Table([by, *_HEADS], rows, "no started agent has finished a turn yet")]
    if document["coordination"] is not None:
        lines.append(f"coordination (turns that only handled messages): {document['coordination']:.0%} of the tokens")
    lines += [_budget(each) for each in document["budgets"]]
    return lines


def _row(name: str, row: dict[str, Any]) -> list[str]:
    turns = f"{row['turns']} ({row['uncounted']} unknown)" if row["uncounted"] else str(row["turns"])
    counts = ["unknown" if row[kind] is None else f"{row[kind]:,}" for kind in ("input", "cached", "output", "total")]
    return [name, turns, *counts, f"{row['seconds']:.0f} s"]


def _budget(budget: dict[str, Any]) -> str:
    share = budget["taken"] / budget["limit"]
    unknown = f"; the tokens of {budget['uncounted']} turns are unknown" if budget["uncounted"] else ""
    whose = budget["of"] or "the team"
    return f"budget of {whose}: {budget['taken']:,} of {budget['limit']:,} tokens ({share:.0%}){unknown}"
