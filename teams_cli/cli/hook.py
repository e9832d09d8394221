"""`teams hook DIALECT`, which a client runs at every tool call: so it imports nothing before there may be news.

What it costs then is a few looks at directories. `inboxes/<agent>.seen` holds the number of the message up to which
the agent has nothing unread; the time of that file is that of the last heartbeat. Whatever goes wrong, the client goes
on: the exit status is 0 and standard output empty. A mistake in the words is a 1; a 2 would stop the client.
"""

import os
import sys
import time

from teams_cli.cli import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

USAGE = (
    "usage: teams hook claude|codex|gemini|qwen [--root DIR] [--store STORE] [--team TEAM] [--as AGENT],"
    " with its JSON on stdin\n"
)
WRONG_USAGE = 1
DIALECTS = ("claude", "codex", "gemini", "qwen")
_FLAGS = {"--root": "root", "--store": "store", "--team": "team", "-t": "team", "--as": "agent"}
_BEAT = 30.0
_SEGMENT = 1000


def main(words: list[str], environ: "Mapping[str, str]" = os.environ) -> int:
    """Answer a client's hook; the exit status."""
    flags = _flags(words)
    if flags is None:
        sys.stderr.write(USAGE)
        return WRONG_USAGE
    try:
        given = _standard_input()
        place = _place(flags, environ)
        if place and not _is_quiet(*place, given):
            from teams_cli.cli import hook_news

            hook_news.tell(flags["dialect"], given, *place, environ)
    except Exception as error:
        _log(error, flags, environ)
    return 0


def _flags(words: list[str]) -> "dict[str, str] | None":
    """The dialect and the flags; None if they are not as they should be."""
    found = {"root": "", "store": "", "team": "", "agent": "", "dialect": ""}
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        if flag in _FLAGS:
            found[_FLAGS[flag]] = value if equals else next(rest, "")
        elif word in DIALECTS and not found["dialect"]:
            found["dialect"] = word
        else:
            return None
    return found if found["dialect"] else None


def _standard_input() -> bytes:
    """All that the client says: left unread it might break its pipe."""
    parts = []
    while part := os.read(0, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _place(flags: "dict[str, str]", environ: "Mapping[str, str]") -> "tuple[str, str, str, str] | None":
    """The root, the store, the team and the agent; None when there is nobody to tell anything."""
    agent = identity.look_up("agent", flags["agent"], environ)[0]
    root = identity.root_directory(flags["root"], environ)[0]
    store = _store(flags["store"], root, environ)
    files = store in ("", "files")
    team = identity.look_up("team", flags["team"], environ)[0] or (_only_team(root) if files else "")
    if environ.get("TEAMS_SHADOW") or not _is_plain(team) or not _is_plain(agent):
        return None
    return (root, store, team, agent) if not files or os.path.isdir(f"{root}/teams/{team}") else None


def _store(said: str, root: str, environ: "Mapping[str, str]") -> str:
    """The address of the store, if it is said anywhere."""
    store = identity.store_address(said, environ, "")[0]
    if store:
        return store
    try:
        with open(f"{root}/config.json", "rb") as file:
            data = file.read()
    except OSError:
        return ""
    if b'"store"' not in data:
        return ""
    import json

    return str(json.loads(data).get("store") or "")


def _is_plain(name: str) -> bool:
    return name.isascii() and name.replace("-", "").replace("_", "").isalnum()


def _only_team(root: str) -> str:
    names = [name for name in _names(f"{root}/teams") if _is_plain(name)]
    return names[0] if len(names) == 1 else ""


def _is_quiet(root: str, store: str, team: str, agent: str, given: bytes) -> bool:
    """Whether there is surely nothing to say and to do; when in doubt, as with a database, there is not."""
    if store not in ("", "files"):
        return False
    directory = f"{root}/teams/{team}"
    seen = _seen(f"{directory}/inboxes/{agent}.seen")
    if seen < 0 or b'"SessionStart"' in given or _any_to(f"{directory}/messages", agent, seen):
        return False
    return not _is_stop(given) or set(_names(f"{directory}/sessions")) <= {f"{agent}.json", ".lock"}


def _is_stop(given: bytes) -> bool:
    return b'"Stop"' in given or b'"AfterAgent"' in given


def _seen(path: str) -> int:
    """The number up to which nothing is unread; -1 when it is not known, or a heartbeat is due."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        age = time.time() - os.fstat(descriptor).st_mtime
        number = os.read(descriptor, 64).partition(b" ")[0]
        return int(number) if number.isdigit() and 0 <= age < _BEAT else -1
    finally:
        os.close(descriptor)


def _any_to(directory: str, agent: str, seen: int) -> bool:
    """Whether the log has, or may have, a message above *seen* that the agent gets."""
    segments = [int(name) for name in _names(directory) if name.isdigit()]
    last = max(segments, default=0)
    if last > seen // _SEGMENT + 1:
        return True
    alone, several = f".{agent}.", ".@."
    for segment in range(seen // _SEGMENT, last + 1):
        for name in _names(f"{directory}/{segment}"):
            if (alone in name or several in name) and int(name.partition(".")[0]) > seen:
                return True
    return False


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _log(error: Exception, flags: "dict[str, str]", environ: "Mapping[str, str]") -> None:
    """Note in the root's logs what went wrong: nobody is told else."""
    try:
        from traceback import format_exception

        root = identity.root_directory(flags["root"], environ)[0]
        path = f"{root}/logs/hook.log"
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        large = os.path.exists(path) and os.path.getsize(path) > 1 << 20
        with open(path, "w" if large else "a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} hook {flags['dialect']}\n")
            log.write("".join(format_exception(error)))
    except Exception:
        return
