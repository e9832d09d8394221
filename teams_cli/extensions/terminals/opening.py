"""Opens a client in a terminal as a member of the team: in this terminal, or in a window of tmux."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from shutil import which
from typing import Any, NamedTuple

from teams_cli import errors
from teams_cli.agents import isolation
from teams_cli.agents.seats import bindings, sitting, terminals_directory
from teams_cli.agents.sessions import Session
from teams_cli.clients import environments, known, own_entries, plugins, profiles, settings_files
from teams_cli.clients.settings_files import write_once
from teams_cli.membership import joining
from teams_cli.processes import leave
from teams_cli.store.contract import Store
from teams_cli.teams.permission import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.clients.contract import Client
    from teams_cli.commands.call import Call
    from teams_cli.teams.config import Config


class OpenRequest(NamedTuple):
    """A request to open a client: the client's *options*, the directory, and the name of the member (*agent*); None for
    a new name. If *wrap* is True, the client runs in our wrapper in any case. If *session* is given, the client
    continues that session.
    """

    client: str
    options: list[str]
    directory: str
    agent: str | None
    wrap: bool = False
    session: Session | None = None
    is_managed: bool = True
    """Whether `teams` runs the agent of the *session*. It has no effect if there is no session."""


class Opened(NamedTuple):
    """A client that is ready to start: its environment, its directory, and its *order*. The order describes the client
    to our wrapper, or to a detached terminal.
    """

    order: dict[str, Any]
    environ: dict[str, str]
    directory: str
    agent: str

    @property
    def words(self) -> list[str]:
        """The command that starts the client in this terminal. If the client can be woken only by typing, the command
        starts our wrapper, which runs the client.
        """
        if not self.order["types"]:
            return list(self.order["words"])
        wrapper = own_entries.of_module(sys.executable, "teams_cli.extensions.terminals.wrapper")
        return [*wrapper, json.dumps(self.order)]


def prepare(store: Store, team: str, request: OpenRequest, config: Config | None, environ: Mapping[str, str]) -> Opened:
    """Make the client a member of the team. Return the client, ready to start.

    Raises:
        InvalidValue: There is no such client, or it has no terminal mode.
        NotFound: The client is not installed.
        NotAllowed: The client may not join.
    """
    client = known.get(request.client)
    if client.seat is None:
        raise known.unknown(client.name)
    profile = profiles.get(client.name, config)
    program = profile.start[0]
    if which(program, path=environ.get("PATH")) is None:
        raise errors.NotFound(f"{program} is not on PATH", "Install it.")
    agent, identity_variables = _join(store, team, request)
    hook_options, hook_variables = _hooks(store, client, request.directory, environ)
    words = [program, *client.terminal_words(environ), *hook_options]
    session_variables: dict[str, str] = {}
    if session := request.session:
        session_variables |= session.variables or {}
        if session.port_base:
            session_variables[isolation.VARIABLE] = str(session.port_base)
        words += profiles.of_model(profile, session.model)
        words += profiles.fill(list(client.seat.resume), {"session_id": session.session_id})
    words += request.options
    order = {
        "words": words,
        "root": os.path.abspath(store.root),
        "team": team,
        "agent": agent,
        "hook": own_entries.program(sys.executable, "hook", client.name),
        "titles": client.seat.titles,
        "types": request.wrap or not client.seat.ways,  # whether our wrapper wakes the client by typing
    }
    variables = {
        **environments.clean(environ, profile.strip, profile.keep),
        **client.seat.set,
        **hook_variables,
        **session_variables,
        **store.variables,
        **identity_variables,
        "TEAMS_TEAM": team,
    }
    return Opened(order, variables, request.directory, agent)


def _join(store: Store, team: str, request: OpenRequest) -> tuple[str, dict[str, str]]:
    """Make the client a member of the team. Return the member's name, and variables with its name, role and token."""
    caller = Caller(request.agent) if request.agent else None
    if caller and request.session and request.is_managed:  # only the keeper knows the present token
        caller.token = joining.renew_token(store, team, caller.name)
    elif caller:  # the agent's earlier terminal on this machine may have left its token
        caller.token = str(sitting.secrets_of(store, team, caller.name).get("token") or "")
    member, new_token = joining.join(store, team, caller)
    variables = {"TEAMS_AGENT_ID": member.agent_id, "TEAMS_AGENT_TYPE": member.agent_type or member.role}
    earlier_token = caller.token if caller else ""
    if token := new_token or earlier_token:
        variables["TEAMS_TOKEN"] = token
    return member.agent_id, variables


def _hooks(
    store: Store, client: Client, directory: str, environ: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return the options and variables that give the client our hooks, by which it learns of messages. Both are empty
    if the client has our hooks already, by its settings or by a plugin.
    """
    files = []
    if client.home:  # of each place, the first file has the hooks
        files = settings_files.of_user(client.name, environ.get("HOME") or "/", environ)[:1]
        files += settings_files.of_project(client.name, directory)[:1]
    if plugins.is_installed(store.root, client.name) or any(file.hook_commands() for file in files):
        return [], {}
    return client.once(sys.executable, f"{terminals_directory(store.root)}/settings", environ)


_WINDOW_VARIABLES = ("TERM", "TMUX", "TMUX_PANE", "COLORTERM")


def main() -> None:
    """Replace this process with a client. The first argument is the path of a file that describes the client; the file
    is removed.
    """
    with open(sys.argv[1], "rb") as file:
        order = json.load(file)
    os.remove(sys.argv[1])
    window_variables = {name: os.environ[name] for name in _WINDOW_VARIABLES if name in os.environ}
    os.chdir(order["directory"])
    os.execvpe(order["words"][0], order["words"], {**order["environ"], **window_variables})


def run(call: Call, settings: Mapping[str, Any]) -> int:
    """Start a client in this terminal. *settings* has one of three keys: `opened` is a client; `taking` is a `with`
    block that yields a client; `attach` is the command that shows a client. Return the exit status of the client of
    `taking`. The other two replace this process.

    Raises:
        WrongUsage: Standard input or output is not a terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise errors.WrongUsage("a client needs a terminal", "Run this in one, or start an agent: teams run-agent …")
    if words := settings.get("attach"):
        os.execv(words[0], words)
    if taking := settings.get("taking"):
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, leave)
        with taking as taken_over:
            return _run_client(taken_over)
    opened: Opened = settings["opened"]
    os.chdir(opened.directory)
    os.execvpe(opened.words[0], opened.words, opened.environ)


def _run_client(opened: Opened) -> int:
    """Run the client until it ends, and return its exit status. Keys such as Ctrl-C reach the client directly; signals
    that are sent to this process are passed on. If the client is suspended, for example by Ctrl-Z, this process
    suspends itself, too.
    """
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)  # if this process ignored the signal, the client would ignore it, too
    client = subprocess.Popen(opened.words, env=opened.environ, cwd=opened.directory)
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda number, _: client.send_signal(number))
    while True:
        _, status = os.waitpid(client.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            code = client.returncode = os.waitstatus_to_exitcode(status)  # so that `Popen` does not wait for it again
            return code if code >= 0 else 128 - code  # like a shell after a signal, whose number is negative here
        os.kill(os.getpid(), signal.SIGSTOP)
        client.send_signal(signal.SIGCONT)


_MODULE = "teams_cli.extensions.terminals.opening"


def open_window(root: str, team: str, opened: Opened, environ: Mapping[str, str]) -> None:
    """Start the client in the background, in a new window of tmux.

    A window of tmux gets the environment of the tmux server, not of this process. Therefore the environment is written
    to a file, which is removed when the client starts.
    """
    program = require_tmux(environ)
    order = {"words": opened.words, "environ": opened.environ, "directory": opened.directory}
    path = bindings.terminal_file(os.path.abspath(root), team, opened.agent, "open")
    order_file = write_once(path, json.dumps(order).encode())
    session = _session(team)
    if _tmux(program, "has-session", "-t", f"={session}").returncode == 0:
        words = ["new-window", "-t", f"={session}:"]
    else:
        words = ["new-session", "-s", session]
    words += ["-d", "-n", opened.agent, "-c", opened.directory]
    done = _tmux(program, *words, *own_entries.of_module(sys.executable, _MODULE), order_file)
    if done.returncode != 0:
        os.remove(order_file)
        raise errors.Conflict(f"tmux opened no window: {done.stderr.strip()}", "Open the client without --tmux.")


def attach_words(team: str, agent: str, environ: Mapping[str, str]) -> list[str]:
    """Return the command that shows the agent's window of tmux in this terminal; an empty list if the agent has no
    window.
    """
    program = tmux_path(environ)
    if program is None or agent not in windows_of(team, environ):
        return []
    show = "switch-client" if environ.get("TMUX") else "attach-session"
    return [program, show, "-t", f"={_session(team)}:={agent}"]


def close_window(team: str, agent: str, environ: Mapping[str, str], even_if_watched: bool) -> bool:
    """Close the agent's window, and return whether the agent has no window any more. If somebody watches the window,
    close it only if *even_if_watched* is True.
    """
    windows = windows_of(team, environ)
    if agent not in windows:
        return True
    window, viewers = windows[agent]
    is_watched = viewers not in ("", "0")  # an old tmux gives no number
    if is_watched and not even_if_watched:
        return False
    _tmux(require_tmux(environ), "kill-window", "-t", window)
    return True


def windows_of(team: str, environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the windows of the team's session of tmux: for each name of a window, its id and the number of its
    viewers, both as strings. A window that `teams` opened has the name of its agent.
    """
    program = tmux_path(environ)
    if program is None:
        return {}
    columns = "#{window_name} #{window_id} #{window_active_clients}"
    listing = _tmux(program, "list-windows", "-t", f"={_session(team)}", "-F", columns).stdout
    # A window whose name has blanks is no agent's.
    rows = [line.split(" ") for line in listing.splitlines() if line.count(" ") == 2]
    return {name: (window, viewers) for name, window, viewers in rows}


def tmux_path(environ: Mapping[str, str]) -> str | None:
    """Return the path of tmux, or None if it is not installed."""
    return which("tmux", path=environ.get("PATH"))


def require_tmux(environ: Mapping[str, str]) -> str:
    """Return the path of tmux.

    Raises:
        NotInstalled: tmux is not installed.
    """
    path = tmux_path(environ)
    if path is None:
        raise errors.NotInstalled("tmux is not on PATH", "Install it, or use --detach instead.")
    return path


def _tmux(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def _session(team: str) -> str:
    return f"teams-{team}"


if __name__ == "__main__":
    main()
