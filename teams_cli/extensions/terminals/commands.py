"""The commands `open` and `attach`, and ending clients that run in the background."""

from __future__ import annotations

from contextlib import contextmanager

from teams_cli import errors
from teams_cli.agents import ending
from teams_cli.agents.seats import sitting
from teams_cli.clients import known
from teams_cli.commands.call import Call, Service
from teams_cli.commands.declaration import Command, argument, in_group, option, switch
from teams_cli.extensions.terminals import detached, opening
from teams_cli.extensions.terminals.opening import Opened, OpenRequest
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.teams import history, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


_OPENING = "extensions.terminals.opening"
_OPEN = """Open a client in this terminal as a member of the team, for this run only.

Your settings stay as they are. Messages wake an idle client. A client that can't be woken otherwise runs in a wrapper,
which wakes it by typing a line when nobody else is typing. Options after `--` are for the client.

Raises:
    InvalidValue: There is no such client.
    NotFound: The client is not installed.
    WrongState: The agent can't be taken over: another client, machine or person uses it.
"""
_ATTACH = """Show the terminal of an agent that was opened with `open --detach`, to watch and to type.

Ctrl-\\ detaches and leaves the client running; in tmux, use the keys of tmux. Several people may watch.

Raises:
    NotFound: The agent has no such terminal on this machine.
"""


def _open(
    call: Call,
    client: str,
    agent_id: str | None,
    wrap: bool,
    resume: str | None,
    detach: bool,
    tmux: bool,
    options: list[str],
) -> Any:
    if resume and (detach or tmux):
        raise errors.WrongUsage("--resume can't be combined with --detach or --tmux", "Leave them out.")
    if resume:
        return _resume(call, client, resume, wrap, options)
    if tmux:
        opening.require_tmux(call.environ)
    request = OpenRequest(client, options, call.directory, _agent(call, agent_id), wrap)
    opened = opening.prepare(call.store, call.team, request, call.config, call.environ)
    if tmux or (detach and opening.tmux_path(call.environ)):
        opening.open_window(call.store.root, call.team, opened, call.environ)
    elif detach:
        detached.start(call.store, call.team, opened)
    if detach:
        return {"agent": opened.agent, "client": client, "team": call.team}
    if tmux:
        return _attach(call, opened.agent)
    return Service(_OPENING, "", {"opened": opened})


def _agent(call: Call, agent_id: str | None) -> str | None:
    """Return the name of the member that the client becomes: the value of `--agent-id` or `--as`. Return None if
    neither names a member; then the client gets a new name.
    """
    _, source = call.sources["agent"]
    has_as_option = source == "flag"  # a name from the environment is that of the member who opens the client
    if call.caller is None or call.caller.is_human or not has_as_option:
        return agent_id
    if agent_id not in (None, call.caller.name):
        raise errors.WrongUsage(
            f"--as {call.caller.name} and --agent-id {agent_id} name two members", "Leave out --as."
        )
    return call.caller.name


def _resume(call: Call, client: str, agent: str, wrap: bool, options: list[str]) -> Service:
    """Return the program that continues the agent's session in this terminal. If `teams` did not start the agent, this
    is the session of the agent's last terminal. Otherwise it is the session that the keeper runs: it is taken over, and
    given back when the client ends.
    """
    runs_detached = bool(_attach_words(call, agent))
    if runs_detached:
        raise errors.WrongState(f"{agent} runs in a detached terminal", f"See: teams attach {agent}")
    was_started_by_teams = ending.current(call.store, call.team, agent) is not None
    terminal = None if was_started_by_teams else sitting.to_reopen(call.store, call.team, agent, client)
    if terminal is not None:
        session = sitting.as_session(terminal)
        request = OpenRequest(client, options, session.directory, session.agent, wrap, session, is_managed=False)
        opened = opening.prepare(call.store, call.team, request, call.config, call.environ)
        return Service(_OPENING, "", {"opened": opened})
    # This refuses an agent that `teams` did not start, and that never sat in a terminal either.
    session = ending.get_current(call.store, call.team, agent)
    sitting.session_to_continue(call.store, call.team, session, client)  # refuses early what can't be taken over
    return Service(_OPENING, "", {"taking": _taken_over(call, client, agent, wrap, options)})


def _attach_words(call: Call, agent: str) -> list[str]:
    """Return the command that shows the agent's client in the background; an empty list if there is none."""
    words = detached.attach_words(call.store, call.team, agent)
    return words or opening.attach_words(call.team, agent, call.environ)


def _attach(call: Call, of: str) -> Any:
    words = _attach_words(call, of)
    if not words:
        name = teams.get_recipient(teams.get(call.store, call.team), of)
        raise errors.NotFound(
            f"{name} has no detached terminal on this machine",
            "Open one: teams open CLIENT --detach --agent-id NAME",
        )
    viewer = call.caller.name if call.caller else HUMAN
    history.note(call.store, call.team, viewer, "terminal attached", agent=of)
    return Service(_OPENING, "", {"attach": words})


@contextmanager
def _taken_over(call: Call, client: str, agent: str, wrap: bool, options: list[str]) -> Iterator[Opened]:
    """For a `with` block, let a person take the place of an agent that `teams` runs. Wait until the agent's turn ends,
    and yield a client in which the person continues the agent's session. The client is ready to start. After the block,
    the agent continues by itself.

    Raises:
        AgentNotFound, WrongState, NotFound: The agent can't be taken over, and continues by itself.
    """
    from teams_cli.agents import interrupting

    current = ending.current(call.store, call.team, agent)
    if current and not current.ended:
        call.say(f"{agent} is at work: it is yours after its turn. Ctrl-C leaves it alone.")
    session = interrupting.take_over(call.store, call.team, call.caller, agent, client, call.environ)
    try:
        request = OpenRequest(client, options, session.directory, session.agent, wrap, session)
        yield opening.prepare(call.store, call.team, request, call.config, call.environ)
    finally:
        interrupting.give_back(call.store, call.team, session, call.caller, call.environ)


def agents_of(store: Store, team: str, environ: Mapping[str, str]) -> list[str]:
    """Return the agents whose clients run in the background of this machine: in detached terminals, or in windows of
    tmux.

    Raises:
        StorageFailed: The directory of terminals can't be read.
    """
    try:
        windows, agents = opening.windows_of(team, environ), set(detached.agents_of(store, team))
    except OSError as error:
        raise disk.failed("look for the detached clients of", team, error) from error
    if windows:  # the team's tmux session may also have windows that are no agents
        team_record = teams.get(store, team)
        agents |= {window for window in windows if team_record.find(window)}
    return sorted(agents)


def end_all(store: Store, team: str, environ: Mapping[str, str]) -> list[str]:
    """End the clients that run in the background on this machine while nobody watches them. Return the agents whose
    clients still run.
    """
    agents = agents_of(store, team, environ)
    return [agent for agent in agents if not _end(store, team, agent, environ, even_if_watched=False)]


def end(store: Store, team: str, agent: str, environ: Mapping[str, str]) -> bool:
    """End the client of the agent, which runs in the background of this machine, even if somebody watches it. Return
    False if no client of the agent runs there.

    Raises:
        Conflict: The client did not end in time.
    """
    if agent not in agents_of(store, team, environ):
        return False
    if not _end(store, team, agent, environ, even_if_watched=True):
        raise errors.Conflict(f"the client of {agent} did not end", f"See: teams attach {agent}")
    return True


def _end(store: Store, team: str, agent: str, environ: Mapping[str, str], even_if_watched: bool) -> bool:
    """End the agent's client, and record that it no longer has a terminal. Return whether it ended."""
    if detached.is_there(store, team, agent):
        has_ended = detached.end_client(store, team, agent, even_if_watched)
    else:
        has_ended = opening.close_window(team, agent, environ, even_if_watched)
    if has_ended:
        sitting.stand_up(store, team, agent, "its terminal was closed")
    return has_ended


def _opened(document: dict[str, Any]) -> list[str]:
    return [f"{document['agent']}: opened"]


COMMANDS = in_group(
    "Connect",
    Command(
        "open",
        _open,
        argument("CLIENT", "The client.", name="client", choices=known.installable()),
        option("--agent-id", "The agent's name, instead of the next alias.", metavar="AGENT"),
        switch("--wrap", "Use the wrapper even if the client can be woken without it."),
        switch("--detach", "Run the client in the background, in tmux if that is installed; `teams attach` shows it."),
        switch("--tmux", "Open the client in a new tmux window, in the team's session, and show it."),
        option("--resume", "Take over this agent until you leave the client.", metavar="AGENT"),
        argument("OPTIONS", "Options for the client, after `--`.", name="options", required=False, many=True),
        doc=_OPEN,
        changes=False,
        words=_opened,
        traits="for_person at_shell",
        example="open claude -- --model opus",
    ),
    Command(
        "attach",
        _attach,
        argument("AGENT", "The agent.", name="of"),
        doc=_ATTACH,
        changes=False,
        words=_opened,
        traits="at_shell",
        example="attach bob",
    ),
)
