"""Windows: where tmux is there, a session for each team with a window for each agent, to look on and to type in."""

from __future__ import annotations

import json
import os
import subprocess
from shutil import which

from teams_cli import errors
from teams_cli.agents.seats import bindings
from teams_cli.clients import hook_settings
from teams_cli.clients.settings_files import written_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.extensions.terminals.opening import Opened

_MODULE = "teams_cli.extensions.terminals.opening_here"


def open_window(python: str, root: str, team: str, opened: Opened, environ: Mapping[str, str]) -> None:
    """Start the client in a window of its own, which nobody has to look at.

    tmux gives a window the environment of whoever started it first, so that of the client lies in a file until then.

    Raises:
        NotInstalled: There is no tmux.
        Conflict: tmux refused.
    """
    tmux = program(environ)
    order = {"words": opened.words, "environ": opened.environ, "directory": opened.directory}
    path = written_once(bindings.kept(os.path.abspath(root), team, opened.agent, "open"), json.dumps(order).encode())
    window = ["-d", "-n", opened.agent, "-c", opened.directory, *hook_settings.of_module(python, _MODULE), path]
    new = (
        ["new-window", "-t", f"={_session(team)}:"]
        if _has_session(tmux, team)
        else ["new-session", "-s", _session(team)]
    )
    done = subprocess.run([tmux, *new, *window], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        os.remove(path)
        raise errors.Conflict(f"tmux opened no window: {done.stderr.strip()}", "Open the client without --tmux.")


def attach_words(team: str, agent: str, environ: Mapping[str, str]) -> list[str]:
    """The words that show the window of the agent in this terminal; none if it has no window."""
    tmux = found(environ)
    if tmux is None or agent not in _windows(team, environ):
        return []
    show = "switch-client" if environ.get("TMUX") else "attach-session"
    return [tmux, show, "-t", f"={_session(team)}:={agent}"]


def agents_of(team: str, environ: Mapping[str, str]) -> list[str]:
    """The agents of the team that have a window."""
    return sorted(_windows(team, environ))


def close(team: str, agent: str, environ: Mapping[str, str], watched: bool) -> bool:
    """Close the window of the agent, whose client hears of that; one that is *watched* only if that is said. Whether it
    is closed.
    """
    window, lookers = _windows(team, environ).get(agent, ("", ""))
    if window and (watched or lookers in ("", "0")):
        subprocess.run(
            [program(environ), "kill-window", "-t", window], stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        return True
    return not window


def _windows(team: str, environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The windows of the team's session by their names: their ids, and how many look at them."""
    tmux = found(environ)
    if tmux is None:
        return {}
    form = "#{window_name} #{window_id} #{window_active_clients}"
    listed = [tmux, "list-windows", "-t", f"={_session(team)}", "-F", form]
    done = subprocess.run(listed, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    rows = [line.split(" ") for line in done.stdout.splitlines() if line.count(" ") == 2]
    return {name: (window, lookers) for name, window, lookers in rows}


def found(environ: Mapping[str, str]) -> str | None:
    """Where tmux is; None if it is not there."""
    return which("tmux", path=environ.get("PATH"))


def program(environ: Mapping[str, str]) -> str:
    """Where tmux is.

    Raises:
        NotInstalled: It is not there.
    """
    tmux = found(environ)
    if tmux is None:
        raise errors.NotInstalled("tmux is not on PATH", "Install it, or use --detach instead.")
    return tmux


def _has_session(tmux: str, team: str) -> bool:
    words = [tmux, "has-session", "-t", f"={_session(team)}"]
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def _session(team: str) -> str:
    return f"teams-{team}"
