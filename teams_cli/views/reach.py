"""How far a message got with each of its recipients: queued, woken, read, handled. Only what was read has arrived."""

from __future__ import annotations

from teams_cli.agents.terminals import terminals
from teams_cli.errors import MessageNotFound, NotFound
from teams_cli.messages import inboxes
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.records.annotations import Any
from teams_cli.store.contract import Store


def to_document(store: Store, team: str, key: str, eyes: str) -> dict[str, Any]:
    """The message as JSON, with its state for each recipient; *eyes* is who looks, empty for one who may see all.

    Raises:
        MessageNotFound: There is no such message, or it is neither from nor to who looks.
    """
    try:
        message, _ = store.get(team, MESSAGE, key)
    except NotFound:
        raise MessageNotFound(f"there is no {key}", "See `teams read-messages --all`.") from None
    to = message.recipients or [message.to]
    if eyes and eyes not in (message.from_, *to):
        raise MessageNotFound(f"there is no {key} from you or to you", "See `teams read-messages --all`.")
    return {**message.to_json(), "reach": [_of(store, team, message, name) for name in to]}


def _of(store: Store, team: str, message: Message, name: str) -> dict[str, Any]:
    inbox = inboxes.advance(store, team, inboxes.load(store, team, name), [])
    said = inboxes.to_document(message, inbox)
    times: dict[str, Any] = {key: said[key] for key in ("readAt", "handledAt") if key in said}
    return {"name": name, "state": _state(store, team, message, name, times), **times}


def _state(store: Store, team: str, message: Message, name: str, times: dict[str, Any]) -> str:
    if "handledAt" in times:
        return "handled"
    if "readAt" in times:
        return "read"
    terminal = terminals.find(store, team, name)
    return "woken" if terminal and terminal.woken_to >= message.number else "queued"
