"""Profiles: how a client is started, resumed and interrupted, and with which of its versions that was tried."""

from __future__ import annotations

import os

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
    """One client. In the command lines `{prompt}`, `{session_id}`, `{agent}`, `{root}` (where the teams are kept) and
    `{network}` (whether `teams` needs it there, true or false) are filled in word by word; `{model}` becomes the words
    of *model*, in which that is the name, when one was chosen; `{hooks}` becomes the words
    that make the client call our hooks, in the dialect *hooks*,
    and `{mcp}` those that give it our MCP server, as the client *mcp* takes them. In *fork* there are also
    `{session_file}`, the file that the client keeps the session in, found by the pattern *session_file* (a glob with
    the client's variables and `{session_id}`, `{session_id:.8}` for its beginning), and `{profiles}`, the directory of
    the clients that are known.

    *input* says what it reads from standard input: the prompt, or the messages of a resumed turn as JSON. To one that
    is *introduced*, since it may have none of our hooks, the first prompt also says who it is and who else is there.
    *session_id* and *output* say where they are found: `preset`, `stdout`, a `path` in a JSON document (`json`), in
    one of its items (`items`), or in a line of JSON (`lines`), the last that has what `match` says.

    *usage* says where it counts tokens: in documents found like its answer, the paths of numbers that make up `input`,
    `cached` and `output`, `each` where there is one count for each model, under its name, and `grows` if it counts
    from the beginning of its session on. Where only some versions do that, `turn` has the paths of `input` and
    `output` of the turn alone: what grew by less was counted for the turn alone, too.

    Where the command line has no words for hooks and server, *once* names the client as which it takes them: from
    settings of ours that it is given by variables, for this one run.

    `{acp}` becomes the words of *acp*, in which the others are filled in, too: the command of a client that speaks the
    Agent Client Protocol. Where a profile says no more than that, it is started as the harness `acp` is.

    A failed turn of a client with a *provider* may be a limit of that.

    *modes* says how the client is held to what it may do, at each level of `ask`, `edit` and `all`: by the words for
    `{permissions}`, or `words` and variables to `set`; or it says why it can't be. *permissions* is the level at which
    it is started, unless another is said; the team's, if it is left out.
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
        """The client's own program."""
        return (self.acp or self.start)[0]

    @property
    def has_provider(self) -> bool:
        """Whether its client can meet a limit of its provider: a shell that runs the prompt can't."""
        command = self.start[self.start.index("{prompt}") - 1] if "{prompt}" in self.start else ""
        runs_prompt = command.startswith("-") and command.endswith("c") and os.path.basename(self.start[0]) in _SHELLS
        return self.provider and not runs_prompt

    def environment(self, inherited: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
        """What the client is started with: the inherited environment without any other's identity, and its own."""
        kept = environments.clean(inherited, self.strip, self.keep)
        return {**kept, **{key: str(value) for key, value in self.set.items()}, **own}


def get(name: str, config: Config | None, command: str | None = None) -> Profile:
    """The profile of that name, the user's own before the embedded ones; with the *command* of its client, where that
    was said for one agent.

    Raises:
        InvalidValue: There is none; the hint names those that there are. Or it takes no command.
        DamagedRecord: The user's own has the wrong shape.
    """
    own = config.harness if config else {}
    if name in own:
        from teams_cli.records.validation import check_record

        document = {"name": name, **_extended(name, own[name]), **own[name]}
        check_record(Profile, document, f"config.json: harness.{name}")
    else:
        document = _extended(name)
    if not document:
        all_names = ", ".join(sorted({*known.names(), *own}))
        raise errors.InvalidValue(f"there is no harness {name!r}", f"Harnesses: {all_names}; config.json adds more.")
    profile = Profile.from_json(document)
    return profile if command is None else _commanded(profile, command)


def _extended(name: str, own: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What the embedded profile of that name says, if there is one, and an own one does not say how to start."""
    own = own or {}
    client = known.find(name) or (known.find("acp") if "acp" in own else None)
    return {**client.profile, "name": name} if client and "start" not in own else {}


def _commanded(profile: Profile, command: str) -> Profile:
    import shlex

    if ACP not in profile.start or profile.acp:
        raise errors.InvalidValue(f"the harness {profile.name} has its own command", "Use: --harness acp")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise errors.InvalidValue(f"the command {command!r} is not valid: {error}", _COMMAND) from None
    return profile.having(acp=words)


def refuse_without_command(profile: Profile) -> None:
    """Raises InvalidValue: The client's command is to be said for each agent, and was not."""
    if ACP in profile.start and not profile.acp:
        raise errors.InvalidValue(f"the harness {profile.name} needs the command of its client", _COMMAND)


def refuse_missing(profile: Profile, config: Config | None, environ: Mapping[str, str]) -> None:
    """Raises NotInstalled: The program of an embedded profile is not on the PATH."""
    import shutil

    is_own = config is not None and profile.name in config.harness
    if not is_own and profile.has_provider and not shutil.which(profile.program, path=environ.get("PATH")):
        raise errors.NotInstalled(
            f"{profile.program} is not on the PATH, so no agent was started",
            "Install it, or choose another client: --harness NAME",
        )


_COMMAND = 'Give it as: --acp-command "qwen --acp"'


def refuse_model(profile: Profile, model: str) -> None:
    """Raises InvalidValue: The client can't be told to take that model, or would take it for an option of its own."""
    if model.startswith("-"):
        raise errors.InvalidValue(f"{model!r} is no model: it begins with a dash", "Give the name of a model.")
    if not profile.model or MODEL not in [*profile.start, *(profile.acp or ())]:
        raise errors.InvalidValue(
            f"the harness {profile.name} takes no model",
            "Leave out --model. Or let the harness take one, in config.json: add `model`, and {model} in its `start` "
            "and `resume`, or in its `acp`.",
        )


def of_model(profile: Profile, model: str | None) -> list[str]:
    """The words for `{model}` in a command line; none when no model was chosen."""
    return [word.replace(MODEL, model) for word in profile.model or ()] if model else []


def brought(profile: Profile, python: str, variables: Iterable[str], level: str | None = None) -> dict[str, list[str]]:
    """The words for `{acp}`, `{hooks}`, `{mcp}` and `{permissions}` in a command line; *variables* are the names of
    those that it is run with.
    """
    hooks, server = known.find(profile.hooks), known.find(profile.mcp)
    return {
        "acp": profile.acp or [],
        "permissions": permissions.mode(profile, level).words,
        "hooks": hooks.hook_words(python, level) if hooks else [],
        "mcp": server.server_words(python, variables) if server and own_entries.is_server_available() else [],
    }


def given_once(profile: Profile, python: str, directory: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that bring our hooks and our server to one run, with files of ours in *directory*."""
    client = known.find(profile.once)
    return client.once(python, directory, environ)[1] if client else {}


def fill(words: list[str], values: Mapping[str, str], brought: Mapping[str, Sequence[str]] | None = None) -> list[str]:
    """The command line, each word with the known names in it replaced, and `{acp}`, `{hooks}`, `{mcp}` and
    `{permissions}` by those words of *brought*, or by none; no shell looks at it.
    """
    filled: list[str] = []
    given = brought or {}
    for whole in (ACP, "{permissions}"):
        words = [part for word in words for part in (given.get(whole[1:-1], ()) if word == whole else (word,))]
    for word in words:
        if word in ("{hooks}", "{mcp}", MODEL):
            filled += given.get(word[1:-1], ())
            continue
        for name, value in values.items():
            if word == f"{{{name}}}":
                word = value
                break
            if name != "prompt":
                word = word.replace(f"{{{name}}}", value)
        filled.append(word)
    return filled


def of_place(root: str, variables: Mapping[str, str]) -> dict[str, str]:
    """What stands for where the teams are kept; *variables* are those that lead our commands there."""
    in_database = variables.get("TEAMS_STORE", FILES) != FILES
    return {"root": root, "network": "true" if in_database else "false"}


def session_file(profile: Profile, session_id: str, variables: Mapping[str, str]) -> str | None:
    """The file that the client keeps the session in, *variables* being its environment; None if it is not there.

    Raises:
        InvalidValue: The pattern of the profile names a value that is missing.
    """
    from glob import escape, glob

    values = {key: escape(value) for key, value in {**variables, "session_id": session_id}.items()}
    try:
        files = glob((profile.session_file or "").format_map(values))
    except (LookupError, ValueError, AttributeError) as error:
        why = f"harness {profile.name}: sessionFile: {error} has no value in {profile.session_file}"
        raise errors.InvalidValue(why, "Use {session_id} and variables of the environment.") from None
    return max(files, key=os.path.getmtime, default=None)


_PATIENCE = 30


class Versions:
    """The *oldest* that was tried, and the first that is *too_new*, with the reason; that may be empty."""

    def __init__(self, oldest: str, too_new: str = "", why: str = "") -> None:
        self.oldest = oldest
        self.too_new = too_new
        self.why = why


def version_of(program: str, environ: Mapping[str, str]) -> str:
    """What the program says of its version."""
    import subprocess

    try:
        words = [program, "--version"]
        done = subprocess.run(
            words, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired):
        return "does not say its version"
    return (done.stdout.strip() or done.stderr.strip() or "does not say its version").splitlines()[0]


def version_trouble(client: Client, said: str) -> tuple[str, str]:
    """What is wrong with that version of the client, and what to do about it; both empty if nothing is."""
    import re  # dear for hooks, which know of clients too

    found, known = re.search(r"\d+(\.\d+)+", said), client.versions
    if not found or not known:
        return "", ""
    if known.too_new and _numbers(found[0]) >= _numbers(known.too_new):
        return f"{client.name} {found[0]} is too new: {known.why}", f"Use {client.name} below {known.too_new}."
    if _numbers(found[0]) < _numbers(known.oldest):
        return f"{client.name} {found[0]} is older than {known.oldest}, the oldest that was tried", "Update it."
    return "", ""


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
