"""Progress of a run: a bar and the work of each agent on a terminal, elsewhere a line for each change."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

from teams_cli.runs.runs import key_of
from teams_cli.tasks.tasks import FINISHED, Task
from teams_cli.text import one_part, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, Self


class Progress:
    """Shows the progress of a run as lines on standard error."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._shown: dict[str, str] = {}
        """The status that was last shown for each task."""
        self._handlers: dict[int, Any] = {}
        self.on_begin: Callable[[str], object] | None = None

    def __enter__(self) -> Self:
        """Let SIGTERM and SIGHUP act like Ctrl-C, so that the workers are ended before this process. A signal that this
        process ignores stays ignored.
        """
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_DFL:
                self._handlers[number] = signal.signal(number, _interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def pause(self) -> None:
        """Stop drawing, so that a question can use the terminal until `go_on` is called."""

    def go_on(self) -> None:
        """Continue to show the progress after a question."""

    def begins(self, team: str) -> None:
        """Call `on_begin`, if it is set, with the name of the *team* in which the run begins."""
        if self.on_begin:
            self.on_begin(team)

    def say(self, line: str) -> None:
        """Show a line. If the progress is quiet, because a script reads the answer, show nothing."""
        if not self._quiet:
            with suppress(OSError):  # nobody listens; the run goes on
                sys.stderr.write(one_part(line) + "\n")
                sys.stderr.flush()

    def update(self, tasks: list[Task], workers: list[str]) -> None:
        """Show the *tasks* whose status has changed. *workers*, the names of the running workers, are shown only on a
        terminal: see `Screen`.
        """
        for task in tasks:
            if self._shown.get(task.id, "pending") != task.status:
                self._shown[task.id] = task.status
                self._show(task, len(tasks))

    def _show(self, task: Task, total: int) -> None:
        by = f" by {task.owner}" if task.owner else ""
        finished = sum(status in FINISHED for status in self._shown.values())
        self.say(f"[{finished}/{total}] {key_of(task)}: {task.status.replace('_', ' ')}{by}: {task.title}")


class Screen(Progress):
    """Shows a run on a terminal: the changes, a bar below them, and below the bar a line for each worker."""

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        super().__enter__()
        self._bar = Bar(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._line = self._bar.add_task("tasks", total=None)
        self._live = Live(console=Console(stderr=True, highlight=False), refresh_per_second=8, transient=True)
        self._has_ended = False
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended = True
        self._live.stop()
        super().__exit__()

    def pause(self) -> None:
        self._live.stop()

    def go_on(self) -> None:
        if not self._has_ended:
            self._live.start()

    def say(self, line: str) -> None:
        from rich.text import Text

        self._live.console.print(Text(one_part(line)))

    def update(self, tasks: list[Task], workers: list[str]) -> None:
        from rich.console import Group
        from rich.text import Text

        super().update(tasks, workers)
        finished = sum(task.status in FINISHED for task in tasks)
        self._bar.update(self._line, completed=finished, total=len(tasks))
        task_of = {task.owner: task for task in tasks if task.status == "in_progress"}
        width = max((len(name) for name in workers), default=0)
        lines = []
        for name in workers:
            task = task_of.get(name)
            work = f"{key_of(task)}: {task.title}" if task else "waits"
            lines.append(Text(f"  {name.ljust(width)}  {safe(work)}", no_wrap=True, overflow="ellipsis"))
        self._live.update(Group(self._bar, *lines))

    def _show(self, task: Task, total: int) -> None:
        if task.status in FINISHED:
            super()._show(task, total)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
