"""Commands on a team as a whole: closing it and opening it again, copying it, telling the database of its members.

They need most of the program, which the other commands on teams do without.
"""

from __future__ import annotations

from teams_cli import closing, copying, kinds
from teams_cli.agents import worktrees
from teams_cli.commands import team_documents
from teams_cli.commands.call import Call
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.membership import joining
from teams_cli.store import opening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _close(call: Call, force: bool) -> Any:
    closed = closing.close_with_clients(call.store, call.team, call.caller, force, call.environ)
    left: list[Any] = []
    call.try_to(lambda: left.extend(tree.to_json() for tree in worktrees.all_of(call.store, closed.team.name)))
    clients = {"endedClients": closed.ended, "leftClients": closed.left}
    said = {key: names for key, names in clients.items() if names}
    return {**team_documents.to_document(closed.team), **said, **({"worktrees": left} if left else {})}


def _restore(call: Call, team_name: str | None) -> Any:
    call.said_team = team_name or call.team
    return team_documents.to_document(closing.restore(call.store, call.team, call.caller))


def _copy(call: Call, name: str | None, to: str) -> Any:
    call.said_team = name or call.team
    target = opening.open_target(call.store.root, to, call.environ, call.store.host)
    counts = copying.copy(call.store, target, call.team, call.caller)
    return {"team": call.team, "from": call.store.address, "to": target.address, "copied": counts}


def _set_up(call: Call) -> Any:
    return {"team": call.team, "addresses": joining.set_up(call.store, call.team, call.caller, kinds.ALL)}


COMMANDS = table(
    "Teams",
    Command(
        "close-team",
        _close,
        switch("--force", "Close it even while work is going on."),
        doc=closing.close,
        changes=False,
        words="teams:closed",
        moves=True,
        held="",
        example="close-team",
        also="archive-team end-team close",
    ),
    Command(
        "restore-team",
        _restore,
        argument("NAME", "The team, instead of --team.", name="team_name", required=False),
        doc=closing.restore,
        words="teams:restored",
        example="restore-team demo",
        also="reopen-team open-team",
    ),
    Command(
        "copy-team",
        _copy,
        argument("NAME", "The team, instead of --team.", name="name", required=False),
        option(
            "--to",
            "postgresql://…, `files` for the data directory, or another directory.",
            metavar="STORE",
            required=True,
        ),
        doc=copying.copy,
        changes=False,
        at_shell=True,
        words="teams:copied",
        example="copy-team demo --to postgresql://localhost/teams",
        also="move-team migrate-team database",
    ),
    Command(
        "set-up-roles", _set_up, doc=joining.set_up, at_shell=True, words="teams:addresses", example="set-up-roles"
    ),
)
