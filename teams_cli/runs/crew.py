"""The crew of a run: its workers and its agents with a model, as one."""

from __future__ import annotations

from teams_cli.runs import agent_crew, worker_crew
from teams_cli.tasks.tasks import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from teams_cli.runs.live import LiveRun

    class Fallen(Protocol):
        """One who ended by something going wrong."""

        name: str

        def how_it_ended(self) -> str:
            """What is known of its end."""


class Crew:
    """All who work in a run, whatever they are."""

    def __init__(self, run: LiveRun) -> None:
        self.workers = worker_crew.WorkerCrew(run)
        self.agents = agent_crew.AgentCrew(run)

    def start(self) -> None:
        """Start all of them.

        Raises:
            TeamsError: One can't be started.
        """
        self.workers.start()
        self.agents.start()

    def living(self) -> list[str]:
        """The names of those who work, or can be called to."""
        return [*self.workers.living(), *self.agents.living()]

    def call(self, found: list[Task]) -> None:
        """Call those who are idle while there is work for them."""
        self.agents.call(found)

    def untaken(self, found: list[Task]) -> list[Task]:
        """The tasks that are ready and that nobody will take: workers do by themselves, while there are any."""
        return [] if self.workers.living() else self.agents.untaken(found)

    def fallen(self) -> list[Fallen]:
        """Those who ended by something going wrong since this was asked last."""
        return [*self.workers.fallen(), *self.agents.fallen()]

    def wait(self, seconds: float) -> bool:
        """Wait until all have ended, at most so long; whether they did."""
        return self.workers.wait(seconds) and self.agents.wait(seconds)

    def stop(self) -> None:
        """End all who still work."""
        try:
            self.workers.stop()
        finally:
            self.agents.stop()
