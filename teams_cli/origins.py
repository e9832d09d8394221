"""What this machine started its agents with: where others write to the same store, they do not say what it runs.

The record of a session says what its client is started with. In a database, the logins of others may write it; so each
machine keeps a digest of what it was told itself, and starts nothing else.
"""

from __future__ import annotations

import json

from teams_cli.errors import NotAllowed
from teams_cli.store import disk, root_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.sessions import Session
    from teams_cli.store.contract import Store


def note(store: Store, team: str, session: Session) -> None:
    """Keep what the agent is started with, on this machine.

    Raises:
        StorageFailed: It can't be written.
    """
    if store.host:
        directory = f"{store.root}/started/{team}"
        root_directory.prepare(store.root)
        disk.make_directories(directory, store.root)
        disk.commit(disk.write_temp(f"{store.root}/tmp", _digest(session)), f"{directory}/{session.agent}")


def check(store: Store, team: str, session: Session) -> None:
    """Raises NotAllowed: The session's record is not what this machine started the agent with."""
    if not store.host:
        return
    try:
        known = disk.read_file(f"{store.root}/started/{team}/{session.agent}")
    except FileNotFoundError:
        known = b""
    if known != _digest(session):
        said = f"{session.agent} was not started on this machine as its record in {store.place} has it"
        raise NotAllowed(said, "Look who changed it, and start another agent: teams run-agent")


def _digest(session: Session) -> bytes:
    from hashlib import sha256

    started = [session.prompt, session.directory, session.harness, session.variables]
    return sha256(json.dumps(started, sort_keys=True).encode()).hexdigest().encode()
