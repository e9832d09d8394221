"""Commands for looking into the teams and setting them."""

from __future__ import annotations

import sys

from teams_cli import __version__, errors
from teams_cli.agents import budgets, checking, waking
from teams_cli.clients import known, profiles
from teams_cli.commands.answers import Stream
from teams_cli.commands.call import Call
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.messages.notices import deliver
from teams_cli.names import HUMAN
from teams_cli.store import opening, pace
from teams_cli.store.files import disk
from teams_cli.teams import config, history, settings, teams
from teams_cli.teams.teams import TEAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import Any

_HISTORY = """List every change of the team with its actor, oldest first; with --follow, also new ones as they come.

--since takes a time (2026-01-25T23:00:00Z), a day (2026-01-25, today) or how long ago (90s, 10m, 2h, 1d). With
--follow and --json, each change is one JSON object a line.
"""
_DOCTOR = """Find problems: damaged files, missing blockers, cycles, expired claims, leftovers.

With --fix, repair what loses nothing: damaged files move to `quarantine` unchanged. With --client, test that
client instead, in a hidden terminal: our hooks answer, and a message wakes it. This takes two short turns of
its model. With --turn it takes one headless turn and tests a hook; with --wake it does both. The exit status is
1 while there are problems.
"""
_SET = """Change a setting of the team, or with --user the default for your new teams.

`budget` limits the tokens of the whole team, or with --for of one agent or run. At 80 % the leader and the
person are notified; when it is used up, no new turn begins until it is raised.

With --user, `store` says where your teams are: `files`, or the postgresql:// address of a database.

Raises:
    InvalidValue: There is no such setting, or the value is not valid.
"""
_SETTINGS = """List the settings, each with its value and where that comes from, and what this call uses."""
_STORE = "store"


def _history(call: Call, since: str | None, limit: int | None, follow: bool) -> Any:
    team = call.load_team().name
    if limit is not None and limit < 1:
        raise errors.WrongUsage(f"{limit} is not a valid limit", "Give a number from 1.")
    moment = history.moment(since, call.store.now()) if since else None
    if follow:
        return Stream(_follow(call, team, moment, limit))
    return [entry for _, entry in history.newest(call.store, team, moment, limit)]


def _follow(call: Call, team: str, moment: datetime | None, limit: int | None) -> Iterator[dict[str, Any]]:
    position = 0
    for behind, entry in history.newest(call.store, team, moment, limit):
        position = behind
        yield entry

    def more() -> bool:
        return any(call.store.history(team, position))

    while True:
        for behind, entry in call.store.history(team, position):
            position = behind
            if moment is None or history.is_since(entry, moment):
                yield entry
        pace.sleep_until(call.store, team, more, None)


def _set(call: Call, key: str, value: str, user: bool, of: str | None) -> Any:
    if key == budgets.SETTING and not user:
        return _set_budget(call, value, of)
    if of is not None:
        raise errors.WrongUsage(f"{key} applies to the whole team", "Leave out --for.")
    if key == "harness" or (key == checking.SETTING and value not in checking.CHOICES):
        profiles.get(value, call.config)  # refuses what is none
    if user:
        return {"key": key, "value": _set_of_user(call, key, value), "source": "user"}
    if key == _STORE:
        raise errors.InvalidValue("store applies to all your teams", "Use --user.")
    changed = settings.change(call.store, call.team, call.caller, key, value)
    call.try_to(lambda: deliver(call.store, call.team, TEAM, call.load_team()))
    call.try_to(call.notify)
    return {"key": key, "value": changed, "source": "team"}


def _set_budget(call: Call, value: str, of: str | None) -> Any:
    """Set how many tokens may be taken; who has mail that waited for this goes on."""
    if of is None:
        changed: Any = settings.change(call.store, call.team, call.caller, budgets.SETTING, value)
    else:
        changed = budgets.change(call.store, call.team, call.caller, of, value)
    call.try_to(lambda: waking.wake_all_with_mail(call.store, call.load_team(), call.config, call.environ))
    return {"key": budgets.SETTING, "value": changed, "source": "team", **({"for": of} if of else {})}


def _set_of_user(call: Call, key: str, value: str) -> Any:
    if call.agent != HUMAN:
        raise errors.NotAllowed("only the human may set defaults", f"Run it with --as {HUMAN}.")
    own = config.own_of(call.store.root)
    if key == _STORE:
        parsed: Any = opening.without_secrets(opening.check_address(value))
        changed = own.having(store=value)
    else:
        parsed = settings.known(key).parse(key, value)
        changed = own.having(settings={**own.settings, key: parsed})
    disk.prepare_root(call.store.root)
    config.save(call.store.root, changed)
    return parsed


def _settings(call: Call) -> Any:
    team_name = call.sources["team"][0]
    team = teams.get(call.store, team_name) if team_name else None
    return {
        "call": {what: {"value": value or None, "source": source} for what, (value, source) in call.sources.items()},
        "settings": settings.effective(team, call.config),
    }


def _version(call: Call) -> Any:
    python = ".".join(str(part) for part in sys.version_info[:3])
    return {"version": __version__, "python": python, "root": call.store.root, "store": call.store.address}


COMMANDS = table(
    "Inspect",
    Command(
        "history",
        _history,
        option("--since", "Only from this time on.", metavar="TIME"),
        option("--limit", "Show at most the newest N.", type=int, metavar="N"),
        switch("--follow", "Continue with new changes until interrupted.", at_shell=True),
        doc=_HISTORY,
        reads=True,
        words="inspection:changes",
        newest_last=True,
        held="since limit follow",
        example="history --since 10m",
        also="events changes activity audit log",
    ),
    Command(
        "doctor",
        "commands.runners.doctor:examine",
        switch("--fix", "Repair what can be repaired."),
        option("--team -t", "Examine only this team.", name="only"),
        option("--client", "Test this client instead.", choices=known.installable()),
        switch("--turn", "Have the client take a headless turn."),
        switch("--wake", "Run the client in a hidden terminal, and test that a message wakes it."),
        doc=_DOCTOR,
        in_team=False,
        changes=False,
        at_shell=True,
        words="inspection:doctor",
        example="doctor",
        also="check health fsck diagnose supervisor waker",
    ),
    Command(
        "set",
        _set,
        argument("KEY", "The setting; `teams settings` lists them.", name="key"),
        argument("VALUE", "Its new value; for `rules` a text, with `-` from standard input.", name="value", text=True),
        switch("--user", "Change your default for new teams.", at_shell=True),
        option("--for", "With `budget`: the agent or run that it limits.", name="of", metavar="AGENT|RUN"),
        doc=_SET,
        words="inspection:set_to",
        repeatable=True,
        for_person=True,
        example="set staleAfterSeconds 600",
        also={"config configure set-setting": "", "rate-limited limited": "set onLimit VALUE"},
    ),
    Command(
        "settings",
        _settings,
        doc=_SETTINGS,
        reads=True,
        words="inspection:settings",
        held="",
        example="settings",
        also="get-settings list-settings show-settings",
    ),
    Command(
        "version",
        _version,
        doc="Show the versions of the program and of Python, and where the teams are kept.",
        in_team=False,
        changes=False,
        at_shell=True,
        words="inspection:version",
        held="",
        example="version",
    ),
)
