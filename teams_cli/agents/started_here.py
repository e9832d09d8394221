"""How this machine started its agents: others who write to the same store do not decide what it runs.

The record of a session says what its client is started with: for its turns, for copies of it that answer questions.
In a database, the logins of others may write it; so each machine keeps a digest of what it was told itself, and the
client's own ids of the session, and starts nothing else.
"""

from __future__ import annotations

import json

from teams_cli import errors
from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.agents.sessions import Session
    from teams_cli.store.contract import Store

_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_ID = _FIRST | frozenset("-.")


def is_session_id(text: str) -> bool:
    """Whether a client's id of a session can stand among the words of a command without being an option or a path."""
    return bool(text) and text[0] in _FIRST and _ID.issuperset(text)


def note(store: Store, team: str, session: Session) -> None:
    """Keep what the agent is started with, on this machine; an id of its session beside those before.

    Raises:
        StorageFailed: It can't be written.
    """
    if store.host:
        directory = f"{store.root}/started/{team}"
        digest, ids = _known(store, team, session.agent)
        now = _digest(session)
        kept = [*(ids if digest == now else ()), session.session_id]
        disk.prepare_root(store.root)
        disk.make_directories(directory, store.root)
        said = "\n".join([now, *dict.fromkeys(kept)]).encode()
        disk.commit(disk.write_temp(f"{store.root}/tmp", said), f"{directory}/{session.agent}")


def check(store: Store, team: str, session: Session) -> None:
    """Raises NotAllowed: The session's record is not what this machine started the agent with."""
    if not is_session_id(session.session_id):
        said = f"the session id {session.session_id[:60]!r} of {session.agent} is not valid"
        raise errors.NotAllowed(said, "See who changed it (teams history), and start another agent: teams run-agent")
    if not is_ours(store, team, session):
        said = f"the record of {session.agent} in {store.address} differs from how this machine started it"
        raise errors.NotAllowed(said, "See who changed it (teams history), and start another agent: teams run-agent")


def is_ours(store: Store, team: str, session: Session) -> bool:
    """Whether this machine started the agent with what the record of its session says."""
    if not store.host:
        return is_session_id(session.session_id)
    digest, ids = _known(store, team, session.agent)
    if not is_session_id(session.session_id):
        return False
    if digest == _digest_of_old(session):  # noted by a version that kept no ids
        return True
    return digest == _digest(session) and session.session_id in ids


def _known(store: Store, team: str, agent: str) -> tuple[str, list[str]]:
    """The digest that was noted, and the ids; an empty one if nothing was."""
    try:
        digest, *ids = disk.read_file(f"{store.root}/started/{team}/{agent}").decode().split("\n")
    except FileNotFoundError:
        return "", []
    return digest, ids


def _digest(session: Session) -> str:
    kept = [session.worktree, session.run, session.caller, session.depth]
    return _hash([*_of_old(session), session.model, session.permissions, *kept])


def _digest_of_old(session: Session) -> str:
    return _hash(_of_old(session)) if not (session.model or session.permissions) else ""


def _of_old(session: Session) -> list[object]:
    return [session.prompt, session.directory, session.harness, session.variables]


def _hash(said: list[object]) -> str:
    from hashlib import sha256

    return sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
