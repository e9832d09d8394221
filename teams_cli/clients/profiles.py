"""Profiles: how a client is started, resumed and interrupted, and which versions of the client were tried."""

from __future__ import annotations

import os
from typing import NamedTuple

from teams_cli import errors
from teams_cli.clients import environments, known, own_entries, permissions
from teams_cli.records.records import Record, field
from teams_cli.store.files.engine import FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from teams_cli.clients.contract import Client
    from teams_cli.records.types import HarnessInput, Ladder, Name, Object, Permissions, Text, Word
    from teams_cli.teams.config import Config


MODEL = "{model}"
ACP = "{acp}"
_SHELLS = ("sh", "dash", "bash", "zsh", "fish", "ksh", "ash", "busybox", "env")


class Profile(Record):
    """Describes how to run a client.

    *start*, *resume* and *fork* are command lines, in which these words are replaced:

    * `{prompt}`, `{session_id}`, `{agent}`; `{root}`, where the teams are stored; `{network}`, `true` if `teams` needs
      the network for them, else `false`
    * `{model}`: the words of *model*, if a model was chosen; in these words, `{model}` stands for its name
    * `{hooks}`: the arguments with which the known client *hooks* runs our hooks; `{mcp}`: the arguments with which the
      known client *mcp* starts our MCP server; `{permissions}`: the words in *modes* for the permission level
    * `{acp}`: the words of *acp*, the command of a client that speaks the Agent Client Protocol. A profile with nothing
      but *acp* is run like the harness `acp`.
    * in *fork* only: `{session_file}`, the newest file that matches the glob *session_file* (with the client's
      variables, `{session_id}`, and `{session_id:.8}` for its beginning); `{profiles}`, the directory of known clients

    *input* is what the client reads on standard input: the prompt, or the messages of a resumed turn as JSON. If
    *introduced* is set, the client may have none of our hooks, so its first prompt also says who the agent is and who
    else is there.

    *session_id* and *output* say where the session id and the answer are in the output. The key `from` is `preset`,
    `stdout`, `json` (a JSON document), `items` (one of its items) or `lines` (a line of JSON). The last document that
    matches `match` is used, and `path` is a path in it. *usage* finds counts of tokens in the same way: `input`,
    `cached` and `output` are paths of numbers to add, and `each` is the path of an object with counts for each model.
    `grows` means that the client counts from the beginning of its session. If only some of its versions do this, `turn`
    has the paths of the counts for the turn alone. If a count has grown by less than the turn used, the client began to
    count anew in this turn.

    *once* names a known client. If options can't give a single run our hooks and our server, settings that we write for
    this client do. A failed turn of a client with a *provider* may be due to a limit of that provider. *modes* says how
    the client is held to each level, `ask`, `edit` and `all`: by words, or by `words` and variables to `set`. If a
    level is impossible, a text in their place says why. *permissions* is the default level; without it, the team's
    setting applies.
    """

    name: Name
    description: Text | None = None
    start: list[Text]
    resume: list[Text]
    fork: list[Text] | None = None
    model: list[Text] | None = None
    acp: list[Text] | None = None
    session_file: Text | None = None
    input: HarnessInput = "prompt"
    introduced: bool = False
    session_id: Object = field(default_factory=dict)
    output: Object = field(default_factory=dict)
    usage: Object = field(default_factory=dict)
    failed: Object = field(default_factory=dict)
    provider: bool = True
    interrupt: Ladder = field(default_factory=list)
    hooks: Word | None = None
    mcp: Word | None = None
    once: Word | None = None
    permissions: Permissions | None = None
    modes: Object = field(default_factory=dict)
    set: Object = field(default_factory=dict)
    strip: list[Word] = field(default_factory=lambda: [*environments.OURS, *environments.OF_CLIENTS])
    keep: list[Word] = field(default_factory=lambda: [*environments.SETTINGS])

    @property
    def program(self) -> str:
        """The program of the client itself, even if a program of ours starts it."""
        return (self.acp or self.start)[0]

    @property
    def has_provider(self) -> bool:
        """Whether the client has a provider, which may limit its requests. A shell that runs the prompt as a command
        has none.
        """
        word_before_prompt = self.start[self.start.index("{prompt}") - 1] if "{prompt}" in self.start else ""
        is_shell = os.path.basename(self.start[0]) in _SHELLS
        is_option_c = word_before_prompt.startswith("-") and word_before_prompt.endswith("c")
        runs_prompt = is_shell and is_option_c  # such as `sh -c`, `bash -lc`
        return self.provider and not runs_prompt

    def environment(self, inherited: Mapping[str, str], of_agent: Mapping[str, str]) -> dict[str, str]:
        """Return the environment for the client. It has the *inherited* variables that do not identify another agent,
        the variables that the profile sets, and the variables *of_agent*.
        """
        kept = environments.clean(inherited, self.strip, self.keep)
        return {**kept, **{key: str(value) for key, value in self.set.items()}, **of_agent}


def get(name: str, config: Config | None, command: str | None = None) -> Profile:
    """Return the profile of this name. A profile of the user takes precedence over ours. *command* is the command that
    starts the client, for a harness that leaves it to each agent; else None.

    Raises:
        InvalidValue: There is no such profile, or the profile takes no *command*.
        DamagedRecord: The user's own profile has the wrong shape.
    """
    users_profiles = config.harness if config else {}
    users_profile = users_profiles.get(name)
    client = known.find(name)
    if client is None and "acp" in (users_profile or {}):  # a profile with nothing but `acp` extends this harness
        client = known.find("acp")
    # The user's profile extends ours, unless it says by itself how to start the client.
    is_complete = "start" in (users_profile or {})
    document: dict[str, Any] = {}
    if client and not is_complete:
        document = {**client.profile, "name": name}
    if users_profile is not None:
        from teams_cli.records.types import check_record

        document = {"name": name, **document, **users_profile}
        check_record(Profile, document, f"config.json: harness.{name}")
        _refuse_bad_usage(document, f"config.json: harness.{name}")
    if not document:
        all_names = ", ".join(sorted({*known.names(), *users_profiles}))
        raise errors.InvalidValue(f"there is no harness {name!r}", f"Harnesses: {all_names}; config.json adds more.")
    profile = Profile.from_json(document)
    if command is None:
        return profile
    import shlex

    if ACP not in profile.start or profile.acp:
        raise errors.InvalidValue(f"the harness {profile.name} has its own command", "Use: --harness acp")
    try:
        return profile.having(acp=shlex.split(command))
    except ValueError as error:
        raise errors.InvalidValue(f"the command {command!r} is not valid: {error}", _COMMAND) from None


def _refuse_bad_usage(document: Mapping[str, Any], where: str) -> None:
    """Refuse a profile whose tokens would never be counted, because `usage` has no lists of paths."""
    for key in ("input", "cached", "output"):
        paths = document.get("usage", {}).get(key, [])
        if not (isinstance(paths, list) and all(isinstance(path, str) for path in paths)):
            raise errors.DamagedRecord(
                f"{where}: usage.{key} is not a list of paths", f'Write it as: "{key}": ["usage.{key}"]', where
            )


def refuse_missing(profile: Profile, config: Config | None, environ: Mapping[str, str]) -> None:
    """Refuse a profile with which no agent can be started: its program is not installed, or it leaves the client's
    command to each agent and no command was given. The program is not looked for if the profile is the user's own, or
    if the client has no provider, such as a shell.

    Raises:
        NotInstalled: The program is not on the PATH.
        InvalidValue: The command was not given.
    """
    import shutil

    if ACP in profile.start and not profile.acp:
        raise errors.InvalidValue(f"the harness {profile.name} needs the command of its client", _COMMAND)
    is_users_profile = config is not None and profile.name in config.harness
    if not is_users_profile and profile.has_provider and not shutil.which(profile.program, path=environ.get("PATH")):
        raise errors.NotInstalled(
            f"{profile.program} is not on the PATH, so it can't be started",
            "Install it, or choose another client: --harness NAME",
        )


_COMMAND = 'Give it as: --acp-command "qwen --acp"'


def refuse_model(profile: Profile, model: str) -> None:
    """Refuse a *model* that can't be passed to the client of the profile.

    Raises:
        InvalidValue: The client takes no model, or would mistake this one for an option.
    """
    if model.startswith("-"):
        raise errors.InvalidValue(f"{model!r} is no model: it begins with a dash", "Give the name of a model.")
    if not profile.model or MODEL not in [*profile.start, *(profile.acp or ())]:
        raise errors.InvalidValue(
            f"the harness {profile.name} takes no model",
            "Leave out --model. Or change the harness in config.json: add the key `model`, and write {model} where the "
            "model belongs in `start` and `resume`, or in `acp`.",
        )


def of_model(profile: Profile, model: str | None) -> list[str]:
    """Return the words for `{model}` in a command line; an empty list if no model was chosen."""
    if not model:
        return []
    return [word.replace(MODEL, model) for word in profile.model or ()]


def placeholder_words(
    profile: Profile, python: str, variables: Iterable[str], level: str | None = None
) -> dict[str, list[str]]:
    """Return the words for `{acp}`, `{hooks}`, `{mcp}` and `{permissions}` in a command line. *variables* are the names
    of the client's environment variables, and *level* is its permission level (None stands for `edit`).
    """
    hooks, server = known.find(profile.hooks), known.find(profile.mcp)
    return {
        "acp": profile.acp or [],
        "permissions": permissions.mode(profile, level).words,
        "hooks": hooks.hook_words(python, level) if hooks else [],
        "mcp": server.server_words(python, variables) if server and own_entries.is_server_available() else [],
    }


def fill(words: list[str], values: Mapping[str, str], lists: Mapping[str, Sequence[str]] | None = None) -> list[str]:
    """Return the command line *words* with its placeholders replaced. `{NAME}` within a word becomes the value of NAME
    in *values*. A whole word `{acp}`, `{hooks}`, `{mcp}`, `{model}` or `{permissions}` becomes several words, those
    under this name in *lists*.

    No shell reads the result, so nothing in it is quoted.
    """
    lists = lists or {}
    # These two are replaced first, because their words may have placeholders of their own.
    for placeholder in (ACP, "{permissions}"):
        expanded: list[str] = []
        for word in words:
            expanded += lists.get(placeholder[1:-1], ()) if word == placeholder else [word]
        words = expanded
    filled: list[str] = []
    for word in words:
        if word in ("{hooks}", "{mcp}", MODEL):
            filled += lists.get(word[1:-1], ())
        else:
            for name, value in values.items():
                if word == f"{{{name}}}":
                    word = value
                    break
                if name != "prompt":  # it is only put in as a whole word, because it may have any text
                    word = word.replace(f"{{{name}}}", value)
            filled.append(word)
    return filled


def of_place(root: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the values of `{root}` and `{network}`, which depend on where the teams are stored. *variables* are the
    environment variables by which our commands find the stored teams.
    """
    in_database = variables.get("TEAMS_STORE", FILES) != FILES
    return {"root": root, "network": "true" if in_database else "false"}


def session_file(profile: Profile, session_id: str, variables: Mapping[str, str]) -> str | None:
    """Return the newest file in which the client may keep the session; None if there is no such file. *variables* are
    the client's environment.

    Raises:
        InvalidValue: The pattern of the profile names a value that is missing.
    """
    from glob import escape, glob

    values = {name: escape(value) for name, value in {**variables, "session_id": session_id}.items()}
    try:
        files = glob((profile.session_file or "").format_map(values))
    except (LookupError, ValueError, AttributeError) as error:
        why = f"harness {profile.name}: sessionFile: {error} has no value in {profile.session_file}"
        raise errors.InvalidValue(why, "Use {session_id} and variables of the environment.") from None
    return max(files, key=os.path.getmtime, default=None)


_PATIENCE = 30
"""The seconds that a program may take to print its version."""


class Versions(NamedTuple):
    """The versions of a client that were tried. *oldest* is the oldest tried version. *other* is the first version with
    which `teams` works differently; "" if there is none. *differs* says what is different from that version on, and
    *remedy* says what to do about it.
    """

    oldest: str
    other: str = ""
    differs: str = ""
    remedy: str = ""


_UNKNOWN_VERSION = "does not say its version"


def version_of(program: str, environ: Mapping[str, str]) -> str:
    """Return the first line that the *program* prints when asked for its version, or a text that says that it prints
    none.
    """
    import subprocess

    words = [program, "--version"]
    try:
        process = subprocess.run(
            words, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired):
        return _UNKNOWN_VERSION
    return (process.stdout.strip() or process.stderr.strip() or _UNKNOWN_VERSION).splitlines()[0]


def version_trouble(client: Client, printed: str) -> tuple[str, str]:
    """Return what is wrong with the version that the client *printed*, and what to do about it. Both texts are "" if
    nothing is wrong, or if the version or the versions that were tried are unknown.
    """
    version, versions = _version_in(printed), client.versions
    if not version or not versions:
        return "", ""
    if versions.other and is_at_least(version, versions.other):
        return f"{client.name} {version} {versions.differs}", versions.remedy
    if not is_at_least(version, versions.oldest):
        return f"{client.name} {version} is older than {versions.oldest}, the oldest that was tried", "Update it."
    return "", ""


def is_at_least(printed: str, version: str) -> bool:
    """Whether a program has the *version* or a later one. *printed* is what the program printed about its version."""
    return _numbers_of(_version_in(printed)) >= _numbers_of(version)


def _numbers_of(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part]


def _version_in(printed: str) -> str:
    """Return the first version number in what a program printed, such as "1.18.33"; "" if there is none."""
    import re  # slow to import; hooks need no versions

    match = re.search(r"\d+(\.\d+)+", printed)
    return match[0] if match else ""
