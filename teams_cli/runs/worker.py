"""A worker without a model: the program `python -m teams_cli.runs.worker RUN PARENT`, which `teams run` starts.

The environment says which member the worker is. The worker joins, claims ready tasks and runs their commands. It leaves
when all tasks are settled or its parent process is gone.
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
from teams_cli.agents import completing, shell
from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.runs import orders, runs
from teams_cli.runs.runs import Run
from teams_cli.store import opening, pace
from teams_cli.store.pace import insist, paced
from teams_cli.tasks import changes as task_changes
from teams_cli.tasks import checks, claims, plans, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams import config, presence, teams
from teams_cli.teams.permission import Caller
from teams_cli.views import conditions
from teams_cli.workflows.model import REPO

_PARENT_DEATH_SIGNAL = 1
"""The operation of prctl(2) that makes the kernel send this process a signal when its parent ends."""
_SEEN_EVERY = 20.0
"""Seconds after which a waiting worker records again that it is alive."""
_MAX_HEARTBEAT = 30.0
"""The maximum number of seconds between two renewals of a claim."""
_KILL = (("KILL", 1.0),)
"""The signal for processes that a command left outside its process group, and the seconds to wait for their end."""
_MAX_FILLED = 16 * 1024
"""The maximum length of a description after the results of earlier tasks were filled in, in characters."""
_MAX_REASON = 4000


class _Stopped(BaseException):
    """Raised when the worker must end, because it was stopped or its parent process is gone."""


class Worker:
    """A process of a run that runs the commands of tasks, without a model."""

    def __init__(self, environ: Mapping[str, str], run: str, parent: int) -> None:
        self.environ = environ
        self.store = opening.from_environment(environ)
        self.team = environ["TEAMS_TEAM"]
        self.run: Run = self.store.get(self.team, runs.RUN, run)[0]
        self.parent = parent
        self.name = environ["TEAMS_AGENT_ID"]
        self.caller = Caller(self.name, config=config.load(self.store.root, environ))
        self.assigned = next(agent for agent in self.run.agents if agent.name == self.name)
        self.directory = os.path.join(self.run.variables[REPO], self.assigned.cwd or "")

    def work(self) -> None:
        """Join the team, do tasks until no task is left to wait for, and leave."""
        insist(lambda: joining.join(self.store, self.team, self.caller, self.assigned.role, self.assigned.type))
        team = teams.get(self.store, self.team)
        claims.release_tasks_of(self.store, team, self.name, self.name, "its worker was restarted")
        presence.register_process(self.store, self.team, self.name, os.getpid())
        while task := self._claim_next():
            self._do(task)
        joining.leave(self.store, self.team, self.caller)

    def stop(self) -> None:
        """Release the worker's tasks, and leave the team. This is called after the running command has ended."""
        processes.end_descendants(self.environ[processes.TAG], _KILL)
        with suppress(errors.TeamsError):  # the claims end anyway, because this process ends
            team = teams.get(self.store, self.team)
            claims.release_tasks_of(self.store, team, self.name, self.name, "the run was interrupted")
            joining.leave(self.store, self.team, self.caller)

    def _claim_next(self) -> Task | None:
        """Wait until a task is ready, and claim it. Return None if no task is left to wait for. A task that a reviewer
        returned to this worker comes first.
        """
        claimed: Task | None = None

        def is_suitable(task: Task) -> bool:  # tasks without a command are left to the agents that have a model
            return bool(task.run) or not self.run.model_harness

        def try_to_claim() -> bool:  # True ends the wait: a task is claimed, or all tasks are settled
            nonlocal claimed
            self._refuse_orphan()
            if returned := tasks.held_by(self.store, self.team, self.name):
                claimed = returned[0]
                return True
            try:
                claimed = insist(lambda: claims.claim_next(self.store, self.team, self.caller, wanted=is_suitable))
            except errors.NothingReady:
                presence.note_sign_of_life(self.store, self.team, self.name, every=_SEEN_EVERY)
                all_settled = conditions.all_settled(self.store, self.team)
                return all_settled.look(self.store, self.team, pace.Alarm()) is not None
            return True

        pace.sleep_until(self.store, self.team, paced(try_to_claim), None)
        return claimed

    def _do(self, task: Task) -> None:
        """Run the command of a claimed task, and complete the task, or fail it with the reason."""
        with suppress(errors.TeamsError):  # the work does not depend on the status line
            presence.announce(self.store, self.team, self.caller, f"{task.id}: {task.title}"[:300])
        try:
            finished = self._run(task)
        except errors.StaleClaim as problem:  # another worker has claimed the task
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
        """Run the task's command, and renew the claim meanwhile. Raise StaleClaim if the task was taken away."""
        if not task.run:
            raise errors.TaskFailed(f"{task.id} has no command", "Workers without a model need `run`.")
        if task.plan_required:  # the command must not run before, because it could not be completed
            plans.refuse_unplanned(self.store, self.team, task.id)
        # Processes of an earlier owner that was killed are ended, so that two don't do the task at once.
        for name in {note.by for note in task.notes if note.what == "claimed"} - {self.name}:
            if presence.is_gone(presence.load_other(self.store, self.team, name)):
                processes.end_tagged(self.run.tag_of(name), _KILL)
        environment = {
            **self._environment_for(task),
            "TEAMS_RESULTS": self._prepare(task),
            "TEAMS_WORK": runs.directory(self.store.root, self.team, "work"),
        }
        try:
            command = shell.ShellCommand(task.run, self.directory, environment)
        except OSError as error:
            raise errors.TaskFailed(
                f"its command can't be started: {error.strerror}", "Is the repository there?"
            ) from None
        try:
            lease = teams.get(self.store, self.team).silence
            heartbeat_every = min(lease / 4, _MAX_HEARTBEAT)
            last_heartbeat = time.monotonic()
            while not command.wait(min(heartbeat_every, 1.0)):
                self._refuse_orphan()
                if time.monotonic() - last_heartbeat >= heartbeat_every:
                    last_heartbeat = time.monotonic()
                    insist(lambda: claims.heartbeat(self.store, self.team, self.caller, task.id))
            return command.finish()
        except BaseException:
            command.finish(end=True)
            raise
        finally:
            processes.end_descendants(self.environ[processes.TAG], _KILL)
            runs.remove_results(self.store.root, self.team, self.name)

    def _environment_for(self, task: Task) -> dict[str, str]:
        """Return the environment for the command and the check of the task, with the variables of the run."""
        item = {} if task.item is None else {orders.ITEM: task.item}
        return {**self.environ, **self.run.variables, **item, "TEAMS_TASK_ID": task.id}

    def _prepare(self, task: Task) -> str:
        """Fill the results of the blockers into the task's description. Also write them to files, and return the
        directory of these files.
        """
        blockers = [tasks.get(self.store, self.team, blocker_id) for blocker_id in task.blocked_by]
        if task.description:
            results = {runs.key_of(blocker): blocker.result or "" for blocker in blockers}
            filled = orders.fill_results(task.description, results)[:_MAX_FILLED]
            if filled != task.description:
                edit = task_changes.Edit(description=filled, claim=task.claim)
                task_changes.change_task(self.store, self.team, self.caller, task.id, edit)
        return runs.write_results(self.store.root, self.team, self.name, blockers)

    def _complete(self, task: Task, result: str) -> None:
        """Mark the task as completed, and send the leader a message; or mark it as failed if its check fails, or if it
        can't be completed for another reason.
        """
        try:
            is_recorded = self._change(task, task_changes.Edit(status="completed", result=result, claim=task.claim))
        except (errors.Busy, errors.StorageFailed):  # nothing can be stored, so nothing can be marked as failed
            raise
        except errors.CheckFailed as problem:
            self._fail(task, result, problem.message)
            return
        except errors.TeamsError as problem:
            self._fail(task, result, f"it can't be completed: {problem.message}")
            return
        if is_recorded:
            first_line = next((line for line in result.splitlines() if line.strip()), "no output")
            body = f"{task.named} is completed: {first_line[:300]}"
            uid = f"done-{task.id}-{task.claim}"
            with suppress(errors.TeamsError):  # the result is stored
                insist(lambda: messages.send(self.store, self.team, self.caller, self.run.leader, body, uid))

    def _fail(self, task: Task, result: str | None, reason: str) -> None:
        edit = task_changes.Edit(status="failed", result=result, reason=reason[:_MAX_REASON], claim=task.claim)
        self._change(task, edit)

    def _change(self, task: Task, edit: task_changes.Edit) -> bool:
        """Change the task. Return False if another worker has claimed the task meanwhile."""
        workplace = checks.Workplace(self.directory, self._environment_for(task), as_it_is=True)
        try:
            insist(lambda: completing.change_task(self.store, self.team, self.caller, task.id, edit, workplace))
        except errors.StaleClaim as problem:
            print(f"{task.id}: {problem.message}", file=sys.stderr)
            return False
        return True

    def _refuse_orphan(self) -> None:
        if os.getppid() != self.parent:  # the run has ended without this worker
            raise _Stopped


def _stop(_number: int, _frame: FrameType | None) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):  # a second signal must not disturb the clean-up
        signal.signal(number, signal.SIG_IGN)
    raise _Stopped


def main(words: list[str], environ: Mapping[str, str]) -> int:
    """Work until no task is left, and return the exit status. *words* are the run's id and the parent's process id."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    worker = None
    try:
        with suppress(OSError, AttributeError):  # then the worker checks every second whether its parent lives
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
