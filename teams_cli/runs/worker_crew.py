"""Crews: the worker processes of a run, from their start to their end, with nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from teams_cli import errors, processes
from teams_cli.runs import hand_offs
from teams_cli.runs.runs import SHELL, Assigned, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.runs.live import LiveRun

_GRACE = 6.0
_KILL = (("KILL", 2.0),)


class WorkerProcess:
    """One worker process. It is in a session of its own, so that Ctrl-C reaches us and not it."""

    def __init__(self, run: LiveRun, assigned: Assigned) -> None:
        self.name = assigned.name
        self.tag = run.record.tag_of(assigned.name)
        self.log = os.path.join(hand_offs.directory(run.store.root, run.team, "logs"), f"{self.name}.log")
        environment = run.environment_of(self.name, assigned.type or assigned.role)
        # -P: the repository must not be searched for modules of our names.
        words = [run.surroundings.python, "-P", "-m", "teams_cli.runs.worker", run.record.id, str(os.getpid())]
        try:
            with open(self.log, "wb") as log:
                self.process = subprocess.Popen(
                    words, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
        except OSError as error:
            raise errors.StorageFailed(f"can't start {self.name}: {error.strerror}", f"Look at {self.log}.") from None

    def runs(self) -> bool:
        return self.process.poll() is None

    def how_it_ended(self) -> str:
        """Its exit status or signal, and the last line that it said."""
        status = self.process.returncode
        how = f"exit status {status}" if status >= 0 else f"ended by signal {-status}"
        try:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                said = log.read()[-2000:].strip().rpartition("\n")[2]
        except OSError:
            said = ""
        return f"{how}: {said}" if said else how


class WorkerCrew:
    """The workers of a run."""

    def __init__(self, run: LiveRun) -> None:
        self.run = run
        self.workers: list[WorkerProcess] = []
        self._missed: set[str] = set()

    def start(self) -> None:
        """Start all workers.

        Raises:
            StorageFailed: One can't be started.
        """
        record = self.run.record
        for assigned in record.agents:
            if record.harness_of(assigned) == SHELL:
                self.workers.append(WorkerProcess(self.run, assigned))

    def living(self) -> list[str]:
        """The names of the workers whose processes run."""
        return [worker.name for worker in self.workers if worker.runs()]

    def fallen(self) -> list[WorkerProcess]:
        """The workers that ended by something going wrong since this was asked last; what they left behind ends too."""
        found = [w for w in self.workers if not w.runs() and w.process.returncode and w.name not in self._missed]
        for worker in found:
            self._missed.add(worker.name)
            processes.end_tagged(worker.tag, _KILL)
        return found

    def wait(self, seconds: float) -> bool:
        """Wait for the end of all workers, at most so long; whether they ended."""
        give_up = time.monotonic() + seconds
        for worker in self.workers:
            try:
                worker.process.wait(max(give_up - time.monotonic(), 0.001))
            except subprocess.TimeoutExpired:
                return False
        return True

    def stop(self) -> None:
        """End all workers and what they started: asked first, by force after a grace or a second Ctrl-C."""
        for worker in self.workers:
            if worker.runs():
                worker.process.send_signal(signal.SIGTERM)
        try:
            self.wait(_GRACE)
        finally:
            for worker in self.workers:
                if worker.runs():
                    worker.process.kill()
                worker.process.wait()
                processes.end_tagged(worker.tag, _KILL)


def reap(run: Run) -> None:
    """End what an earlier attempt at the run left running: it was killed before it could."""
    for name in [*(assigned.name for assigned in run.agents), run.leader]:
        processes.end_tagged(run.tag_of(name), _KILL)
