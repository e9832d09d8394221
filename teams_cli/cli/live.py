"""The live view on a terminal: drawn anew for each frame and each key, in one column or two."""

from __future__ import annotations

import codecs
import os
import re
import select
import sys
import termios
import textwrap
import threading
import tty
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.text import Text

from teams_cli import errors
from teams_cli.commands.inbox import agent_state
from teams_cli.commands.inspection import estimate_in_words, reach_in_short
from teams_cli.tasks.tasks import FINISHED
from teams_cli.teams import history
from teams_cli.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TextIO

    Frame = dict[str, Any]
    """A frame of the view, as `views.board.frame` makes it. Its lines are cut to the width of the terminal."""


_TICK = 1.0
"""The seconds after which the view is drawn again even if no key was pressed and no frame came."""
_KEYS = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1b[Z": "backtab",
    "\x1b[200~": "paste",
    "\x1b[201~": "end of paste",
}
"""The names of the keys for which a terminal sends a control sequence."""
_KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[@-~]|.", re.DOTALL)
"""Matches a key: a control sequence, or a character."""
_UNFINISHED_KEY = re.compile(r"\x1b\[[0-?]*[ -/]*\Z")
_MARK_PASTES, _LEAVE_PASTES = "\x1b[?2004h", "\x1b[?2004l"
"""What makes a terminal send the keys `paste` and `end of paste` around a pasted text, and what ends this."""
_HELP = ("q quit", "a answer", "j k scroll", "Tab next agent", "Enter output", "g G top, end")
"""The help for the keys. A narrow terminal leaves out the last ones."""
_HELP_OUTPUT = ("q or Esc back", "j k scroll", "G follow")


class LiveScreen:
    """The state of the live view. *frame* is the newest frame, *offset* the number of lines by which it is scrolled,
    *chosen* the agent that is marked, and *opened* the agent whose output is shown. If *follows* is set, the end of the
    output stays in view. *asked* is the id of the question that the person answers, and *typed* the answer so far. Each
    of these texts is "" if there is no such thing.

    The function *output_of* returns the output of an agent. The function *answer* takes the id of a question and the
    answer to it, and returns the outcome in words. If it raises a `TeamsError`, the answer is kept for the next try.
    """

    def __init__(self, output_of: Callable[[str], list[Any]], answer: Callable[[str, str], str] | None = None) -> None:
        self.frame: Frame | None = None
        self.offset = 0
        self.chosen = ""
        self.opened = ""
        self.follows = True
        self._output_of = output_of
        self._answer = answer
        self.asked = ""
        self.typed = ""
        self._refused = ("", "")
        """The question whose answer was refused last, and that answer."""
        self._is_pasting = False
        self.outcome = ""
        """A line about what the last key did. It is shown in place of the help for the keys."""

    def press(self, key: str, height: int) -> bool:
        """Handle the key. Return False if it ends the view. Of a pasted text, the letters are no keys, and its line
        breaks send nothing.
        """
        if key in ("paste", "end of paste"):
            self._is_pasting = key == "paste"
            return True
        if self._is_pasting and not self.asked:
            return True
        self.outcome = ""
        if self.asked:
            self._type(key)
        elif key == "a" and self._answer:
            rows = self.frame["waiting"] if self.frame else []
            self.asked = next((row["id"] for row in rows if row["kind"] == "question"), "")
            refused, text = self._refused
            self.typed = text if self.asked == refused else ""
            self.outcome = "" if self.asked else "no question waits for you"
        elif key in ("q", "\x1b"):
            quits = key == "q" and not self.opened
            self.opened, self.offset = "", 0
            return not quits
        elif key in ("\t", "backtab"):
            self._choose(1 if key == "\t" else -1)
        elif key in ("\r", "\n") and self.chosen:
            self.opened, self.offset, self.follows = self.chosen, 0, True
        else:
            page = max(1, height - 6)
            far = 1_000_000  # more lines than there are: `lines` keeps the offset within them
            steps = {"j": 1, "k": -1, " ": page, "page down": page, "page up": -page, "g": -far, "G": far}
            steps |= {"down": 1, "up": -1, "home": -far, "end": far}
            if key in steps:
                self.offset += steps[key]
                self.follows = key in ("G", "end")  # the end of the output stays in view while it grows
        return True

    def _type(self, key: str) -> None:
        """Handle a key while the person types an answer."""
        if key in ("\r", "\n", "\t") and self._is_pasting:
            self.typed += "\t" if key == "\t" else "\n"
        elif key in ("\r", "\n"):
            assert self._answer
            try:
                self.outcome = self._answer(self.asked, self.typed.strip())
            except errors.TeamsError as refused:
                self.outcome = f"{refused.message}. {refused.hint}"
                self._refused = self.asked, self.typed
            self.asked = ""
        elif key == "\x1b":
            self.asked = ""
        elif key in ("\x7f", "\b"):
            self.typed = self.typed[:-1]
        elif len(key) == 1 and key.isprintable():
            self.typed += key

    def _choose(self, step: int) -> None:
        """Mark an agent as chosen: the next one in the list if *step* is 1, or the one before if *step* is -1."""
        names = [row["name"] for row in self.frame["agents"]] if self.frame else []
        if not names:
            return
        if self.chosen in names:
            self.chosen = names[(names.index(self.chosen) + step) % len(names)]
        else:
            self.chosen = names[0] if step > 0 else names[-1]

    def lines(self, width: int, height: int) -> list[Text]:
        """Return the lines that fill the whole terminal."""
        if self.frame is None:
            return [Text("…")]
        head = _head(self.frame, width)
        parts_of_help: tuple[str, ...] = _HELP_OUTPUT if self.opened else _HELP
        lines = self._output(width) if self.opened else _body(self.frame, width, self.chosen)
        room = max(1, height - len(head) - 1)
        last_offset = max(0, len(lines) - room)
        self.offset = last_offset if self.opened and self.follows else max(0, min(self.offset, last_offset))
        shown = lines[self.offset : self.offset + room]
        if self.offset < last_offset:
            parts_of_help = (f"{last_offset - self.offset} more below", *parts_of_help)
        if self.asked:
            label = f"{self.asked} (Enter sends, alone it skips; Esc leaves): "
            room_for_answer = max(10, width - len(label) - 1)
            typed = safe(self.typed).replace("\n", "⏎").replace("\t", " ")
            foot = Text(f"{label}{typed[-room_for_answer:]}█", style="bold magenta")
        else:
            help = _fitting(parts_of_help, width)
            foot = _cut(Text(safe(self.outcome) or help, style="bold" if self.outcome else "dim"), width)
        return [*head, *shown, *[Text()] * (room - len(shown)), foot]

    def _output(self, width: int) -> list[Text]:
        """Return the lines of output of the opened agent or, if `teams` did not start it, of its history."""
        output = self._output_of(self.opened)
        is_history = output and not isinstance(output[0], str)
        title = "What {} did; teams did not start it, and has no output" if is_history else "Output of {}"
        lines = [Text(title.format(safe(self.opened)), style="bold")]
        for part in output or ["Nothing was printed yet."]:
            if not isinstance(part, str):  # a change, whose actor is the agent
                part = f"{_local_time(part['at'])}  {history.line(part).partition(': ')[2]}"
            text = safe(part).expandtabs()
            lines += [Text(text[start : start + width]) for start in range(0, max(1, len(text)), width)]
        return lines


def _fitting(parts: tuple[str, ...], width: int) -> str:
    """Return the first *parts*, separated by dots: as many as fit into *width* characters."""
    fitting = ""
    for part in parts:
        longer = f"{fitting} · {part}" if fitting else part
        if len(longer) > width:
            break
        fitting = longer
    return fitting


def show(
    frames: Iterator[Frame],
    out: TextIO,
    output_of: Callable[[str], list[Any]],
    answer: Callable[[str, str], str] | None = None,
) -> None:
    """Show each of the *frames* in place of the last one, until they end or the person quits.

    The function *output_of* returns the output of an agent. The function *answer* takes the id of a question and the
    answer to it, and returns the outcome in words or raises a `TeamsError`. If it is None, the person can't answer
    here.
    """
    console = Console(file=out, highlight=False)
    screen = LiveScreen(output_of, answer)
    reader, typed = _FrameReader(frames), _KeyReader()
    view = Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop")
    with _keyboard() as keyboard, view, _marked_pastes(out if keyboard else None):
        shown: list[Text] = []
        while True:
            ready = select.select([reader.pipe, *keyboard], [], [], _TICK)[0]
            if reader.pipe in ready:
                screen.frame = reader.take()
                if reader.has_ended:
                    break
            if keyboard and keyboard[0] in ready:
                keys = typed.read(keyboard[0])
                if keys is None or not _press_all(screen, keys, console.height):
                    break
            lines = screen.lines(console.width, console.height)
            if lines != shown:
                shown = lines
                view.update(Text("\n", no_wrap=True, overflow="crop").join(lines), refresh=True)
    if reader.error is not None:
        raise reader.error


def _press_all(screen: LiveScreen, keys: list[str], height: int) -> bool:
    """Handle *keys*, which were read at once. Return False if one of them ends the view; no key after it is handled.
    After a key that sends an answer, no other key is handled either: they are the rest of a pasted text, if the
    terminal does not mark what is pasted.
    """
    for key in keys:
        was_typing = bool(screen.asked)
        if not screen.press(key, height):
            return False
        if was_typing and not screen.asked and key != "\x1b":
            break
    return True


class _FrameReader:
    """Reads the frames in a thread, so that the view can react to keys while no new frame has come."""

    def __init__(self, frames: Iterator[Frame]) -> None:
        self.pipe, self._bell = os.pipe()
        self.has_ended = False
        self._newest: Frame | None = None
        self.error: BaseException | None = None
        """The error with which the frames ended."""
        threading.Thread(target=self._run, args=(frames,), daemon=True).start()

    def _run(self, frames: Iterator[Frame]) -> None:
        try:
            for frame in frames:
                self._newest = frame
                os.write(self._bell, b".")  # wakes `show`, which waits for this pipe and for keys
        except BaseException as error:  # raised again by `show`, where it is caught as in any command
            self.error = error
        self.has_ended = True
        with suppress(OSError):
            os.write(self._bell, b".")

    def take(self) -> Frame | None:
        """Return the newest frame. Call this when `pipe` can be read."""
        os.read(self.pipe, 4096)
        return self._newest


@contextmanager
def _keyboard() -> Iterator[list[int]]:
    """In a `with` block, make each key readable at once, without waiting for the end of a line. The block gets a list
    with the file descriptor of the keyboard; empty if standard input is not a terminal.
    """
    try:
        keyboard = sys.stdin.fileno()
        before = termios.tcgetattr(keyboard)
    except (OSError, ValueError, AttributeError, termios.error):
        yield []
        return
    tty.setcbreak(keyboard)
    try:
        yield [keyboard]
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


@contextmanager
def _marked_pastes(out: TextIO | None) -> Iterator[None]:
    """In a `with` block, let the terminal mark what is pasted, if there is one."""
    if out:
        out.write(_MARK_PASTES)
        out.flush()
    try:
        yield
    finally:
        if out:
            with suppress(OSError):  # the terminal is gone
                out.write(_LEAVE_PASTES)
                out.flush()


class _KeyReader:
    """Reads the keys that the person presses. A pasted text comes in several parts, which may end within a character
    or a control sequence; the next part completes it.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unfinished = ""

    def read(self, keyboard: int) -> list[str] | None:
        """Return the keys that were pressed; None if the keyboard is gone. A key is a character or a name in `_KEYS`.
        Other control sequences are returned whole, so that their letters do not count as keys.
        """
        try:
            data = os.read(keyboard, 256)
        except OSError:
            return None
        if not data:
            return None
        typed = self._unfinished + self._decoder.decode(data)
        unfinished = _UNFINISHED_KEY.search(typed)
        end = unfinished.start() if unfinished else len(typed)
        self._unfinished = typed[end:]
        return [_KEYS.get(key, key) for key in _KEY.findall(typed[:end])]


_TWO_COLUMNS = 140
"""The least width of a terminal with two columns."""
_WIDEST_NAME = 20
_MOST_LINES = 3
"""The most lines of a text in a wide terminal."""
_MOST_WAITING, _MOST_FAILED = 8, 6
_VERBS = {"question": "asks:", "plan": "proposes:", "message": "writes:", "review": "asks"}
"""For each kind of thing that waits for the person, the verb between the agent's name and the text."""
_STATES = {
    "failed": "bold red",
    "lost": "bold red",
    "silent": "bold red",
    "cancelled": "dim",
    "waiting": "cyan",
    "paused": "yellow",
    "limited": "yellow",
    "stale": "yellow",
    "active": "green",
    "in_progress": "cyan",
    "in_review": "magenta",
    "completed": "green",
    "blocked": "yellow",
    "stopped": "dim",
}


def _head(frame: Frame, width: int) -> list[Text]:
    """Return three lines: the team, the progress of its work, and an estimate of when it ends. The number of failed
    tasks is in the second line or, if it has no room, in the third.
    """
    course = frame["course"]
    title = Text(f"{safe(frame['team'])} ", style="bold")
    title.append(f"led by {safe(frame['leader'] or 'nobody')}", style="dim")
    if frame["state"] != "active":
        title.append(f", {frame['state']}", style="yellow")
    speed = ""
    if pace := course["pace"]:
        hourly = pace["perHour"]
        speed = f"{hourly / 60:.1f} a minute lately · " if hourly >= 60 else f"{hourly:.1f} an hour lately · "
    progress, end = _progress(course, width), Text(speed + estimate_in_words(course), style="dim")
    if course["failed"] or course["heldUp"]:
        held_up = f", holding up {course['heldUp']}" if course["heldUp"] else ""
        failures = Text(f"{course['failed']} failed{held_up}", style="bold red")
        separator = Text(" · ")
        if progress.cell_len + separator.cell_len + failures.cell_len <= width:
            progress = separator.join((progress, failures))
        else:
            end = separator.join((failures, end))
    return [_cut(line, width) for line in (title, progress, end)]


def _progress(course: dict[str, Any], width: int) -> Text:
    """Return a line with the bar and the number of tasks in each state."""
    size = 10 if width < 100 else 24
    done = size * course["percent"] // 100
    line = Text("█" * done + "░" * (size - done), style="green")
    line.append(f" {course['percent']} %", style="bold default")
    line.append(f"  {course['done']}/{course['total']} · {course['inProgress']} in work", style="default")
    if course["inReview"]:
        line.append(f" · {course['inReview']} in review", style="default")
    return line.append(f" · {course['ready']} ready · {course['blocked']} blocked", style="default")


def _body(frame: Frame, width: int, chosen: str = "") -> list[Text]:
    """Return all lines below the head. The *chosen* agent is marked."""
    if width < _TWO_COLUMNS:
        return [
            *_waiting(frame, width, 1),
            *_failed(frame, width, 1),
            *_agents(frame, width, chosen),
            *_tasks(frame, width),
            *_messages(frame, width),
        ]
    left_width = (width - 3) * 11 // 20  # three characters separate the columns
    right_width = width - 3 - left_width
    left = [*_agents(frame, left_width, chosen), *_tasks(frame, left_width)]
    right = [
        *_waiting(frame, right_width, _MOST_LINES),
        *_failed(frame, right_width, _MOST_LINES),
        *_messages(frame, right_width),
    ]
    lines = []
    for left_line, right_line in zip_longest(left, right):
        line = left_line or Text()
        line.append(" " * (left_width - line.cell_len) + " │ ", style="dim")
        lines.append(line.append_text(right_line or Text()))
    return lines


def _waiting(frame: Frame, width: int, most_lines: int) -> list[Text]:
    """Return the lines about what waits for the person: at most *most_lines* for each row; empty if nothing waits."""
    rows = frame["waiting"]
    if not rows:
        return []
    lines = [Text(f"Waits for you ({len(rows)})", style="bold magenta")]
    id_width = max(len(row["id"]) for row in rows[:_MOST_WAITING])
    for row in rows[:_MOST_WAITING]:
        verb = "asked, but no longer waits:" if row.get("leftAlone") else _VERBS[row["kind"]]
        text = f"{row['from']} {verb} {_flat(row['text'])}"
        lines += _indented(Text(f"{row['id']:<{id_width}}  "), text, width, most_lines)
    return [*lines, *_more(rows, _MOST_WAITING)]


def _failed(frame: Frame, width: int, most_lines: int) -> list[Text]:
    """Return the lines about failed tasks, and about cancelled tasks for which others wait: at most *most_lines* for
    each task; empty if there are no such tasks.
    """
    rows = frame["failed"]
    if not rows:
        return []
    lines = [Text(f"Failed ({len(rows)})", style="bold red")]
    for row in rows[:_MOST_FAILED]:
        status = "cancelled" if row["status"] == "cancelled" else "failed"
        held_up = f", holds up {row['waiting']}" if row["waiting"] else ""
        text = f"{status}{held_up}: {_flat(row['reason'])}"
        lines += _indented(Text(f"{row['id']:<8} ", style="red"), text, width, most_lines, "red")
    return [*lines, *_more(rows, _MOST_FAILED)]


def _more(rows: list[Any], shown: int) -> list[Text]:
    """Return a line that says how many rows follow the first *shown* rows; no line if none follows."""
    return [Text(f"  and {len(rows) - shown} more", style="dim")] if len(rows) > shown else []


def _agents(frame: Frame, width: int, chosen: str) -> list[Text]:
    """Return a line for each agent, with its state and its unread mail. The *chosen* agent is marked."""
    rows = frame["agents"]
    lines = [Text(f"Agents ({len(rows)})" if rows else "Agents: none", style="bold")]
    name_width = min(_WIDEST_NAME, max((cell_len(row["name"]) for row in rows), default=0))
    state_width = max((len(agent_state(row)) for row in rows), default=0)
    for row in rows:
        is_chosen = row["name"] == chosen
        line = Text("> " if is_chosen else "  ", style="bold cyan")
        line.append_text(_padded(safe(row["name"]), name_width, "reverse" if is_chosen else "default"))
        style = _STATES.get(row["trouble"] or row["state"], "default")
        line.append("  ").append_text(_padded(agent_state(row), state_width, style))
        line.append(f"  {row['queueDepth']:>3} unread  " if row["queueDepth"] else " " * 13, style="dim")
        line.append(
            safe(_flat(row["why"] or row["status"] or "")),
            style="red" if row["trouble"] in ("failed", "lost", "silent") else "default",
        )
        lines.append(_cut(line, width))
    return lines


def _tasks(frame: Frame, width: int) -> list[Text]:
    """Return a line for each task, in columns, with its blockers, its reviewer or its result."""
    rows = frame["tasks"]
    heading = Text("Tasks" if rows else "Tasks: none yet (teams create-task TITLE)", style="bold")
    if path := frame["course"]["criticalPath"]:
        heading.append(f"  longest chain ahead: {' → '.join(path)}", style="not bold dim")
    lines = [_cut(heading, width)]
    id_width = max((len(row["id"]) for row in rows), default=0)
    owner_width = min(_WIDEST_NAME, max((cell_len(row.get("owner") or "-") for row in rows), default=0))
    marks = {row["id"]: "high  " if row["priority"] == "high" and row["status"] not in FINISHED else "" for row in rows}
    mark_width = max(map(len, marks.values()), default=0)
    for row in rows:
        status = row["status"]
        if status == "pending":
            status = "blocked" if row["blocked"] else "ready"
        line = Text(f"  {row['id']:<{id_width}}  ", style="dim")
        line.append_text(_padded(status, 11, _STATES.get(status, "default")))
        line.append("  ").append_text(_padded(safe(row.get("owner") or "-"), owner_width, "default"))
        line.append(f"  {marks[row['id']]:<{mark_width}}", style="yellow")
        line.append(safe(_flat(row["title"])), style="default")
        if row["openBlockers"]:
            line.append(f"  waits for {', '.join(row['openBlockers'])}", style="dim")
        elif status == "completed" and row.get("completedAt"):
            line.append(f"  {_local_time(row['completedAt'])} {safe(_flat(row.get('result') or ''))}", style="dim")
        elif status == "in_review" and row.get("reviewBy"):
            line.append(f"  waits for the review of {safe(row['reviewBy'])}", style="dim")
        lines.append(_cut(line, width))
    return lines


def _messages(frame: Frame, width: int) -> list[Text]:
    rows = frame["messages"]
    lines = [Text("Messages" if rows else "Messages: none yet", style="bold")]
    for row in rows:
        from_and_to = safe(f"{row['from']} → {row['to']}{reach_in_short(row)}: ")
        time_of_day = Text(f"  {_local_time(row['timestamp'])}  ", style="dim")
        start = time_of_day.cell_len
        wrapped = _indented(time_of_day, f"{from_and_to}{_flat(row['message'])}", width, _MOST_LINES)
        wrapped[0].stylize("cyan", start, start + len(from_and_to))
        lines += wrapped
    return lines


def _indented(head: Text, text: str, width: int, most_lines: int, style: str = "default") -> list[Text]:
    """Return at most *most_lines* lines of *width* characters with the *text*; the last line may be cut. The first line
    begins with *head*, and the others are indented by the width of *head*.
    """
    room = max(20, width - head.cell_len)
    parts = textwrap.wrap(safe(text), room, break_on_hyphens=False) if most_lines > 1 else [safe(text)]
    if len(parts) > most_lines:
        parts[most_lines - 1 :] = [" ".join(parts[most_lines - 1 :])]  # this last line is cut below
    first, *others = parts or [""]
    lines = [head.append(first, style=style), *(Text(" " * (width - room) + part, style=style) for part in others)]
    return [_cut(line, width) for line in lines]


def _local_time(timestamp: str) -> str:
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).astimezone().strftime("%H:%M")


def _flat(text: str) -> str:
    return " ".join(text.split())


def _padded(text: str, width: int, style: str) -> Text:
    """Return the text in exactly *width* characters: blanks are added, or it is cut."""
    cell = Text(text, style=style)
    cell.truncate(width, overflow="ellipsis")
    return cell.append(" " * (width - cell.cell_len))


def _cut(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    line.no_wrap = True
    return line
