"""The settings of a team: their names, what they may be, and where a value comes from."""

from __future__ import annotations

import os

from teams_cli import errors, extensions, text
from teams_cli.clock import seconds_in
from teams_cli.environment import LEVELS
from teams_cli.names import HUMAN, check_name
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store, update
from teams_cli.teams import history
from teams_cli.teams.permission import require
from teams_cli.teams.teams import SILENCE, TEAM, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.teams.config import Config
    from teams_cli.teams.permission import Caller

    Value = bool | int | float | str


class Setting:
    """One setting: its default and its allowed values. These are *choices*, any *name*, any text (*prose*), or the
    numbers from *least* to *most*. A number of *seconds* may have a fraction, and may be given with a unit. All other
    numbers are whole.
    """

    def __init__(
        self,
        default: Value,
        help: str,
        *,
        choices: tuple[str, ...] = (),
        name: bool = False,
        seconds: bool = False,
        prose: bool = False,
        files: bool = False,
        of_person: bool = False,
        least: float = 0,
        most: float = 1e6,
    ) -> None:
        self.default = default
        self.help = help
        self.choices = choices
        self.name = name
        self.seconds = seconds
        self.prose = prose
        self.files = files
        """Whether the value is a list of patterns for files in the repository, separated by spaces."""
        self.of_person = of_person
        """Whether only the human may set it, because it runs a command for the human, or acts in the human's name."""
        self.least = least
        self.most = most

    def parse(self, key: str, word: str) -> Value:
        """Return the value that *word* means for the setting *key*.

        Raises:
            InvalidValue: *word* is not one of the choices, not a name, or not a number within the bounds.
        """
        if self.name:
            if word == OFF and not self.default:  # a setting that is empty by default can be emptied again
                return self.default
            return check_name(word, key)
        if self.of_person and not word.strip():
            raise errors.InvalidValue(f"the command of {key} is blank", f"To switch it off: teams set {key} {OFF}")
        if self.files and word.strip():
            text.file_patterns(word.split())  # only to check them
        if self.prose:
            return text.checked(word, key, _MAX_TEXT)
        if self.choices:
            if word not in self.choices:
                raise errors.InvalidValue(
                    f"{word!r} is not a valid value of {key}", f"Choose one of: {', '.join(self.choices)}."
                )
            return word
        try:
            number = seconds_in(word) if self.seconds else float(word)
        except ValueError:
            number = float("nan")  # not within any bounds
        is_whole = self.seconds or number.is_integer()
        if not self.least <= number <= self.most or not is_whole:
            what = "a number" if self.seconds else "a whole number"
            unit = " seconds, or one with its unit: 90s, 5m, 2h, 1d" if self.seconds else ""
            raise errors.InvalidValue(
                f"{word!r} is not a valid value of {key}",
                f"Give {what} from {self.least:g} to {self.most:.15g}{unit}.",
            )
        return int(number) if number.is_integer() else number


RULES = "rules"
OVERLAPS = "overlaps"
CIRCLING_AFTER = "circlingAfter"
WORKTREE_SETUP = "worktree.setup"
WORKTREE_COPY = "worktree.copy"
WORKTREE_KEPT = "worktree.keptFor"
OFF = "off"
_MAX_TEXT = 4 * 1024

SETTINGS: dict[str, Setting] = {
    "staleAfterSeconds": Setting(
        SILENCE,
        "seconds of silence after which a claim expires and an agent counts as stale",
        seconds=True,
        least=1,
        most=30 * 24 * 3600,
    ),
    "harness": Setting("shell", "the default client for starting agents", name=True),
    "permissions": Setting(
        "edit",
        "what agents may do without asking you: nothing (`ask`), edit their directory (`edit`), or everything that"
        " you may do (`all`)",
        choices=LEVELS,
    ),
    "delivery": Setting(
        "queue",
        "whether a message to a working agent waits for the end of its turn (`queue`) or interrupts it (`interject`)",
        choices=("queue", "interject"),
    ),
    RULES: Setting("", "the rules for every member", prose=True),
    WORKTREE_SETUP: Setting(
        "", "a command that prepares each new worktree; if it fails, the agent is not started", prose=True
    ),
    WORKTREE_COPY: Setting(
        "",
        "ignored files that each new worktree needs: patterns, separated by spaces",
        prose=True,
        files=True,
    ),
    WORKTREE_KEPT: Setting(
        30 * 86400,
        "seconds for which the work of a removed worktree is kept; after that, `teams prune` deletes it",
        seconds=True,
        most=10 * 365 * 86400,
    ),
    OVERLAPS: Setting(
        "advise",
        "what happens when a member writes a file that another member is working on: the writer is warned (`advise`),"
        " or the write is refused (`deny`)",
        choices=("advise", "deny"),
    ),
    "notify": Setting(
        "",
        "the command to run when something needs you, something fails, or all tasks have ended; it gets JSON on"
        " standard input; `off` means no command",
        prose=True,
        of_person=True,
    ),
    "notify_waiting": Setting(
        "", "the command for events that need you, instead of `notify`", prose=True, of_person=True
    ),
    "notify_failed": Setting("", "the command for failures, instead of `notify`", prose=True, of_person=True),
    "notify_settled": Setting(
        "", "the command for the end of all tasks, instead of `notify`", prose=True, of_person=True
    ),
    "checkTimeout": Setting(1800, "seconds that the check of a task may take", seconds=True, least=1, most=86400),
    "max_depth": Setting(
        3,
        "how many levels deep agents may be nested: an agent that another agent starts is one level deeper",
        least=0,
        most=100,
    ),
    "ack_timeout": Setting(
        600,
        "seconds within which a message sent with --ack-required must be handled",
        seconds=True,
        least=0.1,
        most=30 * 86400,
    ),
    "broadcast": Setting(
        "false",
        "whom `ask-others` asks: nobody (`false`), the other agents (`agents`), or the human (`human`)",
        choices=("false", "agents", "human"),
    ),
    "broadcast_timeout": Setting(
        300, "seconds for which a question waits for answers", seconds=True, least=0.1, most=86400
    ),
    "max_broadcasts_per_agent": Setting(10, "how many questions of one agent may be open at once", least=1),
    "broadcast_sensitivity": Setting(
        "medium", "how readily agents should ask questions", choices=("low", "medium", "high")
    ),
    "response_depth": Setting("medium", "how detailed answers should be", choices=("low", "medium", "high")),
    "max_shadows": Setting(
        2 * (os.cpu_count() or 1),
        "how many copies of sessions (forks) may answer questions at once",
        least=1,
        most=1000,
    ),
    CIRCLING_AFTER: Setting(
        900,
        "seconds for which an agent may repeat the same calls without changing anything, before the leader is notified;"
        " 0 means never",
        seconds=True,
        most=30 * 86400,
    ),
    "wakeAgainAfter": Setting(
        30,
        "seconds after which a client that was woken but read nothing is woken again; two more attempts follow, with"
        " delays 4 times and 20 times as long",
        seconds=True,
        least=0.1,
        most=86400,
    ),
    "tellPermissionAfter": Setting(
        60,
        "seconds after which the leader is notified that a member still waits for a permission",
        seconds=True,
        least=0.1,
        most=86400,
    ),
    "max_resumes_per_hour": Setting(20, "how many times in an hour an agent may resume the same other agent", least=1),
    "onLimit": Setting(
        "",
        "what a rate-limited agent does: wait and then continue (`wait`), release its tasks (`release`), or continue"
        " with another harness (its name)",
        name=True,
    ),
    "budget": Setting(0, "how many tokens the agents of the team may use in all; 0 means no limit", most=1e15),
}


def every() -> dict[str, Setting]:
    """Return all settings by their keys: those of the core, then those of extensions."""
    return {**SETTINGS, **extensions.settings()}


def find(key: str) -> Setting | None:
    """Return the setting *key*; None if there is none. Extensions are loaded only for a setting that the core lacks."""
    return SETTINGS.get(key) or extensions.settings().get(key)


def known(key: str) -> Setting:
    """Return the setting with that name.

    Raises:
        InvalidValue: There is no such setting. The hint names the setting that was probably meant, or all settings.
    """
    if setting := find(key):
        return setting

    def letters(name: str) -> str:
        return "".join(letter for letter in name.lower() if letter.isalnum())

    meant = next((name for name in every() if letters(name) == letters(key)), None)
    hint = f"Did you mean {meant}?" if meant else f"Settings: {', '.join(every())}."
    raise errors.InvalidValue(f"there is no setting {key!r}", hint)


def lands_by_itself(team: Team) -> bool:
    """Whether each completed task is queued at once to be merged, as the setting `landing` of an extension says."""
    return team.settings.get("landing") == "completed"


def refuse_persons(key: str, caller: Caller) -> None:
    """Raise NotAllowed if only the human may change the setting *key*, and the caller is an agent."""
    setting = find(key)
    if setting and setting.of_person and not caller.is_human:
        raise errors.NotAllowed(
            f"{key} acts in the name of the human, who alone may set it",
            f"The human sets it: teams set {key} VALUE --as {HUMAN}",
        )


def changed_table(table: dict[str, Any], key: str, word: str) -> dict[str, Any]:
    """Return the *table* of settings with the value that *word* means for *key*. If *word* is empty, return the table
    without *key*, so that the default of the setting applies.

    Raises:
        InvalidValue: There is no such setting, or it can't have this value.
    """
    setting = known(key)
    if not word:
        return {other: value for other, value in table.items() if other != key}
    return {**table, key: setting.parse(key, word)}


def change(store: Store, team_name: str, caller: Caller | None, key: str, word: str) -> Value:
    """Change a setting of the team. If *word* is empty, the team's own value is removed, so that the default applies
    again. Returns the value that applies now.

    Raises:
        InvalidValue: There is no such setting, or it can't have this value.
    """
    caller = require(store, team_name, caller, "set", key).caller
    setting = known(key)
    value = setting.parse(key, word) if word else setting.default
    refuse_persons(key, caller)

    def edit(team: Team) -> Team:
        table = changed_table(team.settings, key, word)
        if table == team.settings:
            return team
        changed = team.having(settings=table)
        return owing(changed, *_notices_of_rules(changed, caller.name)) if key == RULES else changed

    before, team = update(store, team_name, TEAM, team_name, edit)
    if before is not team:
        history.note(store, team_name, caller.name, "setting changed", key=key, value=value)
    return value


def _notices_of_rules(team: Team, by: str) -> list[Owed]:
    """Return a notice for each other member that the member *by* has changed the team's rules."""
    rules = team.settings.get(RULES)
    body = f"{by} set the rules of the team:\n{rules}" if rules else f"{by} removed the rules of the team"
    uid = f"rules-{os.urandom(6).hex()}"
    return [
        Owed(to=name, message=body, uid=f"{uid}~{name}", by=by, about=RULES, event="rules-changed")
        for name in team.active_names()
        if name != by
    ]


def value(team: Team, key: str) -> Value:
    """Return the team's value of a setting; if the team has none, the default of the setting."""
    return team.settings[key] if key in team.settings else known(key).default


def of_user(config: Config) -> dict[str, Value]:
    """Return the values that the user's configuration gives to settings. A new team starts with these values.

    Raises:
        DamagedRecord: A key is not the name of a setting, or its value is not valid; the error names it.
    """
    values = {}
    for key, value in config.settings.items():
        try:
            values[key] = parse_stored(key, value)
        except errors.InvalidValue as wrong:
            raise errors.DamagedRecord(f"config.json: settings.{key}: {wrong.message}", wrong.hint) from None
    return values


def parse_stored(key: str, value: Value) -> Value:
    """Check the *value* that the user's configuration gives to the setting *key*. Return it in the form in which a team
    stores it.

    Raises:
        InvalidValue: There is no such setting, or it can't have this value.
    """
    setting = known(key)
    if isinstance(value, float) and not setting.seconds:
        value = int(value)  # versions up to 0.2 stored fractions also for settings that are whole numbers
    word = "false" if value is False else str(value)  # JSON without quotes may mean the choice `false`
    return setting.parse(key, word)


def effective(team: Team | None, config: Config) -> list[dict[str, Any]]:
    """Return each setting with its value, and with the source of the value: `team`, `user` or `default`. If *team* is
    None, the values are those with which a new team starts.
    """
    rows = []
    for key, setting in every().items():
        row: dict[str, Any] = {"key": key, "value": setting.default, "source": "default", "help": setting.help}
        if team and key in team.settings:
            row.update(value=team.settings[key], source="team")
        elif team is None and key in config.settings:
            row.update(value=config.settings[key], source="user")
        rows.append(row)
    return rows
