"""Commands on the work of agents: their worktrees, their changes and conflicts, and the tokens that they used."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.agents import budgets, checkouts, keeping, overlaps, worktrees
from teams_cli.commands.declaration import Command, Table, argument, in_group, option, switch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Parts


_HEADS = ["turns", "input", "cached", "output", "total", "time"]
_WORKTREE = """List the worktrees of agents, show the changes of one, merge it, remove it, or restore it.

`diff` prints all changes as a patch, including uncommitted ones. `merge` first commits what the agent left uncommitted;
the repository's hooks run for this commit. It then merges the agent's branch into the branch of the checkout in which
the agent was started, and removes the worktree and its branch. `remove` removes both without merging.

Removed work is kept in the repository as one commit; the answer shows the commit's reference. `list --kept` lists kept
work, and `restore REF` brings it back in a new worktree. `teams prune` deletes kept work after the time in the setting
worktree.keptFor, which is 30 days by default.

Raises:
    AgentNotFound: The agent has no worktree.
    Conflict: The agent is at work, the work conflicts, or some of it would be lost; nothing was changed.
    NotAllowed: Only the leader and the human may merge, remove and restore.
"""


def _worktree(call: Call, action: str, of: str | None, force: bool, kept: bool) -> Any:
    """Do the *action* with the worktree of the agent *of*; with `restore`, *of* refers to kept work."""
    if kept:
        if action != "list":
            raise errors.WrongUsage("--kept can only be used with `worktree list`", "Write: teams worktree list --kept")
        call.words = words_of_kept_work
        return [work.to_json() for work in keeping.all_of(call.store, call.given_team)]
    if action == "list":
        return [tree.to_json() for tree in worktrees.all_of(call.store, call.load_team().name)]
    if of is None:
        if action == "restore":
            raise errors.WrongUsage("what to restore is missing", "See: teams worktree list --kept")
        raise errors.WrongUsage(f"say whose worktree to {action}", "To see them: teams worktree list")
    if action == "restore":
        return worktrees.restore(call.store, call.caller, of, call.current_directory)
    if action == "diff":
        tree = worktrees.of_agent(call.store, call.load_team().name, of)
        return {**tree.to_json(), "diff": worktrees.diff(tree)}
    if action == "merge":
        return worktrees.merge(call.store, call.team, call.caller, of)
    return worktrees.remove(call.store, call.team, call.caller, of, force)


def _overlaps(call: Call) -> Any:
    team = call.load_team()
    rows = [overlap.to_json() for overlap in overlaps.of_team(call.store, team)]
    if not rows and (unseen := checkouts.without_worktree(call.store, team)):
        call.remark = f"not compared: {text.listed(unseen)}. First run `teams heartbeat` in their worktrees."
    return rows


_DIFF = """Show, as a patch, the changes in an agent's worktree that the main branch lacks, including uncommitted
changes.

Raises:
    AgentNotFound: The agent has no worktree on this machine.
"""


_USAGE = """Show the tokens and the time that agents used, by agent, task or model, and the state of budgets.

Input is everything that the models read, including cached tokens. If a client does not report its use, the use is
unknown. If a turn served several tasks, its use is divided evenly among them.
"""


def words_of_worktrees(document: Any) -> Parts:
    if isinstance(document, list):
        rows, other_work = [], []
        for tree in document:
            holds = "may hold work" if tree["state"] == "unknown" else tree["state"]
            rows.append([tree["agent"], holds, str(tree["commits"]), str(tree["uncommitted"]), tree["path"]])
            if len(tree["holds"]) > bool(tree["commits"]) + bool(tree["uncommitted"]):  # more than the columns say
                other_work.append(f"{tree['agent']}: {', '.join(tree['holds'])}")
        return [Table(["agent", "holds", "commits", "uncommitted", "path"], rows, "no worktrees"), *other_work]
    if "diff" in document:
        return words_of_patch(document, "nothing")
    kept = [f"kept as {document['kept']}: teams worktree restore {document['kept']}"] if document.get("kept") else []
    if document["state"] == "merged":
        merged = f"{document['branch']}: merged into {document['onto']} as {document['commit'][:10]}"
        return [f"{merged}; worktree and branch removed", *kept]
    if document["state"] == "restored":
        return [f"{document['path']}: restored, on {document['branch']}"]
    nothing = f"nothing to merge into {document['onto']}; " if "onto" in document else ""
    return [f"{document['path']}: {nothing}removed, with {document['branch']}", *kept]


def words_of_kept_work(kept: list[dict[str, Any]]) -> Parts:
    rows = [[work["ref"], work["at"], ", ".join(work["holds"]) or "no changes"] for work in kept]
    return [Table(["kept", "at", "holds"], rows, "no kept work")]


def words_of_overlaps(overlaps: list[dict[str, Any]]) -> Parts:
    rows = []
    for overlap in overlaps:
        places = [":".join(filter(None, (each["file"], ",".join(each["symbols"])))) for each in overlap["places"]]
        rows.append([" ".join(overlap["agents"]), " ".join(overlap["branches"]), text.listed(places, 20)])
    return [Table(["agents", "branches", "conflict in"], rows, "nobody's changes conflict")]


def words_of_patch(document: dict[str, Any], nothing: str = "nothing there") -> Parts:
    return document["diff"].rstrip("\n").split("\n") if document["diff"] else [f"{document['agent']} changed {nothing}"]


def words_of_spent(document: dict[str, Any]) -> Parts:
    by = document["by"]
    rows = [_row(row[by], row) for row in document["rows"]]
    if rows:
        rows.append(_row("total", document["total"]))
    lines: Parts = [Table([by, *_HEADS], rows, "no started agent has finished a turn yet")]
    if document["coordination"] is not None:
        lines.append(f"coordination (turns that only handled messages): {document['coordination']:.0%} of the tokens")
    for budget in document["budgets"]:
        share = budget["taken"] / budget["limit"]
        unknown = f"; the tokens of {budget['uncounted']} turns are unknown" if budget["uncounted"] else ""
        used = f"{budget['taken']:,} of {budget['limit']:,} tokens ({share:.0%})"
        lines.append(f"budget of {budget['of'] or 'the team'}: {used}{unknown}")
    return lines


def _row(name: str, row: dict[str, Any]) -> list[str]:
    turns = f"{row['turns']} ({row['uncounted']} unknown)" if row["uncounted"] else str(row["turns"])
    counts = ["unknown" if row[kind] is None else f"{row[kind]:,}" for kind in ("input", "cached", "output", "total")]
    return [name, turns, *counts, f"{row['seconds']:.0f} s"]


COMMANDS = in_group(
    "Agents",
    Command(
        "worktree",
        _worktree,
        argument("ACTION", "What to do.", name="action", choices=("list", "diff", "merge", "remove", "restore")),
        argument(
            "AGENT",
            "The owner of the worktree; with `restore`, the reference of the kept work.",
            name="of",
            required=False,
        ),
        switch("--force", "With `remove`: remove the worktree even if it has unmerged work."),
        switch("--kept", "With `list`: list the kept work of removed worktrees instead."),
        doc=_WORKTREE,
        traits="at_shell",
        held="action=list,diff of",
        example="worktree diff bob",
        changes=False,
        words=words_of_worktrees,
        also={"merge merge-agent": "worktree merge AGENT"},
    ),
    Command(
        "diff",
        lambda call, of, paths: overlaps.diff(call.store, call.load_team(), of, paths),
        argument("AGENT", "The agent.", name="of", required=True),
        argument(
            "PATH",
            "Only these files or directories, relative to the top of the repository.",
            name="paths",
            many=True,
            required=False,
        ),
        doc=_DIFF,
        words=words_of_patch,
        traits="reads",
        held="of paths",
        example="diff bob src/x.py",
        also="show-diff get-diff",
    ),
    Command(
        "overlaps",
        _overlaps,
        doc=overlaps.of_team,
        words=words_of_overlaps,
        traits="reads",
        held="",
        example="overlaps",
        also="conflict conflicts get-overlaps",
    ),
    Command(
        "usage",
        lambda call, by: budgets.spent(call.store, call.load_team(), by, call.problems),
        option("--by", "Show one row for each agent, task or model.", choices=budgets.SPENT_BY, default="agent"),
        doc=_USAGE,
        words=words_of_spent,
        traits="reads",
        held="by",
        example="usage --by model",
        also="tokens cost costs budget spend spending",
    ),
)
