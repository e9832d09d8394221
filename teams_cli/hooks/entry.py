"""The command `teams hook CLIENT`. A client runs it at every tool call, so it imports nothing until there may be news.

Without news, the command only looks at some directories, in `quiet`. If anything fails, the client goes on: the exit
status is 0, and standard output is empty. Wrong usage exits with 1; the exit status 2 would stop the client.
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
_MODULES_OF_CLIENTS = f"{os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}/clients/known"


class Standpoint:
    """The agent for which a hook acts: its name and token, its team, and the store and root of this team. Each of these
    but the root may be "".

    *binding* is the member that sits at the terminal. If this is a member of *team*, or if *team* is "", the hook acts
    for this member. Otherwise the hook acts for *named*, the agent named in an option or in the environment.
    """

    def __init__(self, root: str, store: str, team: str, binding: "Binding | None", named: str) -> None:
        self.root = root
        self.store = store
        if binding and team in ("", binding.team):
            self.team, self.agent, self.token = binding.team, binding.agent, binding.token
        else:
            self.team, self.agent, self.token = team, named, ""

    def acting_for(self, binding: "Binding") -> "Standpoint":
        """Return the standpoint for the member *binding*, on the same store."""
        return Standpoint(self.root, self.store, binding.team, binding, "")

    @property
    def is_on_files(self) -> bool:
        return self.store in ("", "files")

    @property
    def has_team(self) -> bool:
        """Whether a team is named and, if teams are stored as files, its directory exists."""
        return _is_plain(self.team) and (not self.is_on_files or os.path.isdir(f"{self.root}/teams/{self.team}"))

    @property
    def has_team_and_agent(self) -> bool:
        return self.has_team and _is_plain(self.agent)

    @property
    def has_terminal(self) -> bool:
        """Whether the client of the agent sits in a terminal of this machine."""
        return os.path.exists(bindings.terminal_file(self.root, self.team, self.agent, "json"))


def main(words: list[str], environ: "Mapping[str, str]" = os.environ) -> int:
    """Answer a client's hook, and return the exit status."""
    flags = _flags(words)
    if flags is None:
        from teams_cli.clients import known

        sys.stderr.write(USAGE.format(clients=", ".join(known.with_hooks())))
        return WRONG_USAGE
    try:
        return _answer(flags, environ)
    except Exception as error:
        _log(error, flags, environ)
        if flags["ask"]:
            sys.stderr.write(f"nobody could be asked: {error}\n")
            return REFUSED
        return 0


def _answer(flags: "dict[str, str]", environ: "Mapping[str, str]") -> int:
    """Read the event of the hook, answer it, and return the exit status.

    With `--ask`, the client asks whether it may use a tool. With `--wait`, the hook is the process that wakes the idle
    client. Without these flags, the client reports an event, and the answer may show news to its agent.

    The hook is ignored if it is not for a member or for a subagent of its client. With `--ask`, the tool is refused in
    this case.
    """
    raw_event = _standard_input()
    client = _calling_client(flags["client"], raw_event)
    if client != flags["client"]:
        flags["client"] = client
        flags["hold"] = ""  # the other client does not wait long for this hook
        if flags["wait"]:  # only Claude Code runs a hook in the background; this client would stop until it ends
            return 0
    status_if_ignored = REFUSED if flags["ask"] else 0
    standpoint = _standpoint(flags, environ, raw_event)
    if _is_for_another_agent(standpoint, environ):
        return status_if_ignored
    parent = _parent(client, standpoint, environ)
    if parent and (flags["ask"] or flags["wait"]):  # a client below a member's client is no member
        return status_if_ignored
    if flags["wait"]:
        from teams_cli.hooks import waiting

        return waiting.wait(client, standpoint, environ)
    if flags["ask"]:
        from teams_cli.hooks import arrival

        return arrival.ask(client, raw_event, standpoint, environ)
    if environ.get("TEAMS_SHADOW"):  # a copy of the agent's session, which answers a question
        return 0
    if parent:  # its subagents are members: children of the parent
        standpoint = standpoint.acting_for(parent)
        if standpoint.has_team and quiet.is_of_subagent(raw_event):
            from teams_cli.hooks import arrival

            arrival.tell_child(client, raw_event, standpoint, environ, bool(flags["hold"]))
    elif quiet.is_of_task_list(raw_event):
        if standpoint.has_team_and_agent:
            from teams_cli.hooks import mirroring

            why_refused = mirroring.mirror(raw_event, standpoint, environ)
            sys.stderr.write(why_refused)
            return REFUSED if why_refused else 0
    else:
        _answer_member(client, standpoint, raw_event, environ, bool(flags["hold"]))
    return 0


def _is_for_another_agent(standpoint: Standpoint, environ: "Mapping[str, str]") -> bool:
    """Whether the hook was called by an agent with a permission level, but for another agent, team, root or store than
    its own.
    """
    held = environment.holder(environ)
    return held is not None and (
        held.agent not in ("", standpoint.agent)
        or held.team not in ("", standpoint.team)
        or held.is_elsewhere(standpoint.root, standpoint.store, environ)
    )


def _parent(client: str, standpoint: Standpoint, environ: "Mapping[str, str]") -> "Binding | None":
    """Return the member whose client started the client of this hook; None if no member's client did.

    The member is found by the processes above the hook, but some of these may have ended. Therefore a client that takes
    a single turn also counts as started by the agent that its environment names, if this agent has another running
    client.
    """
    pid = bindings.nearest_client(os.getppid())
    parent = bindings.parent_of(standpoint.root, pid, environ)
    if parent or not standpoint.agent:
        return parent
    named_agent = bindings.Binding(standpoint.team, standpoint.agent, standpoint.token)
    if not bindings.has_another_client(standpoint.root, named_agent, pid):
        return None
    from teams_cli.clients import known

    seat = known.get(client).seat
    command_line = [word.decode() for word in environment.of_process(pid, "cmdline")]
    return named_agent if seat and seat.is_headless(command_line) else None


def _answer_member(
    client: str, standpoint: Standpoint, raw_event: bytes, environ: "Mapping[str, str]", holds: bool
) -> None:
    """Answer the hook of a client that is a member or may become one now, or the hook of a subagent inside it. *holds*
    says that the client waits longer than usual for this hook.
    """
    if _is_arrival(standpoint, raw_event, environ):
        from teams_cli.hooks import arrival

        standpoint = arrival.seat(client, standpoint, raw_event, environ)
    if not standpoint.has_team_and_agent:
        return
    if quiet.may_write(raw_event):
        from teams_cli.hooks import guard

        if guard.answer(client, raw_event, standpoint, environ):  # a hook can print only one answer
            return
    if quiet.is_before_tool(raw_event):
        if quiet.is_of_subagent(raw_event) and b'"mcp__' in raw_event:  # our server will ask who made the call
            from teams_cli.hooks import arrival

            arrival.tell_child(client, raw_event, standpoint, environ)
    elif b'"ModelCall"' in raw_event:  # an event of our plugin of OpenCode, before each call of the model
        from teams_cli.hooks import arrival

        arrival.tell(raw_event, standpoint, environ)
    else:
        _answer_other_event(client, standpoint, raw_event, environ, holds)


def _answer_other_event(
    client: str, standpoint: Standpoint, raw_event: bytes, environ: "Mapping[str, str]", holds: bool
) -> None:
    """Answer a hook that comes neither before the use of a tool nor before a call of the model: with the news for the
    member. Report a member that repeats its tool calls.
    """
    if quiet.is_of_subagent(raw_event):
        from teams_cli.hooks import arrival

        arrival.tell_child(client, raw_event, standpoint, environ, holds)
    if not quiet.is_quiet(standpoint, raw_event):
        from teams_cli.hooks import news

        news.tell(client, raw_event, standpoint, environ, holds)
    if b'"tool_input"' in raw_event:  # the event reports tool calls
        from teams_cli.hooks import guard

        if repeating_since := guard.note_calls(standpoint, raw_event):
            guard.report_loop(standpoint, repeating_since, environ)


def _is_arrival(standpoint: Standpoint, raw_event: bytes, environ: "Mapping[str, str]") -> bool:
    """Return whether the client may join its team now. It may join at its start. If its agent has no terminal yet, for
    example because there was no team at its start, it may also join at a prompt.
    """
    may_begin = b'"SessionStart"' in raw_event or (quiet.is_prompt(raw_event) and not standpoint.has_terminal)
    if not may_begin or not standpoint.has_team:
        return False
    # Something must name the agent or the team. That there is only one team is no reason to join it.
    return bool(standpoint.agent or environ.get("TEAMS_TEAM") or bindings.team_here(standpoint.root, os.getcwd()))


def _flags(words: list[str]) -> "dict[str, str] | None":
    """Parse the command line into a dictionary: the name of the client under `client`, and the value of each option
    under the option's name, "" if the option is not given. Return None if the *words* are not valid.
    """
    flags = {"root": "", "store": "", "team": "", "agent": "", "client": "", "wait": "", "ask": "", "hold": ""}
    remaining = iter(words)
    for word in remaining:
        flag, equals, value = word.partition("=")
        if flag in environment.FLAGS:
            flags[environment.FLAGS[flag]] = value if equals else next(remaining, "")
        elif not flags["client"] and word.isalnum() and os.path.exists(f"{_MODULES_OF_CLIENTS}/{word}.py"):
            flags["client"] = word
        elif word in ("--wait", "--ask", "--hold"):
            flags[word[2:]] = word
        else:
            return None
    return flags if flags["client"] else None


def _standard_input() -> bytes:
    """Return all that the client writes to the hook. The client may fail if the hook does not read all of it."""
    parts = []
    while part := os.read(0, 1 << 20):
        parts.append(part)
    data = b"".join(parts)
    if b"\\u" not in data and b"\xed" not in data:  # half of a character is written as \u… or begins with this byte
        return data
    from teams_cli import text

    return text.whole_characters(data)


def _standpoint(flags: "dict[str, str]", environ: "Mapping[str, str]", raw_event: bytes) -> Standpoint:
    """Return the agent and the team for which the hook acts: the member at the terminal or, if there is none, the agent
    that the environment names. The environment may be that of a daemon that serves several agents.
    """
    root = environment.root_directory(flags["root"], environ)[0]
    store = _store_address(flags["store"], root, environ)
    named = environment.look_up("agent", flags["agent"], environ)[0]
    binding = None
    if flags["client"] == "codex" and not flags["agent"]:
        # Its daemon serves all terminals, so the thread shows the member: the text between the next two quotes.
        session_id = raw_event.partition(b'"session_id"')[2][:200].partition(b'"')[2].partition(b'"')[0]
        binding = bindings.of_thread(root, session_id.decode("ascii", "replace"))
        if not binding and bindings.is_below(os.getppid(), bindings.DAEMON):
            named = ""  # the environment names whoever started the daemon
    elif not named:  # elsewhere the processes above the hook show the member
        binding = bindings.of_nearest_client(root, os.getppid())
    team = environment.look_up("team", flags["team"], environ)[0]
    if not team and not binding:
        team = bindings.team_here(root, os.getcwd())
        if not team and store in ("", "files"):  # the teams of a database are not looked at in every hook
            names = [name for name in quiet.names(f"{root}/teams") if _is_plain(name)]
            team = environment.only_team(names, lambda name: _is_team_open(f"{root}/teams/{name}/team.json"))
    return Standpoint(root, store, team, binding, named)


def _calling_client(client: str, raw_event: bytes) -> str:
    """Return the client that really calls the hook of *client*. Hooks that a plugin has for Claude Code are also run by
    two other clients, whose events have a timestamp.
    """
    if client != "claude" or b'"timestamp"' not in raw_event:
        return client
    import json

    event = json.loads(raw_event)
    if "timestamp" not in event:
        return client
    return "qwen" if "permission_mode" in event else "copilot"


def _store_address(flag: str, root: str, environ: "Mapping[str, str]") -> str:
    """Return the address of the store from the option *flag*, the environment or `config.json`, in this order; "" if
    none of them names a store.
    """
    address = environment.store_address(flag, environ, "")[0]
    if address:
        return address
    try:
        with open(f"{root}/config.json", "rb") as file:
            data = file.read()
    except OSError:
        return ""
    if b'"store"' not in data:  # usual, and found without parsing JSON
        return ""
    import json

    return str(json.loads(data).get("store") or "")


def _is_plain(name: str) -> bool:
    """Whether the name is not empty, and has only characters that are safe in a path."""
    return name.isascii() and name.replace("-", "").replace("_", "").isalnum()


def _is_team_open(path: str) -> bool:
    """Whether *path* is the file of a team that is not closed. A damaged team counts as open, and is reported later."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return False
    if b'"closed"' not in data:  # usual, and found without parsing JSON
        return True
    import json

    try:
        return bool(json.loads(data)["state"] != "closed")
    except (ValueError, LookupError, TypeError):
        return True


def _log(error: Exception, flags: "dict[str, str]", environ: "Mapping[str, str]") -> None:
    """Write the *error* to a log below the root, because most errors of hooks are shown to nobody."""
    try:
        from traceback import format_exception

        root = environment.root_directory(flags["root"], environ)[0]
        path = f"{root}/logs/hook.log"
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        is_large = os.path.exists(path) and os.path.getsize(path) > 1 << 20
        with open(path, "w" if is_large else "a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} hook {flags['client']}\n")
            log.write("".join(format_exception(error)))
    except Exception:  # such as a full disk: the client goes on all the same
        return
