"""An everyday command opens no file of the store to read it a second time, unless it wrote the file itself."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.support.cli import make_team

WATCHER = """
import os, runpy, sys
log = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

def note(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and os.path.exists(arguments[0]):
        if not arguments[2] & (os.O_WRONLY | os.O_RDWR):
            os.write(log, f"read {arguments[0]}\\n".encode())
    elif event == "os.rename":
        os.write(log, f"written {arguments[1]}\\n".encode())

sys.addaudithook(note)
sys.argv[0] = "teams"
runpy.run_module("teams_cli", run_name="__main__", alter_sys=True)
"""
COMMANDS = [
    "get-tasks",
    "claim-task --next",
    "claim-task task-2",
    "get-task task-2",
    "update-task task-1 --status completed --result done",
    "update-task task-2 --status completed --result done",
    "send-message lea hello",
    "send-message lea again",
    "read-messages",
    "wait --timeout 0",
    "heartbeat",
    "create-task next",
    "claim-task task-3",
    "release-task task-3",
]


def test_no_everyday_command_reads_a_file_twice(tmp_path: Path) -> None:
    """It may read its own file again, because the times of the file can't show yet whether another process wrote it,
    too.
    """
    team = make_team(tmp_path / "root", "bob", roles={"bob": "task-manager"})
    for options in ([], ["--check", "true"], [], []):
        team.ok("create-task", "do it", *options, agent="lea")
    team.ok("send-message", "bob", "hello", agent="lea")
    for command in COMMANDS:
        time.sleep(0.05)  # so that files of the command before are older than a step of that clock
        log = tmp_path / "log"
        words = [sys.executable, "-c", WATCHER, str(log), *command.split()]
        answer = subprocess.run(words, env=team.environ(agent="bob"), capture_output=True, text=True, timeout=120)
        assert answer.returncode == 0 or command.startswith("wait"), (command, answer.stderr)
        lines = Counter(line for line in log.read_text().splitlines() if line.endswith(".json"))
        log.unlink()
        assert any(line.endswith("/team.json") for line in lines), command
        for line, times in lines.items():
            what, path = line.split(" ", 1)
            assert what == "written" or times == 1 or f"written {path}" in lines, (command, path, times)
