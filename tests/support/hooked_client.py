"""A client without a model that speaks the JSON of hooks. Its first prompt is a script:

    $ teams announce "on it"        a call of its shell tool
    say the answer                  the last text of the turn
    ---                             the rest is for the next turn: after a refused stop, or when resumed

Options: `--settings JSON` with hooks, `--session-id ID` or `--resume ID`. Everything that a model would have been shown
is kept in `$HOOKED_CLIENT/<id>.jsonl`, one object with `role` and `text` a line. The client prints `{"session_id",
"result", "is_error"}`, and exits with 0 even after an interrupt, as real clients do.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

PLACE = "HOOKED_CLIENT"
PROFILE = {
    "start": [sys.executable, os.path.abspath(__file__), "{hooks}", "--session-id", "{session_id}"],
    "resume": [sys.executable, os.path.abspath(__file__), "{hooks}", "--resume", "{session_id}"],
    "sessionId": {"from": "preset"},
    "output": {"from": "json", "path": "result"},
    "failed": {"status": True, "json": "is_error"},
    "interrupt": [["INT", 5], ["KILL", 2]],
    "hooks": "claude",
    "strip": ["TEAMS_*", "OPENCODE*", "CLAUDE*", "CODEX_*"],
}
"""The profile with which `config.json` makes a harness of this client."""


class Session:
    """A session with its transcript, whose first prompt is the script."""

    def __init__(self, key: str, hooks: dict[str, Any]) -> None:
        self.path = Path(os.environ[PLACE], f"{key}.jsonl")
        self.key = key
        self.hooks = hooks

    def note(self, role: str, text: str) -> None:
        """Show the model a text."""
        with self.path.open("a") as file:
            file.write(json.dumps({"role": role, "text": text}) + "\n")

    def hook(self, event: str, **more: Any) -> dict[str, Any]:
        """Run the hooks of an event as the real client does; return their answer."""
        given = json.dumps({"session_id": self.key, "cwd": os.getcwd(), "hook_event_name": event, **more})
        answer: dict[str, Any] = {}
        for hook in (hook for entry in self.hooks.get(event, []) for hook in entry["hooks"]):
            command = ["sh", "-c", hook["command"]]
            done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=hook["timeout"])
            if done.returncode == 0 and done.stdout.strip():
                answer |= json.loads(done.stdout)
        if context := answer.get("hookSpecificOutput", {}).get("additionalContext"):
            self.note("hook", context)
        return answer

    def run(self, prompt: str) -> str:
        """Run a user turn, and the turns that refused stops add; return the last answer."""
        self.hook("SessionStart", source="startup")
        self.hook("UserPromptSubmit", prompt=prompt)
        self.note("user", prompt)
        for blocks in range(9):
            answer = self.turn()
            stop = self.hook("Stop", stop_hook_active=blocks > 0)
            if stop.get("decision") != "block":
                return answer
            self.note("user", stop["reason"])
        return ""  # as the real one, which gives up

    def turn(self) -> str:
        """Carry out the script of this turn; return the answer."""
        sections = shown(self.path, "user")[0].split("\n---\n")
        number = len(shown(self.path, "assistant"))
        answer = "nothing more to say"
        for line in sections[number].splitlines() if number < len(sections) else []:
            if line.startswith("$ "):
                self.tool(line[2:])
            elif line.startswith("say "):
                answer = line[4:]
        self.note("assistant", answer)
        return answer

    def tool(self, command: str) -> None:
        """Call the shell tool, in a process group of its own as in real clients."""
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, start_new_session=True)
        self.note("tool", done.stdout + done.stderr)
        self.hook("PostToolBatch", tool_calls=[{"tool_name": "Bash", "tool_input": {"command": command}}])

    def interrupted(self, *_: object) -> None:
        """End at once, with exit status 0."""
        self.note("assistant", "")
        self.note("user", "[Request interrupted by user]")
        print(json.dumps({"session_id": self.key, "result": "", "is_error": True}), flush=True)
        os._exit(0)


def shown(path: Path, role: str = "") -> list[str]:
    """Return the texts that the model was shown in a session, of one role or of all."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line["text"] for line in lines if role in ("", line["role"])]


def main() -> None:
    """Run one turn of a session, by the options of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings", type=json.loads, default={})
    parser.add_argument("--session-id")
    parser.add_argument("--resume")
    words = parser.parse_args()
    session = Session(words.session_id or words.resume, words.settings.get("hooks", {}))
    if words.resume and not session.path.exists():
        sys.exit(f"no conversation found with session ID {words.resume}")
    signal.signal(signal.SIGINT, session.interrupted)
    answer = session.run(sys.stdin.read())
    print(json.dumps({"session_id": session.key, "result": answer, "is_error": False}))


if __name__ == "__main__":
    main()
