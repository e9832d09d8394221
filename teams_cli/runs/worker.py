"""A worker without a model: `python -m teams_cli.runs.worker RUN PARENT`, started by `teams run`.

Its identity is in the environment. It joins, claims ready tasks, runs their commands, and leaves when all tasks are
settled or its parent is gone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from types import FrameType

from teams_cli import errors, processes
from teams_cli.agents import checking, shell
from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.runs import orders, runs
from teams_cli.runs.runs import Run
from teams_cli.store import opening, pace
from teams_cli.store.pace import insist, paced
from teams_cli.tasks import changes as task_changes
from teams_cli.tasks import claims, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams import config, presence, teams
from teams_cli.teams.permission import Caller
from teams_cli.views import conditions
from teams_cli.workflows.model import REPO

_PARENT_DEATH_SIGNAL = 1
_SEEN_EVERY = 20.0
_KILL = (("KILL", 1.0),)


class _Stopped(BaseException):
    """Raised when the worker has to end, because it was stopped or its parent is gone."""


class Worker:
    """A process of a run, without a model, that runs the commands of tasks."""

    def __init__(self, environ: Mapping[str, str], run: str, parent: int) -> None:
        self.environ = environ
        self.store = opening.from_environment(environ)
        self.team = environ["TEAMS_TEAM"]
        self.run: Run = self.store.get(self.team, runs.RUN, run)[0]
        self.parent = parent
        self.caller = Caller(environ["TEAMS_AGENT_ID"], config=config.load(self.store.root, environ))

    def work(self) -> None:
        """Do tasks until none is left to wait for."""
        own = next(agent for agent in self.run.agents if agent.name == self.caller.name)
        insist(lambda: joining.join(self.store, self.team, self.caller, own.role, own.type))
        team = teams.get(self.store, self.team)
        claims.release_tasks_of(self.store, team, own.name, own.name, "its worker was restarted")
        presence.register_process(self.store, self.team, own.name, os.getpid())
        while task := self._next():
            self._do(task)
        joining.leave(self.store, self.team, self.caller)

    def stop(self) -> None:
        """Release the worker's tasks, and leave the team. The running command has ended before."""
        self._reap()
        with suppress(errors.TeamsError):
            team = teams.get(self.store, self.team)
            claims.release_tasks_of(self.store, team, self.caller.name, self.caller.name, "the run was interrupted")
            joining.leave(self.store, self.team, self.caller)

    def _next(self) -> Task | None:
        """Wait until a task is ready, and claim it. Return None if no task is left to wait for."""
        claimed: list[Task] = []

        def ready() -> bool:
            self._refuse_orphan()
            try:
                claimed[:] = [
                    insist(lambda: claims.claim_next(self.store, self.team, self.caller, wanted=self._wanted))
                ]
            except errors.NothingReady:
                presence.saw(self.store, self.team, self.caller.name, every=_SEEN_EVERY)
                return conditions.all_settled(self.store, self.team).look(pace.Alarm()) is not None
            return True

        pace.sleep_until(self.store, self.team, paced(ready), None)
        return claimed[0] if claimed else None

    def _wanted(self, task: Task) -> bool:
        """Whether a worker should do the task. In a run with agents that have a model, tasks without a command are left
        to them.
        """
        return bool(task.run) or not self.run.thinks

    def _do(self, task: Task) -> None:
        with suppress(errors.TeamsError):  # the work does not depend on the status line
            presence.announce(self.store, self.team, self.caller, f"{task.id}: {task.title}"[:300])
        try:
            finished = self._run(task)
        except errors.StaleClaim as problem:  # another has it
            print(f"{task.id}: {problem.message}", file=sys.stderr)
            return
        except errors.TeamsError as problem:
            self._fail(task, None, f"{problem.message} {problem.hint}")
            return
        if finished.status == 0:
            self._complete(task, finished.output)
        else:
            self._fail(task, shell.fitting(f"{finished.output}\n[{finished.reason}]\n".lstrip("\n")), finished.reason)

    def _run(self, task: Task) -> shell.Finished:
        """Run the task's command, and keep the claim alive meanwhile.

        Raises:
            TaskFailed: The task has no command, or the command can't be started.
            StaleClaim: The task was taken away meanwhile.
        """
        if not task.run:
            raise errors.TaskFailed(f"{task.id} has no command", "Workers without a model need `run`.")
        # Processes of an earlier owner that was killed are ended, so that two don't do the task at once.
        for name in {note.by for note in task.notes if note.what == "claimed"} - {self.caller.name}:
            if presence.is_gone(presence.load(self.store, self.team, name)):
                processes.end_tagged(self.run.tag_of(name), _KILL)
        given = self._prepare(task)
        try:
            item = {} if task.item is None else {orders.ITEM: task.item}
            work = runs.directory(self.store.root, self.team, "work")
            ours = {"TEAMS_TASK_ID": task.id, "TEAMS_RESULTS": given, "TEAMS_WORK": work}
            environment = {**self.environ, **self.run.variables, **item, **ours}
            command = shell.ShellCommand(task.run, self._directory(), environment)
        except OSError as error:
            raise errors.TaskFailed(
                f"its command can't be started: {error.strerror}", "Is the repository there?"
            ) from None
        try:
            self._wait(task, command)
            return command.finish()
        except BaseException:
            command.end()
            raise
        finally:
            self._reap()
            runs.take_back(self.store.root, self.team, self.caller.name)

    def _directory(self) -> str:
        own = next((agent for agent in self.run.agents if agent.name == self.caller.name), None)
        return os.path.join(self.run.variables[REPO], (own and own.cwd) or "")

    def _prepare(self, task: Task) -> str:
        blockers = [tasks.get(self.store, self.team, key) for key in task.blocked_by]
        if task.description:
            results = {runs.key_of(blocker): blocker.result or "" for blocker in blockers}
            filled = orders.fill_results(task.description, results)[: 16 * 1024]
            if filled != task.description:
                changes = task_changes.Edit(description=filled, claim=task.claim)
                task_changes.change_task(self.store, self.team, self.caller, task.id, changes)
        return runs.give(self.store.root, self.team, self.caller.name, blockers)

    def _wait(self, task: Task, command: shell.ShellCommand) -> None:
        lease = teams.get(self.store, self.team).silence
        every, beat = min(lease / 4, 30.0), time.monotonic()
        while not command.wait(min(every, 1.0)):
            self._refuse_orphan()
            if time.monotonic() - beat >= every:
                beat = time.monotonic()
                insist(lambda: claims.heartbeat(self.store, self.team, self.caller, task.id))

    def _complete(self, task: Task, result: str) -> None:
        try:
            done = self._finish(task, task_changes.Edit(status="completed", result=result, claim=task.claim))
        except errors.CheckFailed as problem:
            self._fail(task, result, problem.message)
            return
        if done:
            first = next((line for line in result.splitlines() if line.strip()), "no output")
            body = f"{task.id} ({task.title}) is completed: {first[:300]}"
            uid = f"done-{task.id}-{task.claim}"
            with suppress(errors.TeamsError):  # the result is stored
                insist(lambda: messages.send(self.store, self.team, self.caller, self.run.leader, body, uid))

    def _fail(self, task: Task, result: str | None, reason: str) -> None:
        """Mark the task as failed, which notifies the leader."""
        changes = task_changes.Edit(status="failed", result=result, reason=reason[:4000], claim=task.claim)
        self._finish(task, changes)

    def _finish(self, task: Task, changes: task_changes.Edit) -> bool:
        place = checking.Workplace(self._directory(), self.environ, as_it_is=True)
        try:
            insist(lambda: checking.change_task(self.store, self.team, self.caller, task.id, changes, place))
        except errors.StaleClaim as problem:
            print(f"{task.id}: {problem.message}", file=sys.stderr)
            return False
        return True

    def _refuse_orphan(self) -> None:
        if os.getppid() != self.parent:
            raise _Stopped

    def _reap(self) -> None:
        """End processes that a command left behind outside its process group."""
        processes.end_descendants(self.environ["TEAMS_RUN_ID"], _KILL)


def _stop(_number: int, _frame: FrameType | None) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):  # a second signal must not disturb the clean-up
        signal.signal(number, signal.SIG_IGN)
    raise _Stopped


def main(words: list[str], environ: Mapping[str, str]) -> int:
    """Work until no task is left to wait for, and return the exit status."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    worker = None
    try:
        with suppress(OSError, AttributeError):  # on other systems the worker checks every second
            ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        processes.adopt_orphans()
        worker = Worker(environ, words[0], int(words[1]))
        worker.work()
        return 0
    except _Stopped:
        if worker:
            worker.stop()
        return 128 + signal.SIGTERM
    except errors.TeamsError as problem:
        print(f"{problem.message}  {problem.hint}", file=sys.stderr)
        return problem.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
