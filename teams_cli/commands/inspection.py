"""Commands that inspect and configure a team: history, doctor, settings, and watching it live."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter

from teams_cli import __version__, environment, errors, extensions, text
from teams_cli.agents import budgets, logs, notifying, resuming, sessions, waking
from teams_cli.clients import known, profiles
from teams_cli.clock import clock_time, length
from teams_cli.commands.call import Call, Outcome, Stream
from teams_cli.commands.declaration import Command, Table, argument, in_group, option, row_limit, switch
from teams_cli.commands.inbox import agent_state, state_in_words
from teams_cli.commands.questions import has_person, require_person, settle
from teams_cli.messages.notices import deliver
from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.store import opening, pace
from teams_cli.store.files.engine import FILES
from teams_cli.teams import config, history, settings, teams
from teams_cli.teams.teams import TEAM
from teams_cli.text import counts_of
from teams_cli.views import board

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from typing import Any

    from teams_cli.commands.declaration import Parts


_SHORT = 100
"""How many characters of a text a row shows."""
_HISTORY = """List every change of the team with its actor, oldest first. With --follow, new changes follow as they
happen.

--since takes a time (2026-01-25T23:00:00Z), a day (2026-01-25, today) or how long ago (90s, 10m, 2h, 1d). With --follow
and --json, each line is one change as a JSON object.
"""
_DOCTOR = """Find problems: damaged files, missing blockers, cycles, expired claims, leftovers.

With --fix, make the repairs that lose nothing; damaged files are moved to `quarantine` unchanged. With --client, test
whether that client's hooks answer, and whether a message wakes it. The test runs the client in a hidden terminal, and
takes two short turns of its model. With --turn, the client takes one headless turn instead, which tests a hook; `--turn
--wake` runs both tests. The exit status is 1 if there are problems.
"""
_SET = """Change a setting of the team, or, with --user, your default for new teams.

`budget` limits the tokens of the whole team; with --for, of one agent or run. At 80 % of a budget, the leader and the
human are notified. When the budget is used up, no turn begins until somebody raises it.

An empty value, `teams set KEY ""`, removes the team's own value or, with --user, yours. Then the default counts again.

With --user, `store` says where your teams are: `files`, or the postgresql:// address of a database.

Raises:
    InvalidValue: There is no such setting, or the value is not valid.
"""
_STORE = "store"


def _history(call: Call, since: str | None, limit: int | None, follow: bool) -> Any:
    team = call.load_team().name
    moment = history.moment(since, call.store.now()) if since else None
    if follow:
        return Stream(_follow(call, team, moment, limit))
    return [entry for _, entry in history.newest(call.store, team, moment, limit)]


def _follow(call: Call, team: str, moment: datetime | None, limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield the newest entries of the history since *moment*, at most *limit*, and then new entries endlessly."""
    shown_to = 0
    for position, entry in history.newest(call.store, team, moment, limit):
        shown_to = position
        yield entry

    def has_more() -> bool:
        return any(call.store.history(team, shown_to))

    while True:
        for position, entry in call.store.history(team, shown_to):
            shown_to = position
            if moment is None or history.is_since(entry, moment):
                yield entry
        pace.sleep_until(call.store, team, has_more, None)


def _set(call: Call, key: str, value: str, user: bool, of: str | None) -> Any:
    """Change a setting of the team or, with *user*, the user's default. *of* is the agent or run with the budget."""
    if key == budgets.SETTING and not user:
        if of is None:
            changed: Any = settings.change(call.store, call.team, call.caller, key, value)
        else:
            changed = budgets.change(call.store, call.team, call.caller, of, value)
        # Agents with mail may have waited for a higher budget.
        call.try_to(lambda: waking.wake_all_with_mail(call.store, call.load_team(), call.config, call.environ))
        return {"key": key, "value": changed, "source": _source(value, "team"), **({"for": of} if of else {})}
    if of is not None:
        raise errors.WrongUsage(f"{key} applies to the whole team", "Leave out --for.")
    value_is_client = key == "harness" or (key == resuming.ON_LIMIT and value not in resuming.LIMIT_CHOICES)
    if value_is_client and value:
        profiles.get(value, call.config)  # refuses an unknown client
    if user:
        return {"key": key, "value": _set_of_user(call, key, value), "source": _source(value, "user")}
    if key == _STORE:
        raise errors.InvalidValue("store applies to all your teams", "Use --user.")
    changed = settings.change(call.store, call.team, call.caller, key, value)
    # The setting is changed, so failures of what follows are only reported: notices, and the start of notifications.
    call.try_to(lambda: deliver(call.store, call.team, TEAM, call.load_team()))
    call.try_to(lambda: call.notify(call.load_team()))
    return {"key": key, "value": changed, "source": _source(value, "team")}


def _source(value: str, changed: str) -> str:
    """Return the source of a setting after a change: *changed*, unless an empty *value* restored the default."""
    return changed if value else "default"


def words_of_set(done: dict[str, Any]) -> list[str]:
    value = "none" if done["value"] == "" else done["value"]
    return [f"{done['key']}: {value} ({done.get('for') or done['source']})"]


def _set_of_user(call: Call, key: str, value: str) -> Any:
    """Set the user's default of a setting, or the store of the user's commands. Return the value now in effect."""
    if call.agent != HUMAN:
        raise errors.NotAllowed("only the human may set defaults", f"Run it with --as {HUMAN}.")
    if key == _STORE:
        address = opening.check_address(value) if value else FILES
        config.change(call.store.root, lambda user_config: user_config.having(store=value or None))
        return opening.without_secrets(address)
    setting = settings.known(key)
    value_now = setting.parse(key, value) if value else setting.default  # refuses a wrong value before the change

    def with_setting(user_config: config.Config) -> config.Config:
        return user_config.having(settings=settings.changed_table(user_config.settings, key, value))

    config.change(call.store.root, with_setting)
    return value_now


def _settings(call: Call) -> Any:
    sources = call.name_sources()
    team_name = sources["team"][0]
    team = teams.get(call.store, team_name) if team_name else None
    return {
        "call": {setting: {"value": value or None, "source": source} for setting, (value, source) in sources.items()},
        "settings": settings.effective(team, call.config),
    }


def _version(call: Call) -> Any:
    python = ".".join(str(part) for part in sys.version_info[:3])
    return {"version": __version__, "python": python, "root": call.store.root, "store": call.store.address}


def _doctor(call: Call, fix: bool, only: str | None, client: str | None, turn: bool, wake: bool) -> Any:
    """Examine all teams, or the team named *only*, or test the *client*. With *fix*, repair the teams. Return the
    findings.

    With *turn*, the client takes a headless turn, which tests a hook. With *wake*, a message tests whether mail wakes
    the client. If neither is set, a client that is used in terminals is tested as with *wake*.
    """
    from teams_cli import doctor

    if client:
        findings = list(doctor.examine_client(client, call.store.root, call.config, call.environ, os.getcwd(), turn))
        is_used_in_terminals = known.get(client).seat is not None
        tests_waking = wake or (is_used_in_terminals and not turn)
        if tests_waking and findings[0]["level"] == "good":  # else the client can't be started
            see_it_wake = extensions.needed("see mail wake a client", "this examination", "terminals")
            findings.append(see_it_wake(client, call.config, call.environ, os.getcwd()))
    else:
        for team in call.store.teams():
            if only in (None, "", team):
                call.settle(team)
        opencode_directory = environment.opencode_directory(call.store.root, call.environ)
        findings = doctor.examine(
            call.store, call.config, fix, only or "", opencode_directory, call.environ, call.current_directory
        )
        findings += doctor.roots_apart(call.store.root, call.environ)
    is_bad = any(finding["level"] == "problem" for finding in findings)
    document = {"root": call.store.root, "store": call.store.address, "healthy": not is_bad, "findings": findings}
    return Outcome(document, 1 if is_bad else 0)


_WATCH = """Watch the team: progress, what waits for you, failures, agents, tasks and messages.

In a terminal, `q` ends the command, `j` and `k` or the arrow keys scroll, Tab chooses an agent, Enter shows its output,
and `a` answers the first question that waits for you. Without a terminal, the command prints the present state, and
then a line for each change. With --json, it prints the whole state after each change, as one JSON object per line.
"""
_ON = """Print events as they happen, until interrupted. With --run, also run a command for them.

`waiting` is a question, plan, review or message for you. `failed` is a failed task or agent. `settled` is the end of
all tasks. Events of the same moment are passed to one run of the command, as JSON: `team`, `at`, `text`, and `events`,
each with `event`, `kind`, `id`, `text` and `next`. `teams set notify COMMAND` runs a command for events even when no
terminal is open.
"""
_EVENTS = ("waiting", "failed", "settled", "any")
_COLLECT_CHANGES = 0.05
"""Seconds to wait for more changes, so that they are shown together."""
_NEXT_LOOK = 5.0
"""Seconds after which the live view looks again even without a change."""
_MOST_LINES = 500
_COLLECT_EVENTS = 0.2
"""Seconds to wait for more events, so that they are reported together."""


def _watch(call: Call, once: bool) -> Any:
    team = call.load_team().name
    if once:
        return board.frame(call.store, team, call.problems)

    def answer(question: str, text: str) -> str:  # returns the outcome in words
        require_person(call, team)
        return f"{question}: {settle(call.store, questions.get(call.store, team, question), text)}"

    def output_of(agent: str) -> list[Any]:  # an agent that `teams` did not start has only its changes
        session = sessions.find(call.store, team, agent)
        if session:
            return list(logs.tail(call.store, team, agent, session.turns, _MOST_LINES))
        return [entry for _, entry in call.store.history(team) if entry.get("actor") == agent][-_MOST_LINES:]

    answer_here = answer if has_person(call, team) else None
    return Stream(_frames(call, team), live=True, output_of=output_of, answer=answer_here)


def _frames(call: Call, team: str) -> Iterator[dict[str, Any]]:
    """Yield the present view of the team, and after each change a new view with the entries of the history since."""
    watch = call.store.watch(team)
    try:
        position = max((position for position, _ in call.store.history(team)), default=0)
        shown_frame = board.frame(call.store, team, [])
        yield shown_frame
        while True:
            watch.wait(_NEXT_LOOK)
            time.sleep(_COLLECT_CHANGES)
            entries = list(call.store.history(team, position))
            if entries:
                position = entries[-1][0]
            frame = board.frame(call.store, team, [])
            if entries or _lasting(frame) != _lasting(shown_frame):
                shown_frame = frame
                yield {**frame, "changes": [entry for _, entry in entries]}
    finally:
        watch.close()


def _lasting(frame: dict[str, Any]) -> dict[str, Any]:
    """Return the frame without the field `course`, whose estimate changes even if nothing happens."""
    return {key: value for key, value in frame.items() if key != "course"}


def _events(call: Call, kinds: tuple[str, ...], command: str | None, once: bool) -> Iterator[dict[str, Any]]:
    """Yield the events of these *kinds* that happen from now on, in batches, and run the *command* for each batch. With
    *once*, end after the first batch.
    """

    def current() -> dict[str, dict[str, Any]]:
        events = notifying.current_events(call.store, call.load_team())
        return {key: event for key, event in events.items() if event["event"] in kinds}

    before = current()
    while True:
        pace.sleep_until(call.store, call.team, lambda: bool(current().keys() - before), None)  # noqa: B023
        time.sleep(_COLLECT_EVENTS)
        events = current()
        new_events = [event for key, event in events.items() if key not in before]
        before = events
        if not new_events:
            continue
        document = notifying.document(call.team, new_events, teams.now(call.store))
        problem = notifying.run(command, document, call.environ) if command else ""
        if problem:
            call.say(f"teams: the command failed: {problem}")
        yield {**document, **({"failure": problem} if problem else {})}
        if once:
            return


def words_of_changes(entries: Any) -> Parts:
    if isinstance(entries, dict):  # one change, from `history --follow`
        entries = [entries]
    lines: Parts = [f"{clock_time(str(entry.get('at')))}  {history.line(entry)}" for entry in entries]
    return lines or ["no changes"]


def words_of_doctor(document: dict[str, Any]) -> Parts:
    if not document["findings"]:
        return [f"{document['root']}: healthy"]
    lines = []
    for item, following in zip(document["findings"], [*document["findings"][1:], {}], strict=True):
        lines.append(f"{item['level']}: {item['where']}: {item['what']}")
        if (remedy := _remedy(item)) and remedy != _remedy(following):  # findings in a row share a line
            lines.append(f"  {remedy}")
    return [*lines]


def _remedy(finding: dict[str, Any]) -> str:
    """Return what to do about the finding; "" if nothing has to be done, no remedy is known, or *finding* is empty."""
    return "" if finding.get("level") in (None, "fixed") else str(finding["remedy"] or "")


def words_of_settings(document: dict[str, Any]) -> Parts:
    rows = [[setting, str(place["value"] or "-"), place["source"], ""] for setting, place in document["call"].items()]
    rows += [[row["key"], str(row["value"]), row["source"], row["help"]] for row in document["settings"]]
    return [Table(["setting", "value", "from", "what it is"], rows)]


def words_of_version(document: dict[str, Any]) -> Parts:
    return [f"teams {document['version']} on Python {document['python']}; the teams are in {document['store']}"]


def words_of_frame(frame: dict[str, Any]) -> Parts:
    closed = ", closed" if frame["state"] == "closed" else ""
    waiting = [[row["id"], row["from"], text.clipped_line(row["text"], _SHORT)] for row in frame["waiting"]]
    failed = [
        [row["id"], row["status"], str(row["waiting"] or "-"), text.clipped_line(row["reason"], _SHORT)]
        for row in frame["failed"]
    ]
    tasks = []
    for task in frame["tasks"]:
        is_blocked = task["status"] == "pending" and task["blocked"]
        status = "blocked" if is_blocked else task["status"]
        tasks.append([task["id"], status, task["priority"], task.get("owner", "-"), task["title"]])
    return [
        f"team {frame['team']} (leader {frame['leader']}{closed})",
        _course(frame["course"]),
        *([f"waits for you: {len(waiting)}"] if waiting else []),
        Table(["what", "from", "text"], waiting),
        *([f"failed: {len(failed)}"] if failed else []),
        Table(["task", "status", "blocks", "reason"], failed),
        f"agents: {len(frame['agents'])}",
        Table(["agent", "role", "state", "unread", "status"], [_agent(row) for row in frame["agents"]], "no agents"),
        f"tasks: {counts_of(frame['taskCounts'])}",
        *([f"longest chain of tasks: {', '.join(path)}"] if (path := frame["course"]["criticalPath"]) else []),
        Table(["task", "status", "priority", "owner", "title"], tasks),
        "messages:" if frame["messages"] else "no messages",
        Table(["message", "at", "from", "to", "text"], [_message(message) for message in frame["messages"]]),
    ]


def words_of_happened(document: dict[str, Any]) -> Parts:
    lines: Parts = []
    for event in document["events"]:
        lines.append(f"{event['event']}: {event['text']}")
        lines += [f"next: {event['next']}"] if "next" in event else []
    return lines


def _course(course: dict[str, Any]) -> str:
    reviewed = f", {course['inReview']} in review" if course["inReview"] else ""
    done = f"{course['done']} of {course['total']} done"
    counts = f"{done}, {course['inProgress']} in progress{reviewed}, {course['ready']} ready"
    held_up = f" (blocking {course['heldUp']})" if course["heldUp"] else ""
    blocked_and_failed = f"{course['blocked']} blocked, {course['failed']} failed{held_up}"
    return f"{course['percent']} %: {counts}, {blocked_and_failed}; {estimate_in_words(course)}"


def estimate_in_words(course: dict[str, Any]) -> str:
    """Return the estimated time that is left, or why there is no estimate."""
    if estimate := course["estimate"]:
        return f"about {length(estimate['fromSeconds'])} to {length(estimate['toSeconds'])} left"
    return f"no estimate: {course['noEstimate']}"


def _agent(row: dict[str, Any]) -> list[str]:
    status = text.clipped_line(row["why"] or row["status"] or "-", _SHORT)
    return [row["name"], row["role"], agent_state(row), str(row["queueDepth"]), status]


def _message(message: dict[str, Any]) -> list[str]:
    return [
        message["id"],
        clock_time(message["timestamp"]),
        message["from"],
        message["to"] + reach_in_short(message),
        text.clipped_line(message["message"], _SHORT),
    ]


def reach_in_short(message: dict[str, Any]) -> str:
    """Return, in brackets, how far the message got: its state for each recipient, and whether its acknowledgement is
    overdue; "" if this is not known.
    """
    counts = Counter(state_in_words(each) for each in message.get("reach", ()))
    has_one_recipient = sum(counts.values()) == 1
    states = [state if has_one_recipient else f"{count} {state}" for state, count in counts.items()]
    states += ["not acknowledged in time"] if message.get("overdue") else []
    return f" ({', '.join(states)})" if states else ""


COMMANDS = in_group(
    "Inspect",
    Command(
        "history",
        _history,
        option("--since", "Only changes from this time on.", metavar="TIME"),
        row_limit("Show only the newest N."),
        switch("--follow", "Continue with new changes until interrupted.", at_shell=True),
        doc=_HISTORY,
        words=words_of_changes,
        traits="reads newest_last",
        held="since limit follow",
        example="history --since 10m",
        also="events changes activity audit log",
    ),
    Command(
        "doctor",
        _doctor,
        switch("--fix", "Repair what can be repaired."),
        option("--team -t", "Examine only this team.", name="only"),
        option("--client", "Test this client instead of the teams.", choices=known.installable()),
        switch("--turn", "Let the client take one headless turn, and test a hook in it."),
        switch("--wake", "Run the client in a hidden terminal, and test that a message wakes it."),
        doc=_DOCTOR,
        in_team=False,
        changes=False,
        words=words_of_doctor,
        traits="at_shell",
        example="doctor",
        also="check health fsck diagnose supervisor waker",
    ),
    Command(
        "set",
        _set,
        argument("KEY", "The setting; `teams settings` lists them.", name="key"),
        argument(
            "VALUE",
            "The new value. For `rules` it is a text, or `-` to read one from standard input. An empty value"
            " restores the default.",
            name="value",
            text=True,
        ),
        switch("--user", "Change your default for new teams.", at_shell=True),
        option("--for", "With `budget`: the agent or run whose tokens are limited.", name="of", metavar="AGENT|RUN"),
        doc=_SET,
        words=words_of_set,
        traits="repeatable for_person",
        example="set staleAfterSeconds 600",
        also={"config configure set-setting": "", "rate-limited limited": "set onLimit VALUE"},
    ),
    Command(
        "settings",
        _settings,
        doc="List the settings with their values and sources, and the team, agent and store that commands use.",
        words=words_of_settings,
        traits="reads",
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
        words=words_of_version,
        traits="at_shell",
        held="",
        example="version",
    ),
    Command(
        "watch",
        _watch,
        switch("--once", "Show the present state, and end."),
        doc=_WATCH,
        changes=False,
        words=lambda seen: words_of_changes(seen["changes"]) if "changes" in seen else words_of_frame(seen),
        traits="at_shell",
        example="watch",
        also="top monitor",
    ),
    Command(
        "on",
        lambda call, event, command, once: Stream(
            _events(call, notifying.EVENTS if event == "any" else (event,), command, once)
        ),
        argument("EVENT", "The events to print: waiting, failed, settled, or any.", choices=_EVENTS, name="event"),
        option(
            "--run",
            "Run this command, which gets the events as JSON on standard input.",
            metavar="COMMAND",
            name="command",
        ),
        switch("--once", "End after the first event."),
        doc=_ON,
        changes=False,
        words=words_of_happened,
        traits="at_shell",
        example='on failed --run "notify-send teams"',
        also="trigger when notify notification notifications",
    ),
)
