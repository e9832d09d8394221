"""Rate-limited agents: they rest until their provider accepts requests again."""

from __future__ import annotations

from datetime import timedelta

from teams_cli.agents.sessions import SESSION, Session
from teams_cli.clients.output import limited_until
from teams_cli.clock import parse_rfc3339, rfc3339
from teams_cli.messages.notices import deliver
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import claims
from teams_cli.teams import history, settings, teams

SETTING = "onLimit"

WAIT, RELEASE = "wait", "release"

CHOICES = (WAIT, RELEASE, settings.OFF)
"""The possible values, besides the name of another harness."""


def until(store: Store, printed: str) -> str | None:
    """Return when the provider accepts requests again, from what a failed client printed; None if it failed for another
    reason.
    """
    end = limited_until(printed, store.now().astimezone())
    return rfc3339(end.replace(microsecond=0) + timedelta(seconds=1)) if end else None


def is_limited(store: Store, session: Session) -> bool:
    """Whether its provider refuses the agent now."""
    return session.limited_until is not None and parse_rfc3339(session.limited_until) > store.now()


def on_limit(store: Store, team: str) -> str:
    """Return the setting: `wait`, `release`, the name of another harness, or empty if it is not set."""
    return str(settings.value(teams.get(store, team), SETTING))


def note(store: Store, team_name: str, session: Session, until: str, given: list[int]) -> str:
    """Record the limit on the session, with the messages of the turn that did not take place. Returns the consequence
    in words. The leader is notified, unless the agent is its own and ends now: then it gets the output.
    """
    team = teams.get(store, team_name)
    choice = on_limit(store, team_name)
    then = _WHAT_THEN.get(choice, _OTHERWISE).format(other=choice)
    consequence = f"limited by its provider until {until}: {then}"
    uid = f"limited-{session.agent}-{''.join(filter(str.isdigit, until))}"
    notice = Owed(
        to=team.leader, message=f"{session.agent} is {consequence}", uid=uid, by=session.agent, event="provider-limit"
    )
    owed = [] if choice in ("", RELEASE) and session.caller == team.leader else [notice]

    def change(session: Session) -> Session:
        return owing(session.having(limited_until=until, given=given or None), *owed)

    changed = update(store, team_name, SESSION.also_closed, session.agent, change)[1]
    history.note(store, team_name, session.agent, "agent limited", until=until)
    deliver(store, team_name, SESSION.also_closed, changed)
    if choice == RELEASE:
        claims.release_tasks_of(store, team, session.agent, session.agent, f"limited by its provider until {until}")
    return consequence


_WHAT_THEN = {
    WAIT: "it keeps its tasks, and continues by itself after that time.",
    RELEASE: "its tasks are released; a message after that time resumes it.",
    "": "a message after that time resumes it. `teams set onLimit wait` lets agents continue by themselves.",
}

_OTHERWISE = "it continues with {other}, in a new session."
