"""Commands on teams and membership."""

from __future__ import annotations

import time

from teams_cli import errors, text
from teams_cli.clock import ago
from teams_cli.commands.call import Call
from teams_cli.commands.declaration import Command, Table, argument, in_group, option, present, switch
from teams_cli.membership import joining
from teams_cli.names import HUMAN
from teams_cli.tasks import tasks
from teams_cli.teams import presence, role_definitions, settings, teams
from teams_cli.teams.teams import MEMBER, Team
from teams_cli.text import counts_of
from teams_cli.views import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.declaration import Parts


PRIVATE = ("tokenHash", "launcher")
"""The keys of a member's record that no answer shows."""


def to_document(team: Team) -> dict[str, Any]:
    """Return the team as JSON, without secrets: the hashes of its members' tokens, and the launchers."""
    document = team.to_document()
    document.pop("humanTokenHash", None)
    members = [member.to_complete_json() for member in team.roster()]
    document["members"] = [{k: v for k, v in m.items() if k not in PRIVATE} for m in members]
    return {**document, "secure": True} if team.secure else document


_DISCOVER = """List the teams: name, leader, members, age, and tasks by status.

Closed teams are listed with --all. Damaged teams are reported on standard error.
"""
_SHOW = """Show a team: its leader, members, roles and settings.

Raises:
    TeamNotFound: There is no team of that name.
"""


def _spawn(call: Call, name: str, description: str | None, secure: bool) -> Any:
    team, tokens = joining.spawn_team(call.store, name, call.caller, description, secure)
    call.given_team = name
    call.next_step = steps.CREATE
    return {**to_document(team), **tokens}


def _discover(call: Call, all: bool) -> Any:
    return [
        {
            "name": team.name,
            "leader": team.leader,
            "memberCount": len(team.active_names()),
            "createdAt": team.created_at,
            "state": team.state,
            "description": team.description,
            "taskCounts": tasks.count(tasks.all_of(call.store, team.name, call.problems)),
        }
        for team in teams.all_of(call.store, call.problems)
        if all or team.state == "active"
    ]


def _join(
    call: Call,
    team_name: str | None,
    role: str | None,
    type: str | None,
    display: str | None,
    answer: str | None,
    wait: float | None,
    claim: bool,
) -> Any:
    """Join a team. With *wait*, wait up to that many seconds for the team to exist. With *claim*, also claim a task."""
    if display and not team_name and display in call.store.teams():
        raise errors.WrongUsage(
            f"{display} is the name of a team, not of an agent", f"To join it: teams join-team {display}"
        )
    call.given_team = team_name or call.team
    began = time.monotonic()
    if claim and call.known_caller.is_human:
        raise errors.WrongUsage("the human claims no tasks", "Join without --claim.")
    if wait is not None:
        from teams_cli.views import conditions

        again = steps.join(team_name or "", call.given("agent"), claim)
        conditions.wait(call.store, call.team, [conditions.team_there(call.store, call.team, again)], wait, call.say)
    member, token = joining.join(call.store, call.team, call.caller, role, type, display, answer)
    document = {"team": call.team, **{key: value for key, value in member.to_json().items() if key not in PRIVATE}}
    if token:
        document["token"] = token
    # The caller is a member by now, whether or not the rules can be read.
    call.try_to(lambda: presence.note_facts(call.store, call.team, member.agent_id, explained=None))
    if rules := call.try_to(lambda: settings.value(call.load_team(), settings.RULES)):
        document["rules"] = rules
    if claim:
        from teams_cli.commands import claims

        remaining = None if wait is None else max(0.0, round(wait - time.monotonic() + began, 1))
        return claims.add_next_task(call, document, remaining)
    if call.caller is not None:  # an agent that was given its name just now has to use it first
        call.try_to(call.set_next_step)
    return document


def _leave(call: Call) -> Any:
    from teams_cli.agents import logs

    team = call.team
    released = joining.leave(call.store, team, call.caller, call.problems)
    call.try_to(lambda: logs.sweep(call.store, team))
    return {"team": team, "agentId": call.agent, "left": True, "releasedTasks": released}


def _define(call: Call, name: str, skill: list[str], workflow: str | None, **fields: Any) -> Any:
    if workflow:
        from teams_cli.workflows import files

        files.path_of(workflow, call.directory)  # refuses a workflow that does not exist
    definition = role_definitions.define(
        call.store, call.team, call.caller, name, skills=skill, workflow=workflow, **fields
    )
    return {"name": name, **definition}


def words_of_created(team: dict[str, Any]) -> Parts:
    return present(
        f"{team['name']}: created; its leader is {team['leader']}",
        f"token of {team['leader']}: {team['token']}" if "token" in team else None,
        f"token of human: {team['humanToken']}" if "humanToken" in team else None,
        steps.LEADING if team["leader"] != HUMAN else None,
    )


def words_of_teams(rows: list[dict[str, Any]]) -> Parts:
    table = [
        [
            row["name"],
            row["leader"],
            str(row["memberCount"]),
            counts_of(row["taskCounts"]),
            ago(row["createdAt"]),
            row["state"],
        ]
        for row in rows
    ]
    return [Table(["team", "leader", "members", "tasks", "created", "state"], table, "no teams")]


def words_of_team(team: dict[str, Any]) -> Parts:
    rows = []
    for member in team["members"]:
        state = "left" if "leftAt" in member else "member"
        state = "stopped" if "stoppedBy" in member else state
        names = [member.get("agentType", ""), member.get("agentName", "")]
        rows.append([member["agentId"], member["role"], *names, state])
    head = f"{team['name']} ({team['state']}), led by {team['leader']}, created {ago(team['createdAt'])}"
    roles = [f"role {name} extends {role['extends']}" for name, role in team["roles"].items()]
    members = Table(["agent", "role", "type", "name", "state"], rows, "no members")
    return [*present(head, *text.quoted(team.get("description"))), members, *roles]


def words_of_joined(member: dict[str, Any]) -> Parts:
    from teams_cli.commands.task_documents import words_of_claimed_too

    lines = present(
        f"{member['agentId']}: in team {member['team']} as {member['role']}",
        f"token: {member['token']}" if "token" in member else None,
        "rules of the team:" if "rules" in member else None,
        *text.quoted(member.get("rules"), "| "),
    )
    return [*lines, *words_of_claimed_too(member)]


def words_of_left(done: dict[str, Any]) -> Parts:
    released = ", ".join(done["releasedTasks"])
    return present(f"{done['agentId']}: left team {done['team']}", f"released: {released}" if released else None)


COMMANDS = in_group(
    "Teams",
    Command(
        "spawn-team",
        _spawn,
        argument("NAME", "The name of the team.", name="name", called="team_name"),
        option("--description", "The purpose of the team.", text=True),
        switch("--secure", "Require a token from every member."),
        doc=joining.spawn_team,
        words=words_of_created,
        traits="adding outside moves",
        example="spawn-team demo --as lead",
        want="create a team and lead it",
        also="create-team new-team make-team add-team init",
    ),
    Command(
        "discover-teams",
        _discover,
        switch("--all", "List closed teams too."),
        doc=_DISCOVER,
        words=words_of_teams,
        traits="reads outside",
        held="all",
        example="discover-teams",
        also="list-teams get-teams find-teams teams",
    ),
    Command(
        "show-team",
        lambda call, team_name: to_document(teams.get(call.store, team_name or call.team)),
        argument("NAME", "The team, instead of --team.", name="team_name", required=False),
        doc=_SHOW,
        words=words_of_team,
        traits="reads",
        held="team_name=.",
        example="show-team demo",
        also="info team leader",
    ),
    Command(
        "join-team",
        _join,
        argument("NAME", "The team, instead of --team.", name="team_name", required=False),
        option("--role", "Your role: team-member, task-manager, or one that the team defined."),
        option("--type", "Your specialty; it counts as a skill.", metavar="SPECIALTY"),
        option("--name", "The name that people see.", metavar="DISPLAY", name="display", called="agent_name"),
        option("--answer", "A command that answers questions for you.", metavar="COMMAND"),
        option("--wait", "How long to wait until the team exists.", metavar="SECONDS"),
        switch("--claim", "Also claim a task; with --wait, as soon as a task is ready."),
        doc=joining.join,
        words=words_of_joined,
        traits="long sleeps repeatable outside moves",
        held="team_name=. wait claim",
        example="join-team demo --as bob",
        want="join a team (--wait 540: wait until it exists; --claim: also claim a task)",
        also={"join register enter-team": "", "invite add-member": "join-team --as AGENT"},
    ),
    Command(
        "leave-team",
        _leave,
        doc=joining.leave,
        changes=False,
        words=words_of_left,
        traits="moves",
        held="",
        example="leave-team",
        also="leave quit exit bye",
    ),
    Command(
        "hand-over",
        lambda call, to: to_document(joining.hand_over(call.store, call.team, call.caller, to)),
        argument("AGENT", "The new leader.", name="to"),
        doc=joining.hand_over,
        words=lambda team: [f"{team['leader']} leads team {team['name']}"],
        traits="moves",
        held="to",
        example="hand-over bob",
        also="handover promote set-leader handoff hand-off",
    ),
    Command(
        "define-role",
        _define,
        argument("NAME", "The name of the role.", name="name"),
        option("--extends", "Its parent role.", metavar="ROLE", default=MEMBER),
        option(
            "--allow", "An operation that the role may do, besides those of its parent.", metavar="OPERATION", many=True
        ),
        option("--deny", "An operation that the role may not do.", metavar="OPERATION", many=True),
        option("--skill", "A skill of the role.", many=True),
        option("--description", "The purpose of the role.", text=True),
        option("--workflow", "A workflow that the members of the role follow.", metavar="WORKFLOW"),
        doc=role_definitions.define,
        words=lambda role: [f"{role['name']}: extends {role['extends']}"],
        traits="repeatable moves",
        example="define-role scout --allow create-task --skill search",
        also="role roles create-role add-role skill skills",
    ),
)
