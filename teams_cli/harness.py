"""Harness profiles: how a client is started, resumed and interrupted, and where its answer is; one file a client."""

from __future__ import annotations

import json
import os
from fnmatch import fnmatchcase

from teams_cli.errors import InvalidValue
from teams_cli.records import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from teams_cli.config import Config
    from teams_cli.shapes import HarnessInput, Ladder, Name, Object, Text, Word

DEFAULT = "shell"
_STRIPPED = ["TEAMS_*", "OPENCODE*", "CLAUDE*", "CODEX_*", "GEMINI_*", "QWEN_*", "AI_AGENT", "AGENT"]
_KEPT = ["*_API_KEY", "*_BASE_URL", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_DISABLE_*", "CODEX_HOME", "OPENCODE_CONFIG*"]
_NEVER_KEPT = (
    "TEAMS_*",
    "OPENCODE_TEAM_*",
    "OPENCODE_AGENT_*",
    # What git tells its hooks of their repository; the agent may work in another.
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
)
DIRECTORY = f"{os.path.dirname(__file__)}/profiles"


class Profile(Record):
    """One client. In the command lines `{prompt}`, `{session_id}`, `{agent}`, `{root}` (where the teams are kept) are
    filled in word by word; `{hooks}` becomes the words that make the client call our hooks, in the dialect *hooks*,
    and `{mcp}` those that give it our MCP server, as the client *mcp* takes them. In *fork* there are also
    `{session_file}`, the file that the client keeps the session in, found by the pattern *session_file* (a glob with
    the client's variables and `{session_id}`, `{session_id:.8}` for its beginning), and `{profiles}`, the directory of
    the embedded profiles.

    *input* says what it reads from standard input: the prompt, or the messages of a resumed turn as JSON. To one that
    is *introduced*, since it may have none of our hooks, the first prompt also says who it is and who else is there.
    *session_id* and *output* say where they are found: `preset`, `stdout`, a `path` in a JSON document (`json`), in
    one of its items (`items`), or in a line of JSON (`lines`), the last that has what `match` says.
    """

    name: Name
    description: Text | None = None
    start: list[Text]
    resume: list[Text]
    fork: list[Text] | None = None
    session_file: Text | None = None
    input: HarnessInput = "prompt"
    introduced: bool = False
    session_id: Object = field(default_factory=dict)
    output: Object = field(default_factory=dict)
    failed: Object = field(default_factory=dict)
    interrupt: Ladder = field(default_factory=list)
    hooks: Word | None = None
    mcp: Word | None = None
    set: Object = field(default_factory=dict)
    strip: list[Word] = field(default_factory=_STRIPPED.copy)
    keep: list[Word] = field(default_factory=_KEPT.copy)


def find(name: str, config: Config | None) -> Profile:
    """The profile of that name, the user's own before the embedded ones.

    Raises:
        InvalidValue: There is none; the hint names those that there are.
        DamagedRecord: The user's own has the wrong shape.
    """
    own = config.harness if config else {}
    if name in own:
        from teams_cli.validation import check_record

        document = {"name": name, **own[name]}
        check_record(Profile, document, f"config.json: harness.{name}")
        return Profile.from_json(document)
    if name not in embedded():
        known = ", ".join(sorted({*embedded(), *own}))
        raise InvalidValue(f"there is no harness {name!r}", f"Harnesses: {known}; config.json adds more.")
    with open(f"{DIRECTORY}/{name}.json", encoding="utf-8") as file:
        return Profile.from_json(json.load(file))


def embedded() -> list[str]:
    """The names of the profiles that come with the program."""
    return sorted(name.removesuffix(".json") for name in os.listdir(DIRECTORY) if name.endswith(".json"))


def fill(words: list[str], values: Mapping[str, str], brought: Mapping[str, Sequence[str]] | None = None) -> list[str]:
    """The command line, each word with the known names in it replaced, and `{hooks}` and `{mcp}` by those words of
    *brought*, or by none; no shell looks at it.
    """
    filled: list[str] = []
    for word in words:
        if word in ("{hooks}", "{mcp}"):
            filled += (brought or {}).get(word[1:-1], ())
            continue
        for name, value in values.items():
            if word == f"{{{name}}}":
                word = value
                break
            if name != "prompt":
                word = word.replace(f"{{{name}}}", value)
        filled.append(word)
    return filled


def environment(profile: Profile, inherited: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """What a client is started with: the inherited environment without any other agent's identity, and its own."""
    kept = {key: value for key, value in inherited.items() if not _foreign(key, profile)}
    return {**kept, **{key: str(value) for key, value in profile.set.items()}, **own}


def _foreign(key: str, profile: Profile) -> bool:
    if any(fnmatchcase(key, pattern) for pattern in _NEVER_KEPT):
        return True
    if any(fnmatchcase(key, pattern) for pattern in profile.keep):
        return False
    return any(fnmatchcase(key, pattern) for pattern in profile.strip)


def session_file(profile: Profile, session_id: str, variables: Mapping[str, str]) -> str | None:
    """The file that the client keeps the session in, *variables* being its environment; None if it is not there.

    Raises:
        InvalidValue: The pattern of the profile has a name that there is no value for.
    """
    from glob import escape, glob

    known = {key: escape(value) for key, value in {**variables, "session_id": session_id}.items()}
    try:
        found = glob((profile.session_file or "").format_map(known))
    except (LookupError, ValueError, AttributeError) as error:
        said = f"harness {profile.name}: sessionFile: {error} has no value in {profile.session_file}"
        raise InvalidValue(said, "Use {session_id} and variables of the environment.") from None
    return max(found, key=os.path.getmtime, default=None)


def is_preset(profile: Profile) -> bool:
    """Whether the client takes the session id that it is given, instead of making one."""
    return bool(profile.session_id.get("from", "preset") == "preset")


def session_id_in(profile: Profile, printed: str) -> str | None:
    """The session id that the client printed, if it makes one itself."""
    if is_preset(profile):
        return None
    return _first(_found(profile.session_id, printed))


def output_in(profile: Profile, printed: str) -> str:
    """The answer in what the client printed."""
    if profile.output.get("from", "stdout") == "stdout":
        return printed
    found = list(_found(profile.output, printed))
    return found[-1] if found else ""


def has_failed(profile: Profile, status: int, printed: str) -> bool:
    """Whether the turn failed, by the exit status and by what the client says itself."""
    said = profile.failed
    if said.get("status", True) and status != 0:
        return True
    if "json" in said:
        return any(_at(document, said["json"]) is True for document in _documents("json", printed))
    for form in ("lines", "items"):
        if form in said and any(_matches(document, said[form]) for document in _documents(form, printed)):
            return True
    return False


def _found(where: Mapping[str, Any], printed: str) -> Iterator[str]:
    for document in _documents(where["from"], printed):
        value = _at(document, where["path"]) if _matches(document, where.get("match", {})) else None
        if isinstance(value, str):
            yield value


def _first(values: Iterator[str]) -> str | None:
    return next(values, None)


def _documents(form: str, printed: str) -> Iterator[Any]:
    """The JSON documents in what was printed: the whole, the items of the whole, or one a line."""
    if form == "lines":
        for line in printed.splitlines():
            yield from _parsed(line)
        return
    for whole in _parsed(printed):
        yield from whole if form == "items" and isinstance(whole, list) else [whole]


def _parsed(text: str) -> Iterator[Any]:
    try:
        yield json.loads(text)
    except ValueError:
        return


def _matches(document: Any, wanted: Mapping[str, Any]) -> bool:
    return all(_at(document, path) == value for path, value in wanted.items())


def _at(document: Any, path: str) -> Any:
    for key in path.split("."):
        document = document.get(key) if isinstance(document, dict) else None
    return document
