"""Commands on a whole team: up and down, close and restore, copy, prune, and logins of a database.

They load most of the program; the other commands on teams do not.
"""

from __future__ import annotations

import os
import shlex

from teams_cli import closing, copying, errors, kinds, text
from teams_cli.agents import keeping, worktrees
from teams_cli.commands import teams
from teams_cli.commands.call import Call
from teams_cli.commands.declaration import Command, argument, in_group, option, present, switch
from teams_cli.membership import joining
from teams_cli.names import HUMAN
from teams_cli.store import opening
from teams_cli.store.files.engine import FILES
from teams_cli.tasks import tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.declaration import Parts


_ACTION_FOR = {"work": "merge", "empty": "remove"}
"""Maps the state of a worktree that is left to the action of `teams worktree` to propose. The default is `diff`."""


def _close(call: Call, force: bool) -> Any:
    """Close the team. The answer lists what remains: clients, worktrees and pending tasks."""
    closed = closing.close_with_clients(call.store, call.team, call.caller, force, call.environ)
    pending = call.try_to(lambda: tasks.all_pending(call.store, closed.team.name))
    left_behind = {
        "endedClients": closed.ended,
        "leftClients": closed.still_open,
        "worktrees": call.try_to(lambda: [t.to_json() for t in worktrees.all_of(call.store, closed.team.name)]),
        "pendingTasks": [task.id for task in pending or ()],
        "closedBy": HUMAN if call.known_caller.is_human else "",  # for whom the commands in the answer are
    }
    return {**teams.to_document(closed.team), **{key: value for key, value in left_behind.items() if value}}


def _restore(call: Call, team_name: str | None) -> Any:
    call.given_team = team_name or call.team
    copied_to = call.load_team().copied_to
    restored = closing.restore(call.store, call.team, call.caller)
    if copied_to:
        call.say(f"{restored.name} was copied to {copied_to}: if it is open there, two agents can own one task")
    call.start_landing()
    return teams.to_document(restored)


def _copy(call: Call, name: str | None, to: str) -> Any:
    call.given_team = name or call.team
    target = opening.open_target(call.store.root, to, call.environ, call.store.host)
    counts = copying.copy(call.store, target, call.team, call.caller)
    return {"team": call.team, "from": call.store.address, "to": target.address, "copied": counts}


_OLDER_THAN = 30.0
"""The default of the option `--older-than`, in days."""
_PRUNE = """Permanently delete teams that were closed some time ago, with their messages, tasks, logs, reports and
worktrees.

At a terminal the command asks first; elsewhere it only lists the teams, unless you give --yes. A team is kept if its
agents left work in worktrees, or if its folder contains unknown files. You can remove only teams that you lead; the
human can remove every team. The command also deletes the kept work of removed worktrees that is older than the setting
worktree.keptFor.

Raises:
    InvalidValue: The number of days is below zero.
"""


def _prune(call: Call, older_than: float, yes: bool) -> Any:
    rows = closing.closed_teams(call.store, call.caller, older_than, call.problems)
    expired = keeping.expired(call.store, call.caller, call.config)
    names = [row["team"] for row in rows if not row["kept"]] + [kept.ref for kept in expired]
    question = f"Remove for ever: {text.listed(names, 20)}?"
    is_agreed = bool(names) and (yes or (call.person is not None and call.person.agrees(question)))
    for row in rows:
        row["removed"] = is_agreed and not row["kept"]
        if row["removed"]:
            try:
                closing.remove(call.store, row["team"], call.caller)
            except errors.TeamsError as problem:  # the other teams are removed all the same
                row.update(kept=problem.message, removed=False)
    for kept in expired:
        rows.append({"team": kept.team, "closedAt": None, "kept": None, "ref": kept.ref, "removed": is_agreed})
        if is_agreed:
            try:
                keeping.forget(kept)
            except errors.TeamsError as problem:
                rows[-1].update(kept=problem.message.partition("\n")[0], removed=False)
    of_age = "" if older_than == _OLDER_THAN else f" --older-than {_days_in_words(older_than)}"
    by = f" --as {HUMAN}" if call.caller is not None and call.caller.is_human else ""
    call.words = lambda rows: words_of_pruned(rows, f"teams prune{of_age} --yes{by}")
    return rows


def _days_in_words(days: float) -> str:
    """Return a number of days as `--older-than` takes it: in hours if it is not whole."""
    return f"{days:g}" if days == int(days) else f"{round(days * 24, 6):g}h"


_UP = """Create or resume the team of this repository from its `teams.yaml`, in this directory or one above it.

Members with a harness are started; the others are expected to join. If `.claude/agents/` has a file for an agent's name
or role, the agent gets the description in that file. Existing tasks and pages stay. If the command is interrupted,
repeat it. The keys of the file:

* name: the name of the team.
* members: a list of {name, role, harness, model, worktree, permissions, prompt}.
* rules: a text for every member.
* pages: {KEY: TEXT}, shared with the team.
* tasks: a list of tasks, as in a workflow file.
* workflow: a workflow file with the tasks, instead of the key `tasks`.

Raises:
    InvalidValue: The file is not valid; the error names every fault.
    NotFound: There is no such file.
    NotAllowed: You do not lead the team.
    WrongState: The team was copied to another store.
"""
_DOWN = """Close the team of this repository: stop its agents and release their tasks. Queued landings wait.

Nothing is lost: `teams up` resumes the team and its landings. Clients opened with `open --detach` are ended, unless
somebody is attached to them.

Raises:
    TeamNotFound: The team was never started.
    Conflict: An agent could not be stopped in time.
    NotAllowed: You do not lead the team.
"""
_FILE = option("--file", "Use this file instead of the nearest `teams.yaml`.", metavar="FILE")


def _up(call: Call, file: str | None) -> Any:
    from teams_cli.runs import rosters

    risen = rosters.up(call.store, call.caller, _roster(call, file), call.config, call.environ, call.given("team"))
    call.given_team = risen["team"]
    call.start_landing()
    return risen


def _down(call: Call, file: str | None) -> Any:
    from teams_cli.runs import rosters

    return rosters.down(call.store, call.caller, _roster(call, file), call.config, call.environ, call.given("team"))


def _roster(call: Call, file: str | None) -> str:
    from teams_cli.workflows import roster

    return roster.nearest(call.directory) if file is None else os.path.join(call.directory, file)


def words_of_copied(done: dict[str, Any]) -> Parts:
    counts = ", ".join(f"{count} {name}" for name, count in done["copied"].items())
    target = shlex.quote(done["to"])
    # The environment or a configuration may name another store than the one that the command was given.
    options = f"--store {target}" if "://" in done["to"] else f"--root {target} --store {FILES}"
    return present(
        f"{done['team']}: copied to {done['to']} ({counts or 'it was there already'})",
        f"closed here; continue there: teams brief --team {done['team']} {options}",
    )


def words_of_closed(team: dict[str, Any]) -> Parts:
    person = " --as human" if team.get("closedBy") == HUMAN else ""
    left_worktrees = [
        f"{tree['agent']} left {tree['path']}: "
        f"teams worktree {_ACTION_FOR.get(tree['state'], 'diff')} {tree['agent']} --team {team['name']}{person}"
        for tree in team.get("worktrees", ())
    ]
    ended = [f"{name}: its detached client was ended" for name in team.get("endedClients", ())]
    left_clients = [_client_left(team["name"], name) + person for name in team.get("leftClients", ())]
    pending = [f"still pending: {text.listed(team['pendingTasks'])}"] if "pendingTasks" in team else []
    closed = f"{team['name']}: closed; to reopen it: teams restore-team {team['name']}{person}"
    return [closed, *pending, *ended, *left_clients, *left_worktrees]


def _client_left(team: str, name: str) -> str:
    return f"{name}: somebody watches its client, which goes on; to end it: teams stop-agent {name} --team {team}"


def words_of_pruned(rows: list[dict[str, Any]], command: str = "teams prune --yes") -> Parts:
    """Return the lines of the answer. *command* removes what was only listed."""
    lines: Parts = []
    for row in rows:
        if "ref" in row:
            lines.append(f"{row['ref']}: {_outcome(row)}, kept work")
        else:
            lines.append(f"{row['team']}: {_outcome(row)}, closed {row['closedAt']}")
    if any(not row["removed"] and not row["kept"] for row in rows):
        lines.append(f"Nothing was removed. To remove them: {command}")
    return lines or ["no team was closed that long ago"]


def _outcome(row: dict[str, Any]) -> str:
    if row["removed"]:
        return "removed"
    return f"kept ({row['kept']})" if row["kept"] else "would be removed"


def words_of_risen(done: dict[str, Any]) -> Parts:
    outcome = "created" if done["created"] else "exists"
    members = []
    for member in done["members"]:
        role_not_taken = f" (not {member['said']}: members keep their role)" if "said" in member else ""
        members.append(f"{member['name']}: {member['state']}, {member['role']}{role_not_taken}")
    return present(
        f"{done['team']}: {outcome}; its leader is {done['leader']}",
        *members,
        f"pages: {', '.join(done['pages'])}" if done["pages"] else None,
        f"tasks: {', '.join(done['tasks'])}" if done["tasks"] else None,
    )


def words_of_ended(done: dict[str, Any]) -> Parts:
    return present(
        f"{done['team']}: closed",
        f"stopped: {', '.join(done['stopped'])}" if done["stopped"] else None,
        *(_client_left(done["team"], name) for name in done.get("leftClients", ())),
    )


def words_of_logins(done: dict[str, Any]) -> Parts:
    lines: Parts = [f"{agent}: {address}" for agent, address in done["addresses"].items()]
    return lines or [f"{done['team']}: the rights of all logins are up to date; nobody needed a new one"]


COMMANDS = in_group(
    "Teams",
    Command(
        "close-team",
        _close,
        switch("--force", "Close the team even while work is going on."),
        doc=closing.close_with_clients,
        changes=False,
        words=words_of_closed,
        traits="moves",
        held="",
        example="close-team",
        want="end the team when its work is done",
        also="archive-team end-team close",
    ),
    Command(
        "restore-team",
        _restore,
        argument("NAME", "The team, instead of --team.", name="team_name", required=False),
        doc=closing.restore,
        words=lambda team: [f"{team['name']}: open"],
        example="restore-team demo",
        also="reopen-team open-team",
    ),
    Command(
        "copy-team",
        _copy,
        argument("NAME", "The team, instead of --team.", name="name", required=False),
        option(
            "--to",
            "The other store: postgresql://…, `files` for the data directory, or another directory.",
            metavar="STORE",
            required=True,
        ),
        doc=copying.copy,
        changes=False,
        words=words_of_copied,
        traits="at_shell",
        example="copy-team demo --to postgresql://localhost/teams",
        also="move-team migrate-team database",
    ),
    Command(
        "set-up-roles",
        lambda call: {"team": call.team, "addresses": joining.set_up(call.store, call.team, call.caller, kinds.ALL)},
        doc=joining.set_up,
        traits="at_shell",
        words=words_of_logins,
        example="set-up-roles",
    ),
    Command(
        "prune",
        _prune,
        option(
            "--older-than",
            "Remove teams that were closed at least this long ago: a number of days, or hours such as 12h.",
            metavar="DAYS",
            default=_OLDER_THAN,
        ),
        switch("--yes", "Do not ask."),
        doc=_PRUNE,
        traits="at_shell",
        example="prune --older-than 7",
        changes=False,
        words=words_of_pruned,
        also=dict.fromkeys(("delete-team", "remove-team"), "close-team; and later: teams prune"),
    ),
    Command(
        "up",
        _up,
        _FILE,
        doc=_UP,
        words=words_of_risen,
        traits="repeatable at_shell",
        example="up",
        also="start-team bring-up",
    ),
    Command(
        "down",
        _down,
        _FILE,
        doc=_DOWN,
        words=words_of_ended,
        traits="repeatable at_shell",
        example="down",
        also="stop-team bring-down",
    ),
)
