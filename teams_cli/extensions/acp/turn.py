"""One turn of a client that speaks the Agent Client Protocol: the prompt comes on standard input.

    turn [--server] [--gives-up] [--titles] [--forgets PATTERN] [--session ID] -- COMMAND...

Prints a JSON object on each line: the client's session, each text that it wrote, each tool that it used, each request
that was refused, its tokens, or an error. SIGINT cancels the turn. This is an entry point: it reads the environment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from glob import glob
from queue import Empty, SimpleQueue
from threading import Thread

from teams_cli import __version__, environment, errors
from teams_cli.agents.turns import as_client
from teams_cli.clients import own_entries, permissions
from teams_cli.questions import answering
from teams_cli.store import opening
from teams_cli.teams import config
from teams_cli.teams.permission import Caller
from teams_cli.text import whole_characters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from teams_cli.store.contract import Store

_INTERRUPTED = 130
_CANCEL, _END = "cancel", "end"
_PATIENCE = 3.0
"""Seconds to wait for the client to exit by itself, and again after each signal to it."""
_PAUSE = 0.5
"""Seconds between two checks whether a session may be loaded."""
_REMINDERS = 5
"""The maximum number of times per turn that the client is prompted again after a refusal made it stop."""
_METHOD_NOT_FOUND = -32601
_FAILED_STOPS = ("refusal", "max_tokens", "max_turn_requests")
_ASKING_MODE = "default"
"""The mode in which a client asks the person for permission. Some clients start in another mode, in which a model
decides for the person.
"""
_LOGIN_NEEDED = -32000
"""The protocol's error code for a client whose user must log in first."""
_PATHS = ("path", "file_path", "filePath", "fileName", "notebook_path")
"""The keys under which clients name the files of a tool."""
_OUR_TOOL = rf"(mcp__{own_entries.NAME}__|mcp_{own_entries.NAME}_|{own_entries.NAME}[-_])\w+"


class Failed(Exception):
    """Raised when the turn cannot continue. The message gives the reason."""


class Cancelled(Exception):
    """Raised when the turn is cancelled while the client is not answering a prompt."""


def main() -> None:
    """Run one turn of a client, as the command line says, and print what happens in it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", action="store_true")
    parser.add_argument("--gives-up", action="store_true")
    parser.add_argument("--titles", action="store_true")
    parser.add_argument("--session")
    parser.add_argument("--forgets")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    events: SimpleQueue[Any] = SimpleQueue()
    signal.signal(signal.SIGINT, lambda *_: events.put(_CANCEL))
    try:
        turn = Turn(options.command, events, options.forgets, options.gives_up, options.titles)
    except OSError as error:
        tell("error", message=f"{options.command[0]} can't be started: {error.strerror}")
        sys.exit(1)
    status = 0
    try:
        turn.begin(options.session, _our_server() if options.server else [])
        turn.take(sys.stdin.read())
    except Failed as failure:
        tell("error", message=str(failure))
        status = 1
    except Cancelled:
        status = _INTERRUPTED
    finally:
        turn.close()
    sys.stdout.flush()
    os._exit(status)  # a thread may still wait for the person


def _our_server() -> list[dict[str, Any]]:
    """Return a list with our MCP server, to offer it to the client; an empty list if the extra `mcp` is missing."""
    if not own_entries.is_server_available():
        return []
    command, *args = own_entries.program(sys.executable, "mcp")
    variables = [{"name": name, "value": os.environ[name]} for name in own_entries.VARIABLES if name in os.environ]
    return [{"name": own_entries.NAME, "command": command, "args": args, "env": variables}]


def tell(type: str, **fields: Any) -> None:
    """Print one line of JSON about the turn. Clients may send the halves of a character in two parts: they are joined,
    and a half alone is replaced.
    """
    line = json.dumps({"type": type, **fields}, ensure_ascii=False)
    sys.stdout.write(whole_characters(line.encode(errors="surrogatepass")).decode() + "\n")
    sys.stdout.flush()


def _open_store() -> tuple[Store, Caller]:
    """Return the store, and the agent of this turn as the caller of its operations."""
    store = opening.from_environment(os.environ)
    agent, token = os.environ["TEAMS_AGENT_ID"], os.environ.get("TEAMS_TOKEN", "")
    return store, Caller(agent, token=token, config=config.load(store.root, os.environ))


class Turn:
    """One turn, and the client's process. The client gets one prompt at a time.

    *gives_up*, *titles* and *forgets* describe how some clients differ. With *gives_up*, the client writes a message
    and ends its turn if a permission is refused. With *titles*, the title of a shell call is its command. *forgets* is
    for a client that writes its session to a new file each minute. If such a client loads a session in the minute in
    which a turn was cancelled, it overwrites that turn. *forgets* is the pattern of the file's name, with placeholders
    for the session and the minute; None for other clients.
    """

    def __init__(
        self, command: list[str], events: SimpleQueue[Any], forgets: str | None, gives_up: bool, titles: bool
    ) -> None:
        self.forgets = forgets
        self.gives_up = gives_up
        self.titles = titles
        self.events = events
        self.level = os.environ.get(environment.HELD, environment.LEVELS[0])
        self.asks_person = self.level == environment.LEVELS[0]
        """Whether the person decides about tools that the rules do not allow. True at the level `ask`."""
        # In a process group of its own, the client does not get our SIGINT. We cancel its turn by the protocol.
        self.client = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=as_client(os.getpid()),
        )
        self.session = ""
        self.requests_sent = 0
        self.is_prompted = self.is_cancelled = False
        self.is_silent = False
        """Whether the client has written nothing since a refusal. If so, the refusal may be why the client stopped. The
        texts of a client that *gives_up* are ignored.
        """
        self.text = ""
        self.message_id: Any = None
        self.pending: dict[Any, dict[str, Any]] = {}
        """The parameters of each permission request that is still unanswered, by the id of the request."""
        self.refusals: list[str] = []
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.client.stdout or ():
            with suppress(ValueError, RecursionError):  # a line that is not JSON is none of the protocol
                if isinstance(message := json.loads(line), dict):
                    self.events.put(message)
        self.events.put(_END)

    def begin(self, session: str | None, servers: list[dict[str, Any]]) -> None:
        """Start a new session or, if *session* is given, continue it. The client gets *servers*, a list of MCP servers.
        Set the mode in which the client asks for permission.
        """
        initialized = self._ask(
            "initialize",
            protocolVersion=1,
            clientCapabilities={"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
            clientInfo={"name": "teams", "title": "teams", "version": __version__},
        )
        settings = {"cwd": os.getcwd(), "mcpServers": servers}
        if session is None:
            begun = self._ask("session/new", **settings)
            self.session = begun["sessionId"]
        else:
            self.session = session
            capabilities = initialized.get("agentCapabilities", {})
            if "resume" in (capabilities.get("sessionCapabilities") or {}):
                method = "session/resume"
            elif capabilities.get("loadSession"):
                method = "session/load"
            else:
                raise Failed("the client can't load a session, so this one can't go on: teams restart-agent --fresh")
            # The name of the file has the current minute, so this ends after a minute at most.
            while self.forgets and glob(time.strftime(self.forgets, time.gmtime()).format(session=session)):
                with suppress(Empty):  # nothing happened in the pause
                    self._handle(self.events.get(timeout=_PAUSE))
            begun = self._ask(method, sessionId=session, **settings)
        if not self.forgets:  # otherwise the session can be continued only after a whole turn: see `take`
            tell("session", sessionId=self.session)
        # Some clients change back to another mode when a session is resumed, so the mode is set each time.
        modes = begun.get("modes") or {}
        if any(mode.get("id") == _ASKING_MODE for mode in modes.get("availableModes", ())):
            self._ask("session/set_mode", sessionId=self.session, modeId=_ASKING_MODE)

    def take(self, prompt: str) -> None:
        """Send the prompt, and wait until the client has answered it. If the client stopped because permissions were
        refused, send another prompt with the reasons for the refusals.

        Raises:
            Failed: The client ended the turn early, or exited.
        """
        stop_reason = self._prompt(prompt)
        if self.forgets and not self.is_cancelled:
            tell("session", sessionId=self.session)
        for _ in range(_REMINDERS):
            # The client always gets the person's reasons, which the protocol can't carry.
            needs_reasons = self.refusals and (self.is_silent or self.asks_person)
            if self.is_cancelled or not needs_reasons:
                break
            reminder = "\n".join([*self.refusals, "Go on without that."])
            self.refusals = []
            stop_reason = self._prompt(reminder)
        if not self.is_cancelled and stop_reason in _FAILED_STOPS:
            raise Failed(f"the client ended the turn: {stop_reason}")

    def _prompt(self, text: str) -> str:
        """Send *text* as a prompt, print what the client answers, and return the reason why it stopped."""
        self.is_prompted, self.is_silent = True, False
        try:
            content = [{"type": "text", "text": text}]
            answer = self._ask("session/prompt", sessionId=self.session, prompt=content)
        finally:
            self.is_prompted = False
            self._end_text()
        quota = (answer.get("_meta") or {}).get("quota") or {}
        self._count(answer.get("usage") or quota.get("token_count"))
        return str(answer.get("stopReason"))

    def close(self) -> None:
        """Close the client's input, and wait until the client exits. A client that takes too long is terminated, then
        killed.
        """
        with suppress(OSError):  # the client has ended
            if self.client.stdin:
                self.client.stdin.close()
        for end in (self.client.terminate, self.client.kill, self.client.wait):
            try:
                self.client.wait(_PATIENCE)
                return
            except subprocess.TimeoutExpired:
                end()

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request, handle all events that come before its result, and return the result, which may be empty. If
        the turn is cancelled meanwhile, a prompt still has a result, but any other request raises `Cancelled`.
        """
        self.requests_sent += 1
        number = self.requests_sent
        self._send(id=number, method=method, params=params)
        while True:
            event = self.events.get()
            if not isinstance(event, dict) or "method" in event:
                self._handle(event)
            elif event.get("id") == number:
                if error := event.get("error"):
                    raise Failed(_reason_of(error, method))
                return event.get("result") or {}

    def _handle(self, event: Any) -> None:
        """Handle an event that is not the result of one of our requests."""
        if event == _END:
            with suppress(subprocess.TimeoutExpired):  # the client has only closed its output
                self.client.wait(_PATIENCE)
            raise Failed(f"the client ended by itself, with exit status {self.client.poll()}")
        if event == _CANCEL:
            self._cancel()
        elif isinstance(event, tuple):  # from `_ask_person`
            self._decide(*event)
        elif "method" in event:
            method, params = event["method"], event.get("params") or {}
            if method == "session/update" and self.is_prompted:  # a loaded session first repeats its history
                self._update(params.get("update") or {})
            elif method == "session/request_permission":
                self._consider(event["id"], params)
            elif "id" in event:
                self._send(id=event["id"], error={"code": _METHOD_NOT_FOUND, "message": f"no such method: {method}"})

    def _send(self, **message: Any) -> None:
        with suppress(BrokenPipeError):  # the reader thread reports that the client exited
            assert self.client.stdin
            self.client.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self.client.stdin.flush()

    def _cancel(self) -> None:
        """Ask the client to cancel the turn. The client then ends the turn by itself. Raise `Cancelled` if no prompt is
        being answered.
        """
        if not self.is_prompted:
            raise Cancelled
        self.is_cancelled = True
        self._send(method="session/cancel", params={"sessionId": self.session})
        is_person_asked = bool(self.pending)
        for request in list(self.pending):  # some clients end the turn only when their requests are answered
            self._respond(request, None)
        if is_person_asked:
            with suppress(errors.TeamsError, OSError):  # at worst, the person still sees the question
                store, caller = _open_store()
                answering.withdraw_for_tools(store, os.environ["TEAMS_TEAM"], caller.name)

    def _update(self, update: dict[str, Any]) -> None:
        """Collect a part of a text that the client writes, or print a tool call. Ignore all other updates."""
        kind, content = update.get("sessionUpdate"), update.get("content")
        if kind == "agent_message_chunk" and isinstance(content, dict) and content.get("type") == "text":
            if update.get("messageId") != self.message_id:
                self._end_text()
                self.message_id = update.get("messageId")
            self.text += content["text"]
            if self.text.strip() and not self.gives_up:
                self.is_silent = False
            self._count((update.get("_meta") or {}).get("usage"))
        elif kind == "tool_call":
            self._end_text()
            tell("tool", kind=update.get("kind"), title=update.get("title"))

    def _count(self, usage: Any) -> None:
        if tokens := _tokens_of(usage):
            tell("usage", **tokens)

    def _end_text(self) -> None:
        """Print the collected text, which is now complete."""
        if self.text.strip():
            tell("text", text=self.text)
        self.text = ""

    def _consider(self, request: Any, params: dict[str, Any]) -> None:
        """Answer a request for permission according to the agent's permission level. If the level does not allow the
        tool, refuse it or, at the level `ask`, ask the person.
        """
        self._end_text()
        self.pending[request] = params
        if self.is_cancelled:
            return self._respond(request, None)  # cancels the request
        tool = params.setdefault("toolCall", {})
        if self.titles and tool.get("kind") == "execute":  # this client does not report the command in the input
            tool["rawInput"] = {"command": tool.get("title")}
        if is_allowed(tool, self.level, os.getcwd()):
            return self._decide(request, None)  # allows it
        if not self.asks_person:
            refusal = f"at the level {self.level} an agent edits files in its directory, and runs `teams`; nothing else"
            return self._decide(request, refusal)
        Thread(target=self._ask_person, args=(request, tool), daemon=True).start()

    def _ask_person(self, request: Any, tool: dict[str, Any]) -> None:
        """Ask the person about the request, and put it into the queue of events with the person's decision. This runs
        in a thread, because it may take long.
        """
        try:
            store, caller = _open_store()
            name, about = _name_of(tool), _text_of(tool)
            refusal = answering.ask_for_tool(store, os.environ["TEAMS_TEAM"], caller, name, about)
        except (errors.TeamsError, OSError) as error:
            refusal = f"nobody could be asked: {error}"
        self.events.put((request, refusal))

    def _decide(self, request: Any, refusal: str | None) -> None:
        """Allow the *request*, or refuse it if *refusal* gives a reason. The next prompt tells the agent the reason."""
        if request not in self.pending:  # the turn was cancelled meanwhile
            return
        if refusal:
            about = _text_of(self.pending[request].get("toolCall") or {})
            self.refusals.append(f"This was not allowed: {about}\nThe reason: {refusal}")
            self.is_silent = True
            tell("refused", tool=about, reason=refusal)
        self._respond(request, "reject" if refusal else "allow")

    def _respond(self, request: Any, choice: str | None) -> None:
        """Answer the client's *request* with its option `allow_once` or `reject_once`, as *choice* says. If *choice* is
        None, or the client offers no such option, the answer says that the request was cancelled.
        """
        outcome = {"outcome": "cancelled"}
        for option in self.pending.pop(request).get("options") or ():
            if choice and option.get("kind") == f"{choice}_once":
                outcome = {"outcome": "selected", "optionId": option["optionId"]}
                break
        self._send(id=request, result={"outcome": outcome})


def is_allowed(tool: dict[str, Any], level: str, directory: str) -> bool:
    """Return whether an agent at the permission *level* may use the tool without asking.

    Tools of `teams` are always allowed. At the level `edit`, edits of files in *directory* are also allowed; at the
    level `all`, everything is.
    """
    if level == "all":
        return True
    if tool.get("kind") == "execute" and permissions.is_ours("", {"command": _command(tool)}):
        return True
    if tool.get("kind") != "execute" and re.fullmatch(_OUR_TOOL, str(tool.get("title"))):
        return True
    if level != "edit" or tool.get("kind") != "edit":
        return False
    top = os.path.realpath(directory)
    paths = [os.path.realpath(os.path.join(directory, path)) for path in _paths(tool)]
    for path in paths:
        is_in_git = "/.git/" in f"{path.removeprefix(top)}/"  # git runs commands that files there name
        if not path.startswith(f"{top}/") or is_in_git:
            return False
    return bool(paths)


def _command(tool: dict[str, Any]) -> str | None:
    """Return the shell command in the input of the tool; None if the input has none."""
    raw_input = tool.get("rawInput")
    command = raw_input.get("command") if isinstance(raw_input, dict) else None
    if isinstance(command, list):
        is_shell = len(command) == 3 and command[1] in ("-c", "-lc")
        return str(command[2]) if is_shell else shlex.join(map(str, command))
    return command if isinstance(command, str) else None


def _paths(tool: dict[str, Any]) -> Iterator[str]:
    """Yield all paths of files that the request for the tool names."""
    for part in (*(tool.get("locations") or ()), *(tool.get("content") or ()), tool.get("rawInput")):
        if isinstance(part, dict):
            yield from (value for key, value in part.items() if key in _PATHS and isinstance(value, str))


def _name_of(tool: dict[str, Any]) -> str:
    """Return a name for the tool, by which the person can allow this tool once and for all. The protocol gives tools no
    names, so the name is the kind of the tool, and means all tools of this kind. If the kind is unknown, the name is
    the title.
    """
    kind = tool.get("kind") or "other"
    return str(tool.get("title") or kind) if kind == "other" else str(kind)


def _text_of(tool: dict[str, Any]) -> str:
    """Return the tool and its input as text, so that the person can judge the request."""
    if command := _command(tool):
        return command
    title = str(tool.get("title") or "")
    if tool.get("rawInput"):
        return f"{title}\n{permissions.as_text(tool['rawInput'])}".strip()
    texts = [title, *dict.fromkeys(_paths(tool))]
    for part in tool.get("content") or ():
        if isinstance(part, dict):
            description = part.get("content")  # otherwise the part is a change of a file
            text = description.get("text") if isinstance(description, dict) else part.get("newText")
            if isinstance(text, str):
                texts.append(text)
    return "\n".join(filter(None, texts))


def _reason_of(error: dict[str, Any], method: str) -> str:
    """Return the reason to give to the user if a client answered our request *method* with the *error*."""
    message = str(error.get("message"))
    if error.get("data"):
        message += f" {json.dumps(error['data'])}"
    if error.get("code") == _LOGIN_NEEDED:
        return f"the client wants its user to log in: start it by hand once ({message})"
    return f"the client refused {method}: {message}"


def _tokens_of(usage: Any) -> dict[str, int]:
    """Return the token counts that a client reported, or an empty dict if it reported none.

    Clients differ in whether their count of input tokens includes cached tokens. If the client also reports the total,
    the returned count of input tokens is computed from the total, so that it includes cached tokens.
    """
    if not isinstance(usage, dict):
        return {}
    # Some clients write `input_tokens` instead of `inputTokens`.
    counts = {key.replace("_t", "T"): value for key, value in usage.items() if isinstance(value, int)}
    if "outputTokens" not in counts or not {"inputTokens", "totalTokens"} & counts.keys():
        return {}
    output = counts["outputTokens"]
    input = counts["totalTokens"] - output if "totalTokens" in counts else counts["inputTokens"]
    return {"input": input, "cached": counts.get("cachedReadTokens", 0), "output": output}


if __name__ == "__main__":
    main()
