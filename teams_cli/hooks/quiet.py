"""Whether a hook certainly has nothing to say, from the names of files alone, since it is asked at every tool call.

`inboxes/<agent>.seen` has the number of the message up to which nothing is unread. The next heartbeat is due when that
file is `BEAT` seconds old. The kind of an event is found by words in it, without parsing JSON.
"""

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.hooks.entry import Standpoint

_TURNS = (
    b'"Stop"',
    b'"StopFailure"',
    b'"AfterAgent"',
    b'"Interrupt"',
    b'"PermissionRequest"',
    b'"Notification"',
    b'"SessionEnd"',
    b'"TerminalState"',
)
BEAT = 30.0
_SEGMENT = 1000


def is_quiet(standpoint: "Standpoint", given: bytes) -> bool:
    """Whether the hook has certainly nothing to do. False when unsure, and always with a database."""
    if not standpoint.is_on_files or (_tells_state(given) and standpoint.has_terminal):
        return False
    directory = f"{standpoint.root}/teams/{standpoint.team}"
    seen = _seen(f"{directory}/inboxes/{standpoint.agent}.seen")
    if (
        seen < 0
        or b'"SessionStart"' in given
        or is_prompt(given)
        or _any_to(f"{directory}/messages", standpoint.agent, seen)
    ):
        return False
    return not _is_stop(given) or set(names(f"{directory}/sessions")) <= {f"{standpoint.agent}.json", ".lock"}


def is_before(given: bytes) -> bool:
    """Whether a tool is about to be used."""
    return b'"PreToolUse"' in given or b'"BeforeTool"' in given


def is_of_task_list(given: bytes) -> bool:
    """Whether the client's own task list changes, or a teammate that works on it is about to idle."""
    return any(event in given for event in (b'"TaskCreated"', b'"TaskCompleted"', b'"TeammateIdle"'))


def may_write(given: bytes) -> bool:
    """Whether the event is about a tool that may change other agents' files: before its use, or after it for a client
    that cannot be warned before. Of shell commands only those with git count.
    """
    if is_before(given):
        return b"git" in given or not (b'"Bash"' in given or b'"run_shell_command"' in given)
    return b'"AfterTool"' in given and (b'"write_file"' in given or b'"replace"' in given)


def _tells_state(given: bytes) -> bool:
    """Whether the client may begin or end to work with this event, or ask its person."""
    return is_prompt(given) or any(event in given for event in _TURNS)


def is_prompt(given: bytes) -> bool:
    return b'"UserPromptSubmit"' in given or b'"BeforeAgent"' in given


def _is_stop(given: bytes) -> bool:
    return b'"Stop"' in given or b'"AfterAgent"' in given


def _seen(path: str) -> int:
    """Return the number of the message up to which the agent has read everything; -1 if it is unknown, or if a
    heartbeat is due.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        age = time.time() - os.fstat(descriptor).st_mtime
        number = os.read(descriptor, 64).partition(b" ")[0]
        return int(number) if number.isdigit() and 0 <= age < BEAT else -1
    finally:
        os.close(descriptor)


def _any_to(directory: str, agent: str, seen: int) -> bool:
    """Whether the log may have a message to the agent above *seen*."""
    segments = [int(name) for name in names(directory) if name.isdigit()]
    last = max(segments, default=0)
    if last > seen // _SEGMENT + 1:
        return True
    alone, several = f".{agent}.", ".@."
    for segment in range(seen // _SEGMENT, last + 1):
        for name in names(f"{directory}/{segment}"):
            if (alone in name or several in name) and int(name.partition(".")[0]) > seen:
                return True
        if _highest_packed(f"{directory}/{segment}") > seen:
            return True
    return False


def _highest_packed(segment: str) -> float:
    """Return the highest number of the messages that are packed there, from its first line; 0 without any."""
    try:
        with open(f"{segment}/packed.json", "rb") as file:
            return int(file.readline(80).split(b" ")[3].rstrip(b","))
    except FileNotFoundError:
        return 0
    except (OSError, ValueError, IndexError):
        return float("inf")


def names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []
