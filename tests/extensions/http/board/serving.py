"""A real server of a scratch root."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.support.cli import TIMEOUT, Cli


class Serving:
    """`teams serve` on a free port; killed and started anew it is on the same one."""

    def __init__(self, cli: Cli, *words: str) -> None:
        self.cli = cli
        self.words = words
        self.start("0")

    def start(self, port: str = "") -> None:
        """Start it, and wait until it serves."""
        self.process: Any = self.cli.start("serve", "--port", port or str(self.port), "--json", *self.words, agent="")
        said = json.loads(self.process.stdout.readline())
        self.url, self.token = said["url"], said["token"]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        """End it without a chance to say so."""
        self.process.kill()
        self._reap()

    def stop(self) -> None:
        """End it as its user does."""
        self.process.terminate()
        self._reap()

    def _reap(self) -> None:
        try:
            self.process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
