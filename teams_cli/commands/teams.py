"""Commands on teams and membership."""

from __future__ import annotations

from teams_cli import closing, copying, logins, membership, role_definitions, tasks, teams
from teams_cli.commands.call import public
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.errors import TeamsError
from teams_cli.store import opening
from teams_cli.teams import MEMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.teams import Member, Team

_DISCOVER = """List the teams: name, leader, members, when created, and how many tasks have which status.

Closed teams are listed with --all. A damaged team is named on standard error, and the others are listed.
"""
_SHOW = """Show a team: its leader, members, roles and settings.

Raises:
    TeamNotFound: There is none of that name.
"""


def _spawn(call: Call, name: str, description: str | None, secure: bool) -> Any:
    team, tokens = membership.spawn_team(call.store, name, call.caller, description, secure)
    call.said_team = name
    return {**public(team), **tokens}


def _discover(call: Call, all: bool) -> Any:
    rows = []
    for name in call.store.teams():
        try:
            team = teams.load(call.store, name)
        except TeamsError as problem:
            call.problems.append(problem)
            continue
        if all or team.state == "active":
            rows.append(_row(call, team))
    return rows


def _row(call: Call, team: Team) -> dict[str, Any]:
    counts = dict.fromkeys(tasks.STATUSES, 0)
    for task in tasks.everything(call.store, team.name, call.problems):
        counts[task.status] += 1
    return {
        "name": team.name,
        "leader": team.leader,
        "memberCount": len(team.active_names()),
        "createdAt": team.created_at,
        "state": team.state,
        "description": team.description,
        "taskCounts": counts,
    }


def _show(call: Call, team_name: str | None) -> Any:
    return public(teams.load(call.store, team_name or call.team))


def _join(
    call: Call,
    team_name: str | None,
    role: str | None,
    type: str | None,
    display: str | None,
    answer: str | None,
) -> Any:
    call.said_team = team_name or call.team
    member, token = membership.join(call.store, call.team, call.caller, role, type, display, answer)
    return {"team": call.team, **_as_shown(member), **({"token": token} if token else {})}


def _as_shown(member: Member) -> dict[str, Any]:
    document = member.to_json()
    document.pop("tokenHash", None)
    return document


def _leave(call: Call) -> Any:
    team = call.team
    freed = membership.leave(call.store, team, call.caller)
    return {"team": team, "agentId": call.agent, "left": True, "releasedTasks": freed}


def _hand_over(call: Call, to: str) -> Any:
    return public(membership.hand_over(call.store, call.team, call.caller, to))


def _close(call: Call, force: bool) -> Any:
    return public(closing.close(call.store, call.team, call.caller, force))


def _restore(call: Call, team_name: str | None) -> Any:
    call.said_team = team_name or call.team
    return public(closing.restore(call.store, call.team, call.caller))


def _copy(call: Call, name: str | None, to: str) -> Any:
    call.said_team = name or call.team
    target = opening.open_target(call.store.root, to, call.store.host)
    counts = copying.copy(call.store, target, call.team, call.caller)
    return {"team": call.team, "from": call.store.place, "to": target.place, "copied": counts}


def _set_up(call: Call) -> Any:
    return {"team": call.team, "addresses": logins.set_up(call.store, call.team, call.caller)}


def _define(
    call: Call,
    name: str,
    extends: str,
    allow: list[str],
    deny: list[str],
    skill: list[str],
    description: str | None,
) -> Any:
    definition = role_definitions.define(
        call.store,
        call.team,
        call.caller,
        name,
        extends=extends,
        allow=list(allow),
        deny=list(deny),
        skills=list(skill),
        description=description,
    )
    return {"name": name, **definition}


COMMANDS = table(
    Command(
        "spawn-team",
        _spawn,
        argument("NAME", "What the team is called.", name="name"),
        option("--description", "What it is for.", text=True),
        switch("--secure", "Give every member a token to prove itself with."),
        doc=membership.spawn_team,
    ),
    Command(
        "discover-teams",
        _discover,
        switch("--all", "List closed teams too."),
        doc=_DISCOVER,
        reads=True,
    ),
    Command(
        "show-team",
        _show,
        argument("NAME", "Which team, instead of --team.", name="team_name", required=False),
        doc=_SHOW,
        reads=True,
    ),
    Command(
        "join-team",
        _join,
        argument("NAME", "Which team, instead of --team.", name="team_name", required=False),
        option("--role", "team-member, task-manager, or one that is defined."),
        option("--type", "Your specialty, which counts as a skill.", metavar="SPECIALTY"),
        option("--name", "Your name for people.", metavar="DISPLAY", name="display"),
        option("--answer", "The command that answers questions in your place.", metavar="COMMAND"),
        doc=membership.join,
    ),
    Command("leave-team", _leave, doc=membership.leave, changes=False),
    Command(
        "hand-over",
        _hand_over,
        argument("AGENT", "The member to lead from now on.", name="to"),
        doc=membership.hand_over,
    ),
    Command("close-team", _close, switch("--force", "Also while work is going on."), doc=closing.close, changes=False),
    Command(
        "restore-team",
        _restore,
        argument("NAME", "Which team, instead of --team.", name="team_name", required=False),
        doc=closing.restore,
    ),
    Command(
        "copy-team",
        _copy,
        argument("NAME", "Which team, instead of --team.", name="name", required=False),
        option("--to", "postgresql://…, `files` for the root, or another directory.", metavar="STORE", required=True),
        doc=copying.copy,
        changes=False,
        at_shell=True,
    ),
    Command(
        "define-role",
        _define,
        argument("NAME", "What the role is called.", name="name"),
        option("--extends", "The role it is made of.", metavar="ROLE", default=MEMBER),
        option("--allow", "An operation it may do besides.", metavar="OPERATION", many=True),
        option("--deny", "An operation it may not do.", metavar="OPERATION", many=True),
        option("--skill", "What it knows.", many=True),
        option("--description", "What it is for.", text=True),
        doc=role_definitions.define,
    ),
    Command("set-up-roles", _set_up, doc=logins.set_up, at_shell=True),
)
