"""A client without a model that sits in a terminal. Each line on its standard input is a hook to run, `{"words",
"event"}`; the output of the hook is a line on its standard output. It runs until its input ends.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any


def main() -> None:
    """Run the requested hooks as a client does, each through a shell."""
    for line in sys.stdin:
        wish = json.loads(line)
        words = [sys.executable, "-m", "teams_cli", "hook", *wish["words"]]
        given = json.dumps(wish["event"])
        done = subprocess.run(["sh", "-c", '"$@"; exit $?', "sh", *words], input=given, capture_output=True, text=True)
        print(json.dumps({"status": done.returncode, "stdout": done.stdout, "stderr": done.stderr}), flush=True)


class SeatedClient:
    """A running client with the environment *environ*. The command *start* can run it elsewhere."""

    def __init__(
        self,
        environ: dict[str, str],
        client: str = "claude",
        session: str = "s-1",
        start: Callable[..., subprocess.Popen[Any]] = subprocess.Popen,
        words: Sequence[str] = (),
    ) -> None:
        self.client = client
        self.session = session
        options = {"env": environ} if start is subprocess.Popen else {}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "start_new_session": True}
        self.process = start([sys.executable, __file__, *words], **options, **pipes)

    def hook(self, event: str, **more: Any) -> str:
        """Let the client run our hook for an event; return the output of the hook."""
        assert self.process.stdin and self.process.stdout
        given = {"hook_event_name": event, "session_id": self.session, **more}
        self.process.stdin.write(json.dumps({"words": [self.client], "event": given}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["status"] == 0, answer
        return str(answer["stdout"])

    def kill(self) -> None:
        """Kill the client, as in a crash."""
        self.process.kill()
        self.process.communicate()


if __name__ == "__main__":
    main()
