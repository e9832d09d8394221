"""Real clients at terminals, as a person uses them; tmux provides the terminals and shows their screens."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import TO_START, Office
from tests.e2e.model import Say
from tests.e2e.test_doctor import trust
from tests.support import workflow_runs
from tests.support.waits import until

TMUX = shutil.which("tmux") or ""
PATIENCE = 150.0
_PROMPTS = {"claude": "\u276f", "codex": "for agents", "gemini": "Type your", "qwen": "Type your", "opencode": "Ask"}
_READY = {
    "claude": lambda office: (
        office.home / ".claude.json",
        {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
            "projects": {str(office.work): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
        },
    ),
}
NAME = "agentA"
"""The alias of the first client that joins without a name."""
WOKEN_NATIVELY = ("claude", "codex", "opencode", "qwen")
ALLOWING = {
    "claude": ["--allowedTools", "Bash(teams:*)"],
    "codex": ["-s", "danger-full-access", "-a", "never"],
    "gemini": ["--approval-mode", "yolo"],
    "qwen": ["--yolo"],
}
ASKING = {"codex": ["-s", "workspace-write", "-a", "on-request"], "qwen": ["--approval-mode", "default"]}
ASKING_BY = {"opencode": {"OPENCODE_PERMISSION": '{"bash":"ask"}'}}
"""Options and variables that make a client ask its person before a command; the other clients ask by
themselves.
"""
_WORDS = {"claude": ["--permission-mode", "default"], "gemini": ["--skip-trust"]}


class Desk:
    """The terminals of one test, in a tmux server of its own."""

    def __init__(self, office: Office) -> None:
        if not TMUX:
            pytest.skip("there is no tmux on PATH")
        self.office = office
        self.place = str(office.top / "tmux")
        prepare(office)

    def tmux(self, *words: str) -> str:
        """What a command of tmux prints."""
        done = self._tmux(*words)
        assert done.returncode == 0, done
        return done.stdout

    def says(self, *words: str) -> bool:
        return self._tmux(*words).returncode == 0

    def _tmux(self, *words: str) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.office.home), "LANG": "C.UTF-8"}
        return subprocess.run([TMUX, "-S", self.place, *words], capture_output=True, text=True, env=environ)

    def start(self, name: str, *words: str, **environ: str) -> Seat:
        """Start the client in a terminal as its person does: with a team, and without a name."""
        return self.run(name, self.office.client, *_WORDS.get(self.office.client, []), *words, **environ)

    def open(self, name: str, *words: str, options: Iterable[str] = (), **environ: str) -> Seat:
        """Start the client by `teams open` with *words*, and with *options* for the client itself."""
        own = [*_WORDS.get(self.office.client, []), *options]
        given = ["--", *own] if own else []
        return self.run(name, "teams", "open", self.office.client, *words, *given, **environ)

    def run(self, name: str, *words: str, **environ: str) -> Seat:
        """Start any program in a terminal with the name."""
        variables = self.office.environ(TERM="xterm-256color", LANG="C.UTF-8", **environ)
        said = [f"{key}={value}" for key, value in variables.items() if value]
        size = ["-x", "140", "-y", "45"]
        self.tmux("new-session", "-d", "-s", name, *size, "-c", str(self.office.work), "env", "-i", *said, *words)
        return Seat(self, name)

    @property
    def screen(self) -> str:
        """An empty screen, since nobody looks at one."""
        return ""

    def close(self) -> None:
        subprocess.run([TMUX, "-S", self.place, "kill-server"], capture_output=True)
        for pid in left_over(self.office):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def left_over(office: Office) -> list[int]:
    """The processes of the office's clients that still run, daemons included."""
    home = f"HOME={office.home}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if home in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


class Seat:
    """One terminal."""

    def __init__(self, desk: Desk, name: str) -> None:
        self.desk = desk
        self.name = name

    @property
    def screen(self) -> str:
        """What the person sees."""
        return self.desk.tmux("capture-pane", "-p", "-t", f"={self.name}:")

    @property
    def pid(self) -> int:
        """The process that was started in the terminal."""
        return int(self.desk.tmux("list-panes", "-t", f"={self.name}:", "-F", "#{pane_pid}"))

    def ends(self) -> None:
        """Wait until the process in the terminal has ended."""
        there = ["has-session", "-t", f"={self.name}"]
        until(lambda: not self.desk.says(*there), lambda: self.screen)

    def wait_for(self, text: str, patience: float = PATIENCE) -> None:
        until(lambda: text in self.screen, lambda: f"no {text!r} in\n{self.screen}", patience)

    def ready(self) -> Seat:
        """Wait until the client shows its prompt."""
        self.wait_for(_PROMPTS[self.desk.office.client], TO_START)
        time.sleep(1)  # a client draws its prompt before it reads keys
        return self

    def type(self, text: str) -> None:
        """Type *text* without Enter."""
        self.desk.tmux("send-keys", "-t", f"={self.name}:", "-l", text)
        time.sleep(0.4)

    def press(self, key: str) -> None:
        self.desk.tmux("send-keys", "-t", f"={self.name}:", key)

    def say(self, text: str) -> None:
        """Type *text*, and press Enter once it is shown: some clients take an Enter that comes at once for a
        part of it.
        """
        self.type(text)
        self.wait_for(text, TO_START)
        self.press("Enter")


def prepare(office: Office) -> None:
    """Answer in advance what the client asks its person at its first start."""
    if office.client in _READY:
        path, document = _READY[office.client](office)
        path.write_text(json.dumps(document))
    if office.client == "codex":
        with (office.home / ".codex/config.toml").open("a") as config:
            config.write(f'[projects."{office.work}"]\ntrust_level = "trusted"\n')


def without_tmux(office: Office) -> str:
    """A PATH with all programs of the office except tmux."""
    place = office.top / "programs"
    place.mkdir()
    for directory in ("/usr/local/bin", "/usr/bin", "/bin"):
        for name in set(os.listdir(directory)) - {"tmux", *os.listdir(place)}:
            (place / name).symlink_to(f"{directory}/{name}")
    return f"{office.bin}:{place}"


def install(office: Office) -> None:
    """Install the hooks in the client's settings, and have the client trust them."""
    office.say("install", office.client)
    if office.client == "codex":
        trust(office)


def row_of(office: Office, name: str) -> dict[str, Any]:
    """The row of a member in `list-agents`; empty if there is none."""
    rows = json.loads(office.say("list-agents"))["agents"]
    return next((row for row in rows if row["name"] == name), {})


def wait_for_state(office: Office, name: str, state: str, patience: float = PATIENCE) -> dict[str, Any]:
    """Wait until the member's terminal is in the state, and return the member's row."""
    until(
        lambda: row_of(office, name).get("terminal", {}).get("state") == state,
        lambda: f"{name} is not {state}: {row_of(office, name)}\n{office.logs()}",
        patience,
    )
    return row_of(office, name)


def seats(*clients: str, beside: Iterable[str] = ()) -> pytest.MarkDecorator:
    """The clients that a test is for; those *beside* are tested with the slow tests."""
    slower = [pytest.param(client, marks=pytest.mark.slow) for client in beside]
    return pytest.mark.parametrize("office", [*clients, *slower], indirect=True)


def seated(office: Office, desk: Desk, name: str = "one", *words: str, **environ: str) -> Seat:
    """The client at its prompt, in the wrapper of `teams open` if it can't be woken otherwise."""
    if office.client in WOKEN_NATIVELY:
        return desk.start(name, *words, **environ).ready()
    return desk.open(name, options=words, **environ).ready()


def begun(office: Office, desk: Desk, *words: str) -> Seat:
    """The client after its first turn, idle again."""
    install(office)
    office.model.script("[me]", Say("hello"), *[Say("on it")] * 15)
    seat = seated(office, desk, "one", *words)
    seat.say("[me] hi")
    office.model.wait_for("[me]", 1, TO_START)
    wait_for_state(office, NAME, "idle")
    return seat


def opened_again(office: Office, desk: Desk) -> Seat:
    """A client that ended, opened in its session by the name of its agent."""
    again = back_in_session(office, desk.open("again", "--resume", NAME))
    wait_for_state(office, NAME, "idle", TO_START)
    return again


def back_in_session(office: Office, seat: Seat) -> Seat:
    """A client that goes on with a session: OpenCode shows no prompt then, and Codex joins only with its next
    turn.
    """
    if office.client != "opencode":
        seat.ready()
    if office.client == "codex":
        seat.say("go on")
    return seat


def history_of(office: Office) -> str:
    return str(office.say("history"))


def wait_for_mail(office: Office, seat: Seat | Desk, text: str, word: str = "[me]") -> None:
    """Wait until the model was shown *text*; the first turn of a client that just started may take long."""

    def why() -> str:
        return f"no {text}\n{seat.screen}\n{office.logs()}"

    until(lambda: text in office.model.requests[word][-1].text, why, TO_START)


def processes_of(office: Office, text: str) -> list[int]:
    """The processes of `teams` for the office that have *text* in their command line."""
    return [pid for pid, line in workflow_runs.processes_of(office.cli.root).items() if text in line]


def waiting_for(office: Office) -> list[int]:
    """The hooks that wait beside clients."""
    return processes_of(office, "--wait")
