"""Machines for tests: each has processes, a name and a network of its own, and a cable to a server that can be cut."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

from tests.support.cli import COMMAND, TIMEOUT, Answer
from tests.support.postgres import Postgres

NEEDED = ("ip", "unshare", "nsenter", "hostname")


def missing() -> str:
    """Return why no machines can be made here; "" if they can."""
    if os.geteuid() != 0:
        return "making network namespaces takes root"
    if absent := [name for name in NEEDED if shutil.which(name) is None]:
        return f"there is no {absent[0]} on this machine"
    name = f"teams-{os.getpid()}-try"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode != 0:
        return "network namespaces can't be made here"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return ""


class Machine:
    """A machine with its name and the directory of its files."""

    def __init__(self, name: str, top: Path) -> None:
        self.name = name
        self.root = top / name / "root"
        self.root.parent.mkdir()
        number = int.from_bytes(os.urandom(2), "big") & 0x3FFF
        net = f"10.{213 + (number >> 12)}.{(number >> 4) & 255}.{(number & 15) * 16}"
        first, _, last = net.rpartition(".")
        self.here, self.there = f"{first}.{int(last) + 1}", f"{first}.{int(last) + 2}"
        self.space = f"teams-{os.getpid()}-{name}"
        self.cable = f"tm{number:04x}{name[:4]}"
        _ip("netns", "add", self.space)
        _ip("link", "add", self.cable, "type", "veth", "peer", "name", "cable", "netns", self.space)
        _ip("addr", "add", f"{self.here}/28", "dev", self.cable)
        _ip("link", "set", self.cable, "up")
        _ip("-n", self.space, "addr", "add", f"{self.there}/28", "dev", "cable")
        for device in ("lo", "cable"):
            _ip("-n", self.space, "link", "set", device, "up")
        words = ["ip", "netns", "exec", self.space, "unshare", "--pid", "--fork", "--mount-proc", "--uts", "sh", "-c"]
        self._outer = subprocess.Popen(
            [*words, f"hostname {name} && echo ready && exec sleep 100000"], stdout=subprocess.PIPE
        )
        assert self._outer.stdout and self._outer.stdout.readline() == b"ready\n"
        children = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children").read_text().split()
        self._first = int(children[0])
        self.address = ""

    def ok(self, *words: str, agent: str = "", team: str = "") -> Any:
        """Run a command of `teams` on this machine, which must succeed; return its JSON document."""
        inside = ["nsenter", "-t", str(self._first), "-p", "-m", "-u", "-n", "--wd=/", *COMMAND, *words, "--json"]
        said = {"TEAMS_HOME": str(self.root), "TEAMS_STORE": self.address, "TEAMS_AGENT_ID": agent, "TEAMS_TEAM": team}
        environ = {**os.environ, **{key: value for key, value in said.items() if value}}
        done = subprocess.run(inside, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT)
        answer = Answer(words, done.returncode, done.stdout, done.stderr)
        assert answer.status == 0 and "Traceback" not in answer.stderr, answer
        return json.loads(answer.stdout)

    def cut(self) -> None:
        """Disconnect the cable."""
        _ip("link", "set", self.cable, "down")

    def mend(self) -> None:
        """Connect the cable again."""
        _ip("link", "set", self.cable, "up")

    def die(self) -> None:
        """Kill all processes of the machine at once."""
        try:
            os.kill(self._first, signal.SIGKILL)
        except ProcessLookupError:
            return
        self._outer.wait(TIMEOUT)

    def remove(self) -> None:
        self.die()
        if self._outer.stdout:
            self._outer.stdout.close()
        subprocess.run(["ip", "link", "del", self.cable], capture_output=True)
        subprocess.run(["ip", "netns", "del", self.space], capture_output=True)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def serve(machines: list[Machine]) -> Postgres:
    """Start a server that the machines reach over their cables, each by an address of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Postgres(listen=",".join(machine.here for machine in machines), port=port)
    hosts = "".join(f"host all all {machine.there}/32 trust\n" for machine in machines)
    (server.directory / "data/pg_hba.conf").write_text(f"local all all trust\n{hosts}")
    assert server.psql("SELECT pg_reload_conf()").returncode == 0
    for machine in machines:
        machine.address = f"postgresql://teams@{machine.here}:{port}/postgres"
    return server
