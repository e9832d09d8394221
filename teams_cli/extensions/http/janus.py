"""The two endpoints of the Janus system: who is there, and a message to one of them."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from queue import SimpleQueue

import anyio

from teams_cli import errors
from teams_cli.agents import interrupting, logs, sessions
from teams_cli.extensions.http import refusals
from teams_cli.extensions.http.refusals import Document
from teams_cli.names import HUMAN
from teams_cli.teams import teams
from teams_cli.teams.teams import Team
from teams_cli.views.agents import agent_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from teams_cli.commands.call import Call

    T = TypeVar("T")


_YES, _NO = ("true", "1", "yes"), ("false", "0", "no", "")
_LINES = 100


def agents(call: Call, team: str) -> list[dict[str, Any]]:
    """The agents that can be written to, each with its team; `status` is `active` or `idle`. Where no team is said,
    they are those of all teams that are open.
    """
    named = [team] if team else call.open_teams()
    return [row for name in named or [call.team] for row in _of_team(call, teams.get(call.store, name))]


def _of_team(call: Call, team: Team) -> list[dict[str, Any]]:
    active = set(team.active_names())
    rows = agent_rows(call.store, team, call.problems)
    return [{**_row(row), "team": team.name} for row in rows if row["name"] in active]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    kept = {key: row[key] for key in ("role", "agentType", "state", "queueDepth", "lastSeen")}
    status = "active" if row["state"] == "active" else "idle"
    return {"name": row["name"], "status": status, "announced": row["status"], **kept}


def send(call: Call, name: str, given: dict[str, Any], interrupt: str | None, team: str) -> Document:
    """Deliver a message, in that *team* or in the one that both are in; the answer says whether it was stored, and
    whether a turn was ended for it.
    """
    body, sender = given.get("message"), given.get("sender")
    if not (isinstance(body, str) and isinstance(sender, str) and body.strip() and sender):
        return _undelivered(400, "Missing message or sender")
    try:
        call.said_team = team or _meant(call, name) or call.said_team
        return _send(call, name, body, given.get("uid"), _flag(interrupt))
    except errors.AgentNotFound as missing:
        return _missing(call, name, missing, team)


def _meant(call: Call, name: str) -> str:
    """The team of a message where none is said: the only one that has both, or else that has who is written to; empty
    where that does not tell.

    Raises:
        AgentNotFound: There are several teams, and none has one of that name.
    """
    known = [teams.get(call.store, team) for team in call.open_teams()]
    there = [team for team in known if _has(team, name)]
    if len(known) > 1 and not there:
        raise errors.AgentNotFound(f"no team has an agent {name!r}", "GET /api/agents lists those of all teams.")
    meant = [team for team in there if _has(team, call.agent)] or there
    return meant[0].name if len(meant) == 1 else ""


def _has(team: Team, name: str) -> bool:
    return name in (HUMAN, "leader") or team.member(name) is not None


def _send(call: Call, name: str, body: str, uid: object, now: bool | None) -> Document:
    if uid is not None and not isinstance(uid, str):
        raise errors.InvalidValue("uid is not a string", "Use 1 to 64 letters, digits, '-' and '_'.")
    target = teams.get_recipient(call.load_team(), name)
    if target == call.agent:
        return _undelivered(400, "Cannot send message to self")
    sent, ended = interrupting.deliver_interruptions(
        call.store, call.team, call.known, target, body, call.environ, now, uid
    )
    call.note_seen()
    return Document({"delivered": True, "target": target, "id": sent.id, "number": sent.number, "interrupted": ended})


def refused(error: Exception) -> Document:
    """The answer to a message that was not delivered."""
    said = refusals.refused(error)
    return _undelivered(said.status, said.message, said.headers, code=said.code, hint=said.hint)


def _undelivered(status: int, error: str, headers: dict[str, str] | None = None, **more: Any) -> Document:
    return Document({"delivered": False, "error": error, **more}, status, headers)


def _missing(call: Call, name: str, missing: errors.AgentNotFound, team: str) -> Document:
    known = [team] if team else call.open_teams()
    available = [agent for team in known or [call.team] for agent in teams.get(call.store, team).active_names()]
    return _undelivered(404, f'Agent "{name}" not found', available=available, code=missing.code, hint=missing.hint)


def _flag(word: str | None) -> bool | None:
    if word is None or word.lower() in _YES + _NO:
        return None if word is None else word.lower() in _YES
    raise errors.InvalidValue(f"{word!r} is not true or false", "Use ?interrupt=true, or leave it out.")


def log(call: Call, name: str, lines: str | None) -> dict[str, Any]:
    """The last lines that an agent printed in its turns, the newest last.

    Raises:
        AgentNotFound: `teams` started no agent of that name.
    """
    wanted = lines if lines is not None else str(_LINES)
    if not (wanted.isascii() and wanted.isdigit() and 0 < int(wanted[:9]) <= 10_000):
        raise errors.InvalidValue(f"{wanted!r} is not a valid number of lines", "Give one from 1 to 10000.")
    session = sessions.find(call.store, call.load_team().name, name)
    if session is None:
        raise errors.AgentNotFound(f"teams started no agent {name!r}", "Only agents that it started have logs.")
    return {
        "agent": session.agent,
        "lines": logs.tail(call.store, call.team, session.agent, session.turns, int(wanted)),
    }


class Threads:
    """Up to *most* threads for the jobs of one loop, each started when the others are busy.

    They take half the processor time for a job that anyio's and the standard library's pools take, which also serve
    several loops, and hand over contexts.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._started = 0
        self._busy = 0

    async def run(self, what: Callable[[], T]) -> T:
        """What that returns, or raises, in a thread. Who is cancelled meanwhile is so once it has ended."""
        job = _Job(what, asyncio.get_running_loop())
        self._busy += 1
        try:
            self._start_another()
            self._jobs.put(job)
            found: T = await job.outcome
        except asyncio.CancelledError:
            await job.end()
            raise
        finally:
            self._busy -= 1
        return found

    def _start_another(self) -> None:
        """Start a thread if all are busy, and there may be more."""
        if self._started < min(self._busy, self._most):
            threading.Thread(target=self._work, name=f"request {self._started + 1}", daemon=True).start()
            self._started += 1

    def _work(self) -> None:
        while self._jobs.get().run():
            pass


class _Job:
    """Something to run in a thread, and what comes of it, in the loop."""

    def __init__(self, what: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self._what = what
        self._loop = loop
        self._has_ended = False
        self.outcome: asyncio.Future[Any] = loop.create_future()

    def run(self) -> bool:
        """Run it; whether the loop is still there to hear of it."""
        try:
            ended: tuple[Any, BaseException | None] = self._what(), None
        except BaseException as error:  # a future takes no StopIteration
            ended = None, RuntimeError("it stopped") if isinstance(error, StopIteration) else error
        try:
            self._loop.call_soon_threadsafe(self._settle, *ended)
        except RuntimeError:  # it is closed, and with it whoever waited
            return False
        return True

    def _settle(self, found: Any, error: BaseException | None) -> None:
        self._has_ended = True
        if self.outcome.cancelled():
            return
        if error is None:
            self.outcome.set_result(found)
        else:
            self.outcome.set_exception(error)

    async def end(self) -> None:
        """Wait for the end, whatever it is, of what nobody waits for any more."""
        with anyio.CancelScope(shield=True):
            while not self._has_ended:
                self.outcome = self._loop.create_future()
                with suppress(BaseException):
                    await self.outcome
