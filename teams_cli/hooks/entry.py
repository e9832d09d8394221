"""`teams hook CLIENT`, which a client runs at every tool call, so that it imports nothing before there may be news.

Without news it only looks at some directories, in `quiet`. If anything fails, the client goes on: the exit status is 0
and standard output is empty. Wrong usage exits with 1; a 2 would stop the client.
"""

import os
import sys
import time

from teams_cli import environment
from teams_cli.agents.seats import bindings
from teams_cli.hooks import quiet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.agents.seats.bindings import Binding

USAGE = (
    "usage: teams hook CLIENT [--wait | --ask | --hold] [--root DIR] [--store STORE] [--team TEAM] [--as AGENT],"
    " with its JSON on stdin; clients: {clients}\n"
)
WRONG_USAGE = 1
REFUSED = 2
"""The exit status at which the client does not use the tool."""
_CLIENTS = f"{os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}/clients/known"
_FLAGS = {"--root": "root", "--store": "store", "--team": "team", "-t": "team", "--as": "agent"}


class Standpoint:
    """The root, store, team and agent of a hook. All but the root may be empty."""

    def __init__(self, root: str, store: str, team: str, binding: "Binding | None", named: str) -> None:
        self.root = root
        self.store = store
        self.team = binding.team if binding and team in ("", binding.team) else team
        self.agent = binding.agent if binding and binding.team == self.team else named
        self.token = binding.token if binding and binding.agent == self.agent else ""

    @property
    def is_on_files(self) -> bool:
        return self.store in ("", "files")

    @property
    def has_team(self) -> bool:
        """Whether the team is named, and its directory exists."""
        return _is_plain(self.team) and (not self.is_on_files or os.path.isdir(f"{self.root}/teams/{self.team}"))

    @property
    def has_terminal(self) -> bool:
        """Whether the agent is a client in a terminal of this machine."""
        return os.path.exists(bindings.terminal_file(self.root, self.team, self.agent, "json"))


def main(words: list[str], environ: "Mapping[str, str]" = os.environ) -> int:
    """Answer a client's hook, and return the exit status."""
    flags = _flags(words)
    if flags is None:
        from teams_cli.clients import known

        sys.stderr.write(USAGE.format(clients=", ".join(known.with_hooks())))
        return WRONG_USAGE
    try:
        given = _standard_input()
        if (client := _caller(flags["client"], given)) != flags["client"]:
            flags["client"] = client
            flags["hold"] = ""
            if flags["wait"]:  # which would hold it up: of these clients none lets a hook wait beside it
                return 0
        standpoint = _standpoint(flags, environ, given)
        parent = _parent(flags["client"], standpoint, environ)
        if _is_another(standpoint, environ) or (parent and (flags["wait"] or flags["ask"])):
            return REFUSED if flags["ask"] else 0
        if parent:
            _answer_below(flags["client"], parent, standpoint, given, environ, bool(flags["hold"]))
            return 0
        if flags["wait"]:
            from teams_cli.hooks import waiting

            return waiting.wait(flags["client"], standpoint, environ)
        if flags["ask"]:
            from teams_cli.hooks import arrival

            return arrival.ask(flags["client"], given, standpoint, environ)
        if quiet.is_of_task_list(given):
            return _mirror(standpoint, given, environ)
        _answer(flags["client"], standpoint, given, environ, bool(flags["hold"]))
    except Exception as error:
        _log(error, flags, environ)
        if flags["ask"]:
            sys.stderr.write(f"nobody could be asked: {error}\n")
            return REFUSED
    return 0


def _is_another(standpoint: Standpoint, environ: "Mapping[str, str]") -> bool:
    """Whether a held agent calls a hook under another name, or for another root or store. Such a call is ignored."""
    held = environment.holder(environ)
    return held is not None and (
        held.agent not in ("", standpoint.agent)
        or held.team not in ("", standpoint.team)
        or held.is_elsewhere(standpoint.root, standpoint.store, environ)
    )


def _parent(client: str, standpoint: Standpoint, environ: "Mapping[str, str]") -> "Binding | None":
    """Return the member below whose client this hook's client was started; None if there is none.

    The processes above show it. If they are gone: a client that takes a single turn under the name of an agent whose
    own client runs is taken for a child of that agent.
    """
    pid = bindings.nearest_client(os.getppid())
    parent = bindings.parent_of(standpoint.root, pid, environ)
    own = bindings.Binding(standpoint.team, standpoint.agent, standpoint.token)
    if parent or not own.agent or not bindings.has_another_client(standpoint.root, own, pid):
        return parent
    from teams_cli.clients import known

    seat = known.get(client).seat
    return (
        own if seat and seat.is_headless([word.decode() for word in environment.of_process(pid, "cmdline")]) else None
    )


def _answer_below(
    client: str, parent: "Binding", standpoint: Standpoint, given: bytes, environ: "Mapping[str, str]", holds: bool
) -> None:
    """Answer the hook of a client that was started below a member's client. It is no member itself; its subagents are
    children of that member.
    """
    standpoint.team, standpoint.agent, standpoint.token = parent.team, parent.agent, parent.token
    if standpoint.has_team and b'"agent_id"' in given and not environ.get("TEAMS_SHADOW"):
        from teams_cli.hooks import arrival

        arrival.tell_child(client, given, standpoint, environ, holds)


def _mirror(standpoint: Standpoint, given: bytes, environ: "Mapping[str, str]") -> int:
    """Mirror the client's own task list, and return the exit status, which refuses what the team refuses."""
    if environ.get("TEAMS_SHADOW") or not (standpoint.has_team and _is_plain(standpoint.agent)):
        return 0
    from teams_cli.hooks import mirroring

    why = mirroring.mirror(given, standpoint, environ)
    sys.stderr.write(why)
    return REFUSED if why else 0


def _answer(client: str, standpoint: Standpoint, given: bytes, environ: "Mapping[str, str]", holds: bool) -> None:
    if environ.get("TEAMS_SHADOW"):
        return
    if _arrives(standpoint, given, environ):
        from teams_cli.hooks import arrival

        arrival.seat(client, standpoint, given, environ)
    if not (standpoint.has_team and _is_plain(standpoint.agent)):
        return
    if quiet.may_write(given):
        from teams_cli.hooks import guard

        if guard.answer(client, given, standpoint, environ):
            return
    if quiet.is_before(given):
        if b'"agent_id"' in given and b'"mcp__' in given:
            from teams_cli.hooks import arrival

            arrival.tell_child(client, given, standpoint, environ)
        return
    if b'"ModelCall"' in given:
        from teams_cli.hooks import arrival

        arrival.tell(given, standpoint, environ)
        return
    if b'"agent_id"' in given:
        from teams_cli.hooks import arrival

        arrival.tell_child(client, given, standpoint, environ, holds)
    if not quiet.is_quiet(standpoint, given):
        from teams_cli.hooks import news

        news.tell(client, given, standpoint, environ, holds)
    if b'"tool_input"' in given:
        from teams_cli.hooks import guard

        if since := guard.note(standpoint, given):
            from teams_cli.hooks import guard

            guard.look(standpoint, since, environ)


def _arrives(standpoint: Standpoint, given: bytes, environ: "Mapping[str, str]") -> bool:
    """Whether a client with a team begins. A client that got its team after its begin joins when the person next asks
    it for something.
    """
    begins = b'"SessionStart"' in given or (quiet.is_prompt(given) and not standpoint.has_terminal)
    return (
        begins
        and standpoint.has_team
        and bool(standpoint.agent or environ.get("TEAMS_TEAM") or bindings.team_here(standpoint.root, os.getcwd()))
    )


def _flags(words: list[str]) -> "dict[str, str] | None":
    """Return the client and the flags; None if they are wrong."""
    flags = {"root": "", "store": "", "team": "", "agent": "", "client": "", "wait": "", "ask": "", "hold": ""}
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        if flag in _FLAGS:
            flags[_FLAGS[flag]] = value if equals else next(rest, "")
        elif not flags["client"] and word.isalnum() and os.path.exists(f"{_CLIENTS}/{word}.py"):
            flags["client"] = word
        elif word in ("--wait", "--ask", "--hold"):
            flags[word[2:]] = word
        else:
            return None
    return flags if flags["client"] else None


def _standard_input() -> bytes:
    """Read all that the client writes, since a pipe that nobody reads might break."""
    parts = []
    while part := os.read(0, 1 << 20):
        parts.append(part)
    given = b"".join(parts)
    if b"\\u" not in given and b"\xed" not in given:
        return given
    from teams_cli import text

    return text.whole_characters(given)


def _standpoint(flags: "dict[str, str]", environ: "Mapping[str, str]", given: bytes) -> Standpoint:
    """Return whom the hook is for. A binding of the terminal counts before an environment that a shared daemon
    inherited.
    """
    root = environment.root_directory(flags["root"], environ)[0]
    store = _store(flags["store"], root, environ)
    named = environment.look_up("agent", flags["agent"], environ)[0]
    binding = None if flags["agent"] else _binding(flags["client"], root, given, bool(named))
    if (
        not binding
        and not flags["agent"]
        and flags["client"] == "codex"
        and bindings.is_below(os.getppid(), bindings.DAEMON)
    ):
        named = ""  # whoever started the daemon
    team = environment.look_up("team", flags["team"], environ)[0] or (
        "" if binding else bindings.team_here(root, os.getcwd())
    )
    if not team and not binding and store in ("", "files"):
        names = [name for name in quiet.names(f"{root}/teams") if _is_plain(name)]
        team = environment.only_team(names, lambda name: _is_open(f"{root}/teams/{name}/team.json"))
    return Standpoint(root, store, team, binding, named)


def _caller(client: str, given: bytes) -> str:
    """Return the client that calls, by its input: other clients also run the hooks of a plugin for Claude Code."""
    if client != "claude" or b'"timestamp"' not in given:
        return client
    import json

    event = json.loads(given)
    if "timestamp" not in event:
        return client
    return "qwen" if "permission_mode" in event else "copilot"


def _binding(client: str, root: str, given: bytes, is_named: bool) -> "Binding | None":
    """Return the binding of the terminal in which the hook runs. Codex has one daemon for all terminals, so the thread
    names it.
    """
    if client == "codex":
        session_id = given.partition(b'"session_id"')[2][:200].partition(b'"')[2].partition(b'"')[0]
        return bindings.of_thread(root, session_id.decode("ascii", "replace"))
    return None if is_named else bindings.of_nearest_client(root, os.getppid())


def _store(said: str, root: str, environ: "Mapping[str, str]") -> str:
    store = environment.store_address(said, environ, "")[0]
    if store:
        return store
    try:
        with open(f"{root}/config.json", "rb") as file:
            data = file.read()
    except OSError:
        return ""
    if b'"store"' not in data:
        return ""
    import json

    return str(json.loads(data).get("store") or "")


def _is_plain(name: str) -> bool:
    return name.isascii() and name.replace("-", "").replace("_", "").isalnum()


def _is_open(path: str) -> bool:
    """Whether the team of that file is not closed. A damaged team counts as open, and is reported later."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return False
    if b'"closed"' not in data:
        return True
    import json

    try:
        return bool(json.loads(data)["state"] != "closed")
    except (ValueError, LookupError, TypeError):
        return True


def _log(error: Exception, flags: "dict[str, str]", environ: "Mapping[str, str]") -> None:
    """Write a failure into the root's logs, since the hook shows it to nobody."""
    try:
        from traceback import format_exception

        root = environment.root_directory(flags["root"], environ)[0]
        path = f"{root}/logs/hook.log"
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        large = os.path.exists(path) and os.path.getsize(path) > 1 << 20
        with open(path, "w" if large else "a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} hook {flags['client']}\n")
            log.write("".join(format_exception(error)))
    except Exception:
        return
