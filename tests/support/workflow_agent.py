"""Stands for an agent with a model in a workflow. It carries out its instructions, a turn at a time.

`python workflow_agent.py start|resume`: claims what is ready with `teams`, does it by the task's command, and completes
it, until nothing is ready. It answers with a line of JSON, as clients do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from teams_cli.runs import runs
from teams_cli.store import opening
from teams_cli.tasks.tasks import get

TEAMS = [sys.executable, "-m", "teams_cli"]
TEAM = os.environ.get("TEAMS_TEAM", "")


def teams(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TEAMS, *words, "--json"], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def do(task: dict[str, object]) -> None:
    """Carry out the command of the task, with the results of the tasks before it at hand."""
    store = opening.from_environment(os.environ)
    before = [get(store, TEAM, key) for key in task["blockedBy"]]  # type: ignore[attr-defined]
    given = runs.write_results(store.root, TEAM, os.environ["TEAMS_AGENT_ID"], before)
    work = runs.directory(store.root, TEAM, "work")
    item = {"item": str(task["item"])} if "item" in task else {}
    environment = {**os.environ, **item, "TEAMS_RESULTS": given, "TEAMS_WORK": work, "TEAMS_TASK_ID": str(task["id"])}
    done = subprocess.run(["sh", "-c", str(task["run"])], capture_output=True, text=True, env=environment)
    status = "failed" if done.returncode else "completed"
    result = done.stdout + done.stderr
    assert teams("update-task", str(task["id"]), "--status", status, "--result", result).returncode == 0


def main() -> None:
    turn = sys.stdin.read()
    if "You take the last turn of" in turn:
        found = turn.count(", completed, by ")
        print(json.dumps({"type": "answer", "text": f"Verdict: {found} tasks are completed\n\n{turn}"}))
        return
    if sys.argv[1] == "start":
        assert "teams claim-task --next" in turn, turn
    done = 0
    while (claimed := teams("claim-task", "--next")).returncode == 0:
        do(json.loads(claimed.stdout))
        done += 1
    assert claimed.returncode == 10, claimed
    print(json.dumps({"type": "answer", "text": f"{done} tasks done"}))


if __name__ == "__main__":
    main()
