"""Messaging by the names that other systems gave it: `list_agents`, `send_to_agent` and `broadcast`."""

from __future__ import annotations

from threading import Event, Lock

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCResponse

from teams_cli import errors
from teams_cli.agents import attention
from teams_cli.commands.call import Call
from teams_cli.serving import requests
from teams_cli.teams import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Run = Callable[[Call, Mapping[str, str]], Any]
    Refuse = Callable[[Call, Mapping[str, Any], errors.TeamsError], errors.TeamsError]


class DocumentedRefusal(errors.TeamsError):
    """A refusal that is answered with a document of its own."""

    def __init__(self, error: errors.TeamsError, document: dict[str, Any]) -> None:
        super().__init__(error.message, error.hint)
        self.document = document


class Words:
    """A tool: its name, the command that it is about, and its parameters, each with what it is; the required first.
    *refuse* makes of a refusal what the tool answers.
    """

    def __init__(
        self,
        name: str,
        command: str,
        description: str,
        run: Run,
        required: dict[str, str] | None = None,
        others: dict[str, str] | None = None,
        refuse: Refuse | None = None,
    ) -> None:
        self.name = name
        self.command = command
        self.description = description
        self._run = run
        self.needs = required or {}
        self._known = {**self.needs, **(others or {})}
        self._refuse = refuse or (lambda call, arguments, error: error)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        properties = {key: {"type": "string", "description": help} for key, help in self._known.items()}
        required = {"required": [*self.needs]} if self.needs else {}
        return {"type": "object", "properties": properties, **required}

    def run(self, call: Call, arguments: Mapping[str, Any]) -> Any:
        """Do it.

        Raises:
            TeamsError: It is refused, or an argument is missing, unknown or no text.
        """
        try:
            return self._run(call, self._checked(arguments))
        except errors.TeamsError as error:
            raise self._refuse(call, arguments, error) from None

    def _checked(self, arguments: Mapping[str, Any]) -> dict[str, str]:
        hint = f"{self.name} takes {', '.join(self._known) or 'nothing'}."
        if unknown := [key for key in arguments if key not in self._known]:
            raise errors.WrongUsage(f"{unknown[0]}: unknown field", hint)
        given = {key: _text(key, value) for key, value in arguments.items() if value is not None}
        if any(key not in given for key in self.needs):
            raise errors.WrongUsage(f"Missing {' or '.join(self.needs)}", hint)
        return given


def _text(key: str, value: Any) -> str:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise errors.InvalidValue(f"{key}: must be a string", "Give a text.")


def _list(call: Call, given: Mapping[str, str]) -> Any:
    listed = requests.answer(call, "list-agents", given)
    return {"agents": [_row(row) for row in listed["agents"]], "self": listed["self"]}


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    """An agent in few words; `status` as in the document of the tool: idle or active."""
    kept = {key: row[key] for key in ("state", "role", "agentType", "queueDepth") if row.get(key)}
    doing = {"workingOn": row["status"]} if row.get("status") else {}
    return {"name": row["name"], "status": "active" if row["state"] == "active" else "idle", **kept, **doing}


def _send(call: Call, given: Mapping[str, str]) -> Any:
    if given["target"] == _name(call):
        raise errors.WrongUsage("Cannot send message to self", "Choose another agent from the list.")
    sent = requests.answer(call, "send-message", {"to": given["target"], "text": given["message"]})
    return {"delivered": True, "target": sent["to"], "id": sent["id"]}


def _undelivered(call: Call, arguments: Mapping[str, Any], error: errors.TeamsError) -> errors.TeamsError:
    """The refusal with its document: why, and to whom it could be delivered."""
    unknown = isinstance(error, errors.AgentNotFound)
    message = f'Agent "{arguments["target"]}" not found' if unknown else error.message
    document = {"delivered": False, "error": message, "code": error.code, "hint": error.hint}
    try:
        document["available"] = [name for name in call.load_team().active_names() if name != _name(call)]
    except errors.TeamsError:
        document["available"] = []
    return DocumentedRefusal(error, document)


def _name(call: Call) -> str:
    return call.caller.name if call.caller else ""


def _broadcast(call: Call, given: Mapping[str, str]) -> Any:
    message, to, number = given["message"], given.get("send_to"), given.get("reply_to")
    if number is not None and to is not None:
        raise errors.WrongUsage("an answer goes to the sender of the message", "Leave out send_to or reply_to.")
    if number is not None:
        sent = requests.answer(call, "reply", {"message": number, "text": message})
    elif to is not None:
        sent = requests.answer(call, "send-message", {"to": to, "text": message})
    else:
        return _to_all(call, message)
    outcome = {"you_are": sent["from"], "id": sent["id"], "sentTo": sent.get("recipients") or [sent["to"]]}
    return {**outcome, "repliedTo": sent["repliedTo"]} if number is not None else outcome


def _to_all(call: Call, message: str) -> Any:
    """Broadcast; from an agent that is alone, the first broadcast becomes its status line."""
    name = _name(call)
    try:
        sent = requests.answer(call, "broadcast-message", {"text": message})
    except errors.NobodyThere:
        if presence.load(call.store, call.team, name).status is not None:
            raise
        presence.introduce(call.store, call.team, name, message)
        return {"you_are": name, "id": None, "sentTo": []}
    outcome = {"you_are": name, "id": sent["id"], "sentTo": sent["recipients"]}
    call.try_to(lambda: outcome.update(agents=_others(call, name)))
    return outcome


def _others(call: Call, name: str) -> list[dict[str, Any]]:
    """The other agents, each with what it works on."""
    there = attention.others(call.store, call.team, name)[: attention.MAX_NAMED]
    return [{"name": row["name"], "status": row["status"]} for row in there]


WORDS = (
    Words(
        "list_agents",
        "list-agents",
        "List the agents of the team, yourself included: status (idle or active), what each works on, how many unread "
        "messages it has; `self` is your own name.",
        _list,
    ),
    Words(
        "send_to_agent",
        "send-message",
        "Send a message to one agent, to `leader` or to `human`. It is in their inbox at once and they see it between "
        "their steps; the answer arrives in your inbox. Unknown names are refused with the available ones.",
        _send,
        {"target": "The recipient: a name from list_agents.", "message": "What to say."},
        refuse=_undelivered,
    ),
    Words(
        "broadcast",
        "broadcast-message",
        "Send a message to all other agents or to one, or answer a message, which marks it as handled. Your "
        "first message to all also becomes your status line.",
        _broadcast,
        {"message": "What to say."},
        {"send_to": "Only this agent.", "reply_to": "The message to answer, by its id."},
    ),
)


_CROSSING = 0.05
"""Seconds in which a client may have cancelled a call whose answer is written, so that it reads none."""


class Telling:
    """The requests at work and whether the client cancelled them, and the calls whose answers are on their way."""

    def __init__(self) -> None:
        self._at_work: dict[Any, bool] = {}
        self._calls: dict[Any, Call] = {}
        self._writing: tuple[Any, Event] = None, Event()
        self._lock = Lock()

    def begin(self, id: Any) -> None:
        """Begin a request. What was to be noted for an earlier one of that id, which got no answer, is forgotten."""
        self._calls.pop(id, None)
        self._at_work[id] = False

    def end(self, id: Any) -> None:
        """End the work on a request, whether or not it has an answer."""
        self._at_work.pop(id, None)

    def expect(self, id: Any, call: Call) -> None:
        """Have what the call was told be noted once the answer to its request is written."""
        if self._at_work.get(id):
            call.is_given_up = lambda: True
        elif call.has_to_note:
            self._calls[id] = call

    def of(self, item: SessionMessage) -> Call | None:
        """The call that the message answers, if something is to be noted of it."""
        call = self._calls.pop(getattr(item.message, "id", None), None)
        return call if isinstance(item.message, JSONRPCResponse) else None

    def hear(self, item: SessionMessage) -> None:
        """Take from a message of the client whether it reads no answer to what is just being told."""
        if isinstance(item.message, JSONRPCNotification) and item.message.method == "notifications/cancelled":
            writing, cancelled = self._writing
            id = (item.message.params or {}).get("requestId")
            if id == writing:
                cancelled.set()
            elif call := self._calls.pop(id, None):
                call.is_given_up = lambda: True
            elif id in self._at_work:
                self._at_work[id] = True

    def tell(self, write: Callable[[], object], id: Any, call: Call) -> None:
        """Write the answer, and note that the caller was told what is in it."""
        with self._lock:
            self._writing = id, (cancelled := Event())
            write()
            if not (call.tells_news and cancelled.wait(_CROSSING)):
                call.note_told()

    def settle(self) -> None:
        """Wait until what was told before is noted."""
        with self._lock:
            return
