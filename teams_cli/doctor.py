"""The doctor: finds problems of teams, fixes those that can be repaired without loss, and tests a client."""

from __future__ import annotations

import json
import os
import subprocess
from shutil import which
from tempfile import TemporaryDirectory
from uuid import uuid4

from teams_cli import environment, errors, extensions, kinds
from teams_cli.agents import ending, isolation, worktrees
from teams_cli.agents.seats import sitting
from teams_cli.agents.sessions import SESSION
from teams_cli.clients import environments, known, permissions, plugins, profiles, settings_files
from teams_cli.clients.contract import COMMON
from teams_cli.clients.own_entries import HOLD, WAIT
from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.messages.inboxes import INBOX, hold_to_log
from teams_cli.messages.messages import MESSAGE
from teams_cli.store import json_edits
from teams_cli.store.contract import Store
from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import leases, tasks
from teams_cli.tasks.tasks import TASK, Task
from teams_cli.teams import opencode_rules, roles, settings, teams
from teams_cli.teams.config import Config
from teams_cli.teams.permission import Caller
from teams_cli.teams.teams import Team
from teams_cli.views import agents, course
from teams_cli.workflows import ordering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from teams_cli.clients.contract import Client
    from teams_cli.store.contract import Finding

    Problem = tuple[str, str, str]  # the level, what the problem is, and the remedy
    Check = Callable[[Store, Team, bool], Iterable[Problem]]


_MOST_NAMED = 10
_LONGEST_REASON = 100
_SCHEMA_FOR_EDITORS = "$schema"
"""The key of `config.json` by which editors find its schema."""


def finding(where: str, level: str, what: str, remedy: str = "") -> Finding:
    """Return a finding. *level* is `problem`, `warning`, `fixed` or `good`; *where* and *what* say what was found, and
    *remedy* what to do about it.
    """
    return {"level": level, "where": where, "what": what, "remedy": remedy}


def examine(
    store: Store,
    config: Config,
    fix: bool = False,
    only: str = "",
    opencode: str | None = None,
    environ: Mapping[str, str] | None = None,
    directory: str = "",
) -> list[Finding]:
    """Examine all teams, or *only* one, and the user's rules. *opencode* is OpenCode's own directory, whose rules are
    also examined. With *fix*, make the repairs that lose nothing. Names of workflows are looked up in the *directory*.

    Each finding has a level (`problem`, `warning` or `fixed`), and says where and what the problem is, and what to do
    about it.
    """
    if only and only not in store.teams():
        teams.get(store, only)  # refuses a name that no team has
    findings = list(store.examine(kinds.ALL, fix, only))
    defined_roles = {*roles.BUILT_IN, *roles.ALIASES, *config.agent, "*"}
    for team in teams.all_of(store, []):  # without the damaged ones, for which the store has a finding
        if only in ("", team.name):
            where = f"team {team.name}"
            known_problems = {each["what"] for each in findings if each["where"] == where}
            for level, what, remedy in _problems(store, team, config, fix, environ or {}):
                if what not in known_problems:  # several checks may need the same damaged record
                    findings.append(finding(where, level, what, remedy))
                    known_problems.add(what)
        defined_roles.update(team.roles)
    findings += _unknown_keys(config)
    findings += _wrong_values(config)
    findings += _rules(config, defined_roles, directory)
    if opencode:
        for where, why in opencode_rules.passed_over(opencode):
            findings.append(_without_effect(where, why, "Correct it: what it was to forbid is allowed."))
        for where in opencode_rules.refused_by_opencode(opencode):
            remedy = f"Move it to {store.root}/config.json."
            findings.append(finding(where, "warning", "OpenCode does not start with a rule by role", remedy))
    return findings


def _unknown_keys(config: Config) -> Iterator[Finding]:
    """Yield a finding for each key that means nothing: rules below a misspelt `permission` forbid nothing."""
    from teams_cli.records.types import RoleDefinition

    tables: list[tuple[str, Mapping[str, object], list[str]]] = [("", config.extra, [*Config.attributes])]
    tables += [(f"agent.{name}.", role, [*RoleDefinition.__annotations__]) for name, role in config.agent.items()]
    keys_of_profile = [*profiles.Profile.attributes]
    tables += [(f"harness.{name}.", profile, keys_of_profile) for name, profile in config.harness.items()]
    for prefix, table, known_keys in tables:
        for key in sorted(table.keys() - {*known_keys, _SCHEMA_FOR_EDITORS}):
            meant = teams.nearest(key, known_keys)
            remedy = f"Did you mean {meant}?" if meant else f"Keys: {', '.join(known_keys)}."
            yield _without_effect(f"config.json: {prefix}{key}", f"there is no key {key!r}", remedy)


def _wrong_values(config: Config) -> Iterator[Finding]:
    for key, value in config.settings.items():
        try:
            settings.parse_stored(key, value)
        except errors.InvalidValue as wrong:
            yield finding(f"config.json: settings.{key}", "problem", wrong.message, wrong.hint)
    for name in config.harness:
        try:
            profiles.get(name, config)
        except errors.DamagedRecord as damage:
            what = damage.message.removeprefix(f"{damage.path}: ")
            remedy = "Correct it: no agent can be started with this client."
            yield finding(damage.path, "problem", what, remedy)


def _rules(config: Config, defined_roles: set[str], directory: str) -> Iterator[Finding]:
    """Yield a finding for each rule that has no effect. For example, a rule for a misspelt command forbids nothing."""
    for operation, rule in config.permission.get("tool", {}).items():
        place = f"permission.tool.{operation}"
        if operation != "*":
            yield from _unknown_operations(place, [operation])
        for role in sorted(roles.by_role(rule).keys() - defined_roles):
            remedy = "`teams define-role` makes one."
            yield _without_effect(f"config.json: {place}.{role}", f"there is no role {role!r}", remedy)
    for role, definition in config.agent.items():
        yield from _unknown_operations(f"agent.{role}", definition.get("allow", []) + definition.get("deny", []))
        if workflow := definition.get("workflow"):
            from teams_cli.workflows import files

            try:
                files.path_of(workflow, directory)
            except files.WorkflowNotFound as missing:
                what = f"{missing.message}, which the role {role} is to follow"
                yield finding(f"config.json: agent.{role}", "problem", what, missing.hint)


def _unknown_operations(place: str, names: list[str]) -> Iterator[Finding]:
    for name in names:
        if name not in roles.operations():
            remedy = f"Operations: {', '.join(roles.operations())}."
            yield _without_effect(f"config.json: {place}", f"there is no operation {name!r}", remedy)


def _without_effect(where: str, why: str, remedy: str) -> Finding:
    return finding(where, "warning", f"{why}, so this changes nothing", remedy)


def _problems(store: Store, team: Team, config: Config, fix: bool, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the problems of the team's agents, messages, tasks and worktrees, including those that *fix* repaired. If a
    check needs a damaged record, yield a problem for the record, and go on with the next check.
    """
    by_id = {task.id: task for task in tasks.all_of(store, team.name, [])}
    checks = [
        _frozen_keepers(store, team.name),
        _inboxes(store, team.name, fix),
        _blockers(by_id, team.name),
        _expired_claims(store, team, by_id, fix),
        *(_of_extension(check, store, team, fix) for check in extensions.checks()),
        _worktrees(store, team),
        _isolation(store, team.name),
        _unattended(store, team, fix, environ) if team.state == "closed" else _of_members(store, team, config),
    ]
    for check in checks:
        try:
            yield from check
        except errors.DamagedRecord as damage:
            yield "problem", damage.message, damage.hint


def _of_extension(check: Check, store: Store, team: Team, fix: bool) -> Iterator[Problem]:
    """Yield the problems that the check of an extension finds. Unlike the check itself, this begins only when the first
    problem is asked for, as the other checks do.
    """
    yield from check(store, team, fix)


def _frozen_keepers(store: Store, team: str) -> Iterator[Problem]:
    for session, _ in store.scan(team, SESSION, []):
        if not session.ended and (pid := ending.frozen_keeper(session)):  # the agent neither works nor ends
            what = f"the keeper of {session.agent}, process {pid}, is stopped"
            ending_it = f"teams stop-agent {session.agent} --team {team}"
            remedy = f"Let it go on: kill -CONT {pid}. Or end the agent: {ending_it}"
            yield "problem", what, remedy


def _worktrees(store: Store, team: Team) -> Iterator[Problem]:
    if team.state == "closed":
        for tree in worktrees.all_of(store, team.name):  # nobody works there, and its branch would stay for ever
            action = "remove" if tree.state == "empty" else "merge"
            what = f"{tree.agent} has left a worktree, {tree.path}, on {tree.branch}"
            yield "warning", what, f"teams worktree {action} {tree.agent} --team {team.name} --as human"


def _isolation(store: Store, team: str) -> Iterator[Problem]:
    sessions = [session for session, _ in store.scan(team, SESSION, [])]
    for session, what in isolation.broken(sessions):
        in_team = f"--team {team}"
        remedy = f"Stop it and look: teams stop-agent {session.agent} {in_team}; teams worktree list {in_team}"
        yield "problem", f"{session.agent}: {what}", remedy


def _of_members(store: Store, team: Team, config: Config) -> Iterator[Problem]:
    """Yield a problem for each silent member, and for each whose role, or a role that it extends, is not defined or
    extends itself.
    """
    for row in agents.agent_rows(store, team, []):
        if row["state"] == "stale" and row["name"] != team.leader:
            what = f"{row['name']} was not heard of since {row['lastSeen']}, or its process is gone"
            yield "warning", what, f"If it won't come back: teams leave-team --as {row['name']} --team {team.name}"
    for member in team.roster():
        if member.active and (lost := roles.undefined_role(member.role, team, config)):
            defined = roles.definition_of(lost, team, config) is not None
            what = f"{member.agent_id} may change nothing, as its role {member.role} "
            what += f"extends {lost}, which " if lost != member.role else ""
            what += "extends itself" if defined else "is defined nowhere"
            remedy = f"Define it: teams define-role {lost} --extends team-member --team {team.name}"
            yield "problem", what, remedy


def _unattended(store: Store, team: Team, fix: bool, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for each client that runs in the background although its team is closed, because it did not end
    in time or somebody watched it. With *fix*, end these clients, unless somebody watches them.
    """
    unattended = sitting.unattended_agents(store, team.name, environ)
    still_running = sitting.end_all_unattended(store, team.name, environ) if fix else unattended
    for name in unattended:
        what = f"the client of {name} runs on in a detached terminal"
        if name in still_running:
            yield "warning", what, f"teams stop-agent {name} --team {team.name} --as human"
        else:
            yield "fixed", what, ""


def _inboxes(store: Store, team: str, fix: bool) -> Iterator[Problem]:
    """Yield a problem for each inbox whose position is beyond the last message, because messages were deleted by hand.
    With *fix*, correct the inbox.
    """
    for inbox, _ in store.scan(team, INBOX, []):
        last_number = store.last(team, MESSAGE)
        if inbox.highest_number() > last_number:
            what = f"{inbox.agent} has read up to msg-{inbox.highest_number()}, and the log ends with msg-{last_number}"
            if fix:
                hold_to_log(store, team, inbox, last_number)
                yield "fixed", what, ""
            else:
                yield "problem", what, "Bring the messages back from a backup; --fix gives their numbers to no other."


def _blockers(by_id: dict[str, Task], team: str) -> Iterator[Problem]:
    """Yield a problem for each task that waits for a missing task or for itself, and for each failed or cancelled task
    that blocks others.
    """

    def update(task: str, options: str) -> str:
        return f"teams update-task {task} {options} --team {team}"

    for task in by_id.values():
        if missing := [key for key in task.waits_for if key not in by_id]:
            remedy = update(task.id, f"--unblock {missing[0]}")
            yield "problem", f"{task.id} waits for {', '.join(missing)}, which there is not", remedy
    in_cycles = _tasks_in_cycles(by_id)
    for key in sorted(in_cycles):
        blocker = next(blocker for blocker in by_id[key].waits_for if blocker in in_cycles)
        yield "problem", f"{key} waits for itself through others", update(key, f"--unblock {blocker}")
    graph = course.Graph(list(by_id.values()))
    for row in agents.failures(graph):
        if waiting := sorted(graph.behind(row["id"]), key=TASK.number_in):
            subject = f"{row['id']} {row['status']}"
            if row["status"] == "failed" and (reason := " ".join(row["reason"].split())[:_LONGEST_REASON]):
                subject += f" ({reason})"
            count = "1 task waits" if len(waiting) == 1 else f"{len(waiting)} tasks wait"
            names = ", ".join(waiting[:_MOST_NAMED]) + (", …" if len(waiting) > _MOST_NAMED else "")
            what = f"{subject}: {count} for it: {names}"
            first = next((key for key in waiting if row["id"] in by_id[key].waits_for), waiting[0])
            again = update(row["id"], "--status pending --reason WHY")
            remedy = f"{again}; or without it: {update(first, '--unblock ' + row['id'])}"
            yield "warning", what, remedy


def _tasks_in_cycles(by_id: dict[str, Task]) -> set[str]:
    """Return the ids of the tasks that wait for themselves through others."""
    if not ordering.circle({key: task.waits_for for key, task in by_id.items()}):  # usual, and found fast
        return set()
    in_cycles = set()
    for start in by_id:
        to_visit, visited = list(by_id[start].waits_for), set[str]()
        while to_visit and start not in in_cycles:
            key = to_visit.pop()
            if key == start:
                in_cycles.add(start)
            elif key not in visited and key in by_id:
                visited.add(key)
                to_visit += by_id[key].waits_for
    return in_cycles


def _expired_claims(store: Store, team: Team, by_id: dict[str, Task], fix: bool) -> Iterator[Problem]:
    for task in by_id.values():
        if reason := leases.why_claim_ended(store, team, task):
            what = f"the claim on {task.id} is over: {reason}"
            if fix:
                leases.release_if_expired(store, team, task.id)
                yield "fixed", what, ""
            else:
                yield "warning", what, "The next look releases it."


_PROBE = "This is a test of the hooks"
_PROMPT = "Answer with one word: ready"
_PATIENCE = 120
_TEAM, _AGENT = "probe", "probe"


def examine_client(
    client: str, root: str, config: Config | None, environ: Mapping[str, str], directory: str, turn: bool
) -> Iterator[Finding]:
    """Test everything that the hooks of the client need. If *turn* is True, also start the client for a turn.

    A finding of the level `good` says that something works.
    """
    profile = profiles.get(client, config)
    program = which(profile.program, path=environ.get("PATH"))
    if program is None:
        yield finding(client, "problem", f"there is no {profile.program} on PATH", "Install it.")
        return
    version = profiles.version_of(program, environ)
    trouble, remedy = profiles.version_trouble(known.get(client), version)
    if trouble:
        yield finding(client, "warning", trouble, remedy)
    else:
        yield finding(client, "good", f"{program}: {version}")
    commands = []
    if known.get(client).home:
        # The first settings file has the hooks.
        of_user = settings_files.of_user(client, environ.get("HOME", "/"), environ)[0]
        of_project = settings_files.of_project(client, directory)[0]
        commands = of_user.hook_commands() + of_project.hook_commands()
        # Hooks that wait for mail do not answer at once.
        commands = [command for command in commands if not command.endswith((HOLD, WAIT))]
    if plugins.is_installed(root, client):
        commands.append(f"teams hook {client}")
        if not plugins.is_current(root, client):
            yield finding(client, "warning", "its plugin is of an older version of teams", f"teams install {client}")
    if not commands:
        what, remedy = "its settings have no hooks of ours", f"teams install {client}"
        if profiles.placeholder_words(profile, "python", [])["hooks"]:  # we start its agents with our hooks
            yield finding(client, "warning", what, f"{remedy} (agents started by teams need it not)")
        else:
            yield finding(client, "problem", what, remedy)
    for command in dict.fromkeys(commands):
        yield _try_command(known.get(client), command, environ)
    if turn:
        yield _try_turn(known.get(client), profile, environ, directory)


def _store_with_mail(top: str) -> FileStore:
    """Make a store below *top* with a team in which the test's agent has mail, and return it."""
    store = FileStore(f"{top}/root")
    joining.spawn_team(store, _TEAM, Caller("lead"))
    joining.join(store, _TEAM, Caller(_AGENT))
    messages.send(store, _TEAM, Caller("lead"), _AGENT, _PROBE)
    return store


def _variables_of_agent(store: FileStore) -> dict[str, str]:
    return {**store.variables, "TEAMS_TEAM": _TEAM, "TEAMS_AGENT_ID": _AGENT}


def _run(
    words: list[str], environ: dict[str, str], input: str, directory: str | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, env=environ, input=input, cwd=directory, capture_output=True, text=True, timeout=_PATIENCE, check=False
    )


def _try_command(client: Client, command: str, environ: Mapping[str, str]) -> Finding:
    """Run the hook *command* in the way in which a client runs it after a tool call. Return a finding that says whether
    the hook shows the agent's mail.
    """
    name_in_command = command.split()[-1]  # each of our hook commands ends with the name of a client
    dialect = known.get(name_in_command).dialect or COMMON
    event = json.dumps({"hook_event_name": dialect.after_tool})
    with TemporaryDirectory() as top:
        variables = {**environments.unnamed(environ), **_variables_of_agent(_store_with_mail(top))}
        done = _run(["sh", "-c", command], variables, event)
    if done.returncode == 0 and _PROBE in done.stdout:
        return finding(client.name, "good", f"answers: {command}")
    why = (done.stderr.strip() or f"exit status {done.returncode}, and nothing said")[-300:]
    return finding(client.name, "problem", f"does not answer: {command}: {why}", f"teams install {client.name}")


def _try_turn(client: Client, profile: profiles.Profile, environ: Mapping[str, str], directory: str) -> Finding:
    """Start the client for a turn with its own settings. Return a finding that says whether a hook of `teams` ran."""
    mode = permissions.mode(profile, "edit")
    with TemporaryDirectory() as top:
        store = _store_with_mail(top)
        values = {"prompt": _PROMPT, "session_id": str(uuid4()), "agent": _AGENT}
        values |= profiles.of_place(store.root, store.variables)
        command = profiles.fill(profile.start, values, {"permissions": mode.words})
        try:
            variables = {**profile.environment(environ, _variables_of_agent(store)), **mode.set}
            done = _run(command, variables, _PROMPT, directory)
        except (OSError, subprocess.TimeoutExpired) as error:
            return finding(client.name, "problem", f"took no turn: {error}", f"Try it: {profile.program}")
        # Each of our hooks notes in this file that the agent is alive.
        has_fired = os.path.exists(f"{store.root}/teams/{_TEAM}/inboxes/{_AGENT}.seen")
    if has_fired:
        return finding(client.name, "good", "a hook fired in a turn of the client")
    why = (done.stderr.strip() or done.stdout.strip())[-300:]
    what = f"no hook fired in a turn of the client (status {done.returncode}): {why}"
    return finding(client.name, "problem", what, client.remedy or f"teams install {client.name}")


_VARIABLES = ("TEAMS_HOME", "XDG_CONFIG_HOME")
"""The variables on which the directory for the teams depends."""


def roots_apart(root: str, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each client whose settings name another directory for the teams than *root*."""
    for client in known.all_clients():
        if not client.home:
            continue
        for file in settings_files.of_user(client.name, environ.get("HOME") or "/", environ):
            for variables in _variables_in(_settings_in(file.path)):
                where = f"{client.name}: {file.path}"
                try:
                    root_of_client = environment.root_directory(None, {**environ, **variables})[0]
                except errors.TeamsError as error:
                    yield finding(where, "warning", error.message, error.hint)
                    continue
                if os.path.realpath(root_of_client) != os.path.realpath(root):
                    what = f"{client.name} keeps its teams in {root_of_client}, and this command in {root}"
                    yield finding(where, "warning", what, f"Say the same in both: TEAMS_HOME={root}")


def _settings_in(path: str) -> Any:
    """Return the document in the settings file at *path*; None if it can't be read."""
    import tomllib

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return tomllib.loads(text) if path.endswith(".toml") else json.loads(json_edits.without_comments(text))
    except (OSError, ValueError):  # another finding reports it
        return None


def _variables_in(settings: Any) -> Iterator[dict[str, str]]:
    """Yield the variables of `teams` that the client sets for its processes, from each part of the settings."""
    parts: list[Any] = []
    if isinstance(settings, dict):
        variables = {key: settings[key] for key in _VARIABLES if isinstance(settings.get(key), str) and settings[key]}
        if variables and not any("{" in value for value in variables.values()):  # the client fills in the braces
            yield variables
        parts = list(settings.values())
    elif isinstance(settings, list):
        parts = settings
    for part in parts:
        yield from _variables_in(part)
