"""Find out whether a hook certainly has nothing to say. Because this is done at every tool call, little besides file
names is read.

The file `inboxes/<agent>.seen` contains a message number. All messages up to this number have been read. The next
heartbeat is due when this file is `BEAT` seconds old. The kind of an event is found by looking for words in it, without
parsing its JSON.
"""

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.hooks.entry import Standpoint

_CHANGING_STATE = (
    b'"Stop"',
    b'"StopFailure"',
    b'"AfterAgent"',
    b'"Interrupt"',
    b'"PermissionRequest"',
    b'"Notification"',
    b'"SessionEnd"',
    b'"TerminalState"',
)
"""The events that may change the state of a client in a terminal, because the client stops, asks its person, or
ends.
"""
BEAT = 30.0
"""Seconds between two heartbeats."""
_SEGMENT = 1000
"""Maximum number of messages in a directory of the log."""


def is_quiet(standpoint: "Standpoint", raw_event: bytes) -> bool:
    """Whether the hook certainly has nothing to do. False in case of doubt, and for every store in a database."""
    if not standpoint.is_on_files or b'"SessionStart"' in raw_event or is_prompt(raw_event):
        return False
    if any(event in raw_event for event in _CHANGING_STATE) and standpoint.has_terminal:
        return False
    directory = f"{standpoint.root}/teams/{standpoint.team}"
    read_up_to = _read_up_to(f"{directory}/inboxes/{standpoint.agent}.seen")
    if read_up_to < 0 or _may_have_message(f"{directory}/messages", standpoint.agent, read_up_to):
        return False
    if b'"Stop"' not in raw_event and b'"AfterAgent"' not in raw_event:
        return True
    # The end of a turn is held while other agents work for this agent, so there must be no other sessions.
    return set(names(f"{directory}/sessions")) <= {f"{standpoint.agent}.json", ".lock"}


def is_of_subagent(raw_event: bytes) -> bool:
    """Whether the event seems to come from a subagent inside the client."""
    return b'"agent_id"' in raw_event


def is_before_tool(raw_event: bytes) -> bool:
    """Whether the event comes before the use of a tool."""
    return b'"PreToolUse"' in raw_event or b'"BeforeTool"' in raw_event


def is_of_task_list(raw_event: bytes) -> bool:
    """Whether the event reports a change of the client's own task list, or that a teammate with this list is about to
    become idle.
    """
    return any(event in raw_event for event in (b'"TaskCreated"', b'"TaskCompleted"', b'"TeammateIdle"'))


def may_write(raw_event: bytes) -> bool:
    """Whether the event is about a tool that may change files on which other agents work. A shell command counts only
    before it runs, and only if it contains the word git, because the guard refuses no other commands. Tools of Gemini
    CLI that write files count again after their use, because its model is shown a warning only then.
    """
    if is_before_tool(raw_event):  # this hook is installed only for tools that write, and for the shell
        tool = raw_event.partition(b'"tool_name"')[2].lstrip(b" \t\r\n:")  # what a tool gets may also name a shell
        return b"git" in raw_event or not tool.startswith((b'"Bash"', b'"run_shell_command"'))
    return b'"AfterTool"' in raw_event and (b'"write_file"' in raw_event or b'"replace"' in raw_event)


def is_prompt(raw_event: bytes) -> bool:
    """Whether the event reports a prompt from the person at the client."""
    return b'"UserPromptSubmit"' in raw_event or b'"BeforeAgent"' in raw_event


def _read_up_to(path: str) -> int:
    """Return the number from the file at *path* up to which the agent has read all messages. Return -1 if the hook has
    to ask the store, because the file does not give the number or a heartbeat is due.
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


def _may_have_message(directory: str, agent: str, read_up_to: int) -> bool:
    """Whether the log in *directory* may have a message to *agent* with a number above *read_up_to*."""
    segments = [int(name) for name in names(directory) if name.isdigit()]
    last = max(segments, default=0)
    first = read_up_to // _SEGMENT
    if last > first + 1:  # so many new messages that one of them may well be to the agent
        return True
    to_agent, to_several = f".{agent}.", ".@."
    for segment in range(first, last + 1):
        for name in names(f"{directory}/{segment}"):
            may_be_to_agent = to_agent in name or to_several in name
            if may_be_to_agent and int(name.partition(".")[0]) > read_up_to:
                return True
        if _highest_packed(f"{directory}/{segment}") > read_up_to:
            return True
    return False


def _highest_packed(segment: str) -> float:
    """Return the highest number among the messages that an older version packed into a file in the directory *segment*;
    0 if there is no such file, infinity if it can't be read.
    """
    try:
        with open(f"{segment}/packed.json", "rb") as file:
            words = file.readline(80).split(b" ")  # such as "messages to number 999, 999 of them"
            return int(words[3].rstrip(b","))
    except FileNotFoundError:
        return 0
    except (OSError, ValueError, IndexError):
        return float("inf")


def names(directory: str) -> list[str]:
    """Return the names of the files in the directory; an empty list if the directory does not exist."""
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []
