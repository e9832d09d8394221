"""The rest of `teams hook`: what is done when there may be news for the agent, or its heartbeat is due."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time

from teams_cli import claims, config, hooks, inboxes, roles
from teams_cli.caller import Caller
from teams_cli.cli import identity, streams
from teams_cli.errors import Conflict, NotAllowed, TeamNotFound, TeamsError
from teams_cli.store import opening
from teams_cli.store.files import FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.store.contract import Store

_BEAT = 30.0
_PATIENCE = 2.0


def tell(
    dialect: str, given: bytes, root: str, address: str, team: str, agent: str, environ: Mapping[str, str]
) -> None:
    """Answer the hook on standard output. Agents that are no members are told nothing."""
    event = json.loads(given) if given.strip() else {}
    store = opening.open_store(root, address or FILES, _PATIENCE, environ.get("TEAMS_HOST", ""))
    caller = Caller(agent, token=identity.look_up("token", None, environ)[0], config=config.load(store.root))
    try:
        roles.require(store, team, caller, "read-messages")
    except (NotAllowed, TeamNotFound, Conflict):
        return
    with Seen(f"{store.root}/teams/{team}/inboxes/{agent}.seen") as seen:
        _say(store, team, caller, hooks.DIALECTS[dialect], event, seen)
        _beat(store, team, caller, seen)
        number, waiting = hooks.unread(store, team, agent)
        seen.number = -1 if waiting else number


def _say(store: Store, team: str, caller: Caller, dialect: hooks.Dialect, event: dict[str, Any], seen: Seen) -> None:
    """Print the answer, and only then mark as read what is in it: shown twice is better than never."""
    stop = dialect.moment(event) == "stop"
    if stop and not event.get("stop_hook_active"):
        seen.blocks = 0
    reply = hooks.answer(store, team, caller, dialect, event, seen.blocks)
    if reply is None:
        return
    try:
        sys.stdout.write(json.dumps(reply.document) + "\n")
        sys.stdout.flush()
    finally:
        streams.finish()
    seen.blocks += stop
    inboxes.mark_read(store, team, caller.name, reply.shown)


def _beat(store: Store, team: str, caller: Caller, seen: Seen) -> None:
    """Renew the leases of the caller's tasks, unless that was done within the last seconds."""
    if seen.is_beat_due() and not caller.is_human:
        try:
            claims.heartbeat(store, team, caller)
        except TeamsError:  # it may not, or a claim ended at this very moment
            return
        seen.beat = time.time()


class Seen:
    """The file that says up to which message nothing is unread, and how often in a row a stop was refused.

    While it is open, other hooks of the same agent wait: a message is shown by one of them.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> Seen:
        os.makedirs(os.path.dirname(self.path), 0o700, exist_ok=True)
        self.file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(self.file, fcntl.LOCK_EX)
        words = os.read(self.file, 64).split()
        known = len(words) == 2 and words[1].isdigit()
        self.number, self.blocks = -1, int(words[1]) if known else 0
        self.beat = os.fstat(self.file).st_mtime if known else 0.0
        return self

    def is_beat_due(self) -> bool:
        """Whether the last heartbeat is long ago."""
        return not 0 <= time.time() - self.beat < _BEAT

    def __exit__(self, *failure: object) -> None:
        if failure == (None, None, None):
            os.ftruncate(self.file, 0)
            os.pwrite(self.file, b"%d %d\n" % (self.number, self.blocks), 0)
            os.utime(self.file, (self.beat, self.beat))
        os.close(self.file)
