"""Real clients in pseudo-terminals, which a person sits in front of: tmux gives the terminal and shows the screen."""

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
PATIENCE = 40.0
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
"""Who the first client is that nobody named."""
WOKEN_NATIVELY = ("claude", "codex", "opencode", "qwen")
ALLOWING = {
    "claude": ["--allowedTools", "Bash(teams:*)"],
    "codex": ["-s", "danger-full-access", "-a", "never"],
    "gemini": ["--approval-mode", "yolo"],
    "qwen": ["--yolo"],
}
ASKING = {"codex": ["-s", "workspace-write", "-a", "on-request"], "qwen": ["--approval-mode", "default"]}
ASKING_BY = {"opencode": {"OPENCODE_PERMISSION": '{"bash":"ask"}'}}
"""What has them ask their person before a command, by options or by variables; the others do by themselves."""
_WORDS = {"claude": ["--permission-mode", "default"], "gemini": ["--skip-trust"]}


class Desk:
    """The terminals of one test: a tmux server of its own."""

    def __init__(self, office: Office) -> None:
        if not TMUX:
            pytest.skip("there is no tmux on PATH")
        self.office = office
        self.place = str(office.top / "tmux")
        prepare(office)

    def tmux(self, *words: str) -> str:
        """One command of tmux; what it printed."""
        done = self._tmux(*words)
        assert done.returncode == 0, done
        return done.stdout

    def says(self, *words: str) -> bool:
        """Whether tmux says yes to that."""
        return self._tmux(*words).returncode == 0

    def _tmux(self, *words: str) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.office.home), "LANG": "C.UTF-8"}
        return subprocess.run([TMUX, "-S", self.place, *words], capture_output=True, text=True, env=environ)

    def start(self, name: str, *words: str, **environ: str) -> Seat:
        """Start the office's client in a terminal of that name, as its person does: with a team, and no name."""
        return self.run(name, self.office.client, *_WORDS.get(self.office.client, []), *words, **environ)

    def open(self, name: str, *words: str, options: Iterable[str] = (), **environ: str) -> Seat:
        """Start it by `teams open` with these words, and with these options of its own."""
        own = [*_WORDS.get(self.office.client, []), *options]
        given = ["--", *own] if own else []
        return self.run(name, "teams", "open", self.office.client, *words, *given, **environ)

    def run(self, name: str, *words: str, **environ: str) -> Seat:
        """Start any program in a terminal of that name."""
        variables = self.office.environ(TERM="xterm-256color", LANG="C.UTF-8", **environ)
        said = [f"{key}={value}" for key, value in variables.items() if value]
        size = ["-x", "140", "-y", "45"]
        self.tmux("new-session", "-d", "-s", name, *size, "-c", str(self.office.work), "env", "-i", *said, *words)
        return Seat(self, name)

    @property
    def screen(self) -> str:
        """Nothing: nobody looks."""
        return ""

    def close(self) -> None:
        """End all terminals with what runs in them."""
        subprocess.run([TMUX, "-S", self.place, "kill-server"], capture_output=True)
        for pid in left_over(self.office):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def left_over(office: Office) -> list[int]:
    """The processes of the office's clients that are there, daemons among them."""
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
        """The process that was started in it."""
        return int(self.desk.tmux("list-panes", "-t", f"={self.name}:", "-F", "#{pane_pid}"))

    def ends(self) -> None:
        """Block until what was started in it has ended."""
        there = ["has-session", "-t", f"={self.name}"]
        until(lambda: not self.desk.says(*there), lambda: self.screen)

    def wait_for(self, text: str, patience: float = PATIENCE) -> None:
        """Block until the person sees it."""
        until(lambda: text in self.screen, lambda: f"no {text!r} in\n{self.screen}", patience)

    def ready(self) -> Seat:
        """Block until the client has its prompt."""
        self.wait_for(_PROMPTS[self.desk.office.client], TO_START)
        time.sleep(1)  # it draws its prompt before it reads keys
        return self

    def type(self, text: str) -> None:
        """Type it, without Enter."""
        self.desk.tmux("send-keys", "-t", f"={self.name}:", "-l", text)
        time.sleep(0.4)

    def press(self, key: str) -> None:
        """Press a key, as tmux calls it."""
        self.desk.tmux("send-keys", "-t", f"={self.name}:", key)

    def say(self, text: str) -> None:
        """Type it, and press Enter when it is shown: some take an Enter that comes with a text for a part of it."""
        self.type(text)
        self.wait_for(text, TO_START)
        self.press("Enter")


def prepare(office: Office) -> None:
    """What the client asks its person when it is first started is answered."""
    if office.client in _READY:
        path, document = _READY[office.client](office)
        path.write_text(json.dumps(document))
    if office.client == "codex":
        with (office.home / ".codex/config.toml").open("a") as config:
            config.write(f'[projects."{office.work}"]\ntrust_level = "trusted"\n')


def without_tmux(office: Office) -> str:
    """A PATH on which all is that is on the office's, but tmux."""
    place = office.top / "programs"
    place.mkdir()
    for directory in ("/usr/local/bin", "/usr/bin", "/bin"):
        for name in set(os.listdir(directory)) - {"tmux", *os.listdir(place)}:
            (place / name).symlink_to(f"{directory}/{name}")
    return f"{office.bin}:{place}"


def install(office: Office) -> None:
    """Our hooks are in the client's settings, and trusted."""
    office.say("install", office.client)
    if office.client == "codex":
        trust(office)


def row_of(office: Office, name: str) -> dict[str, Any]:
    """What `list-agents` says of a member; nothing if there is none."""
    rows = json.loads(office.say("list-agents"))["agents"]
    return next((row for row in rows if row["name"] == name), {})


def wait_for_state(office: Office, name: str, state: str, patience: float = PATIENCE) -> dict[str, Any]:
    """Block until the member's terminal is in that state; its row."""
    until(
        lambda: row_of(office, name).get("terminal", {}).get("state") == state,
        lambda: f"{name} is not {state}: {row_of(office, name)}\n{office.logs()}",
        patience,
    )
    return row_of(office, name)


def seats(*clients: str, beside: Iterable[str] = ()) -> pytest.MarkDecorator:
    """Which clients a test is for; those *beside* among the slower proofs."""
    slower = [pytest.param(client, marks=pytest.mark.slow) for client in beside]
    return pytest.mark.parametrize("office", [*clients, *slower], indirect=True)


def seated(office: Office, desk: Desk, name: str = "one", *words: str, **environ: str) -> Seat:
    """The client in front of its person, at its prompt; in our wrapper if nothing else can wake it."""
    if office.client in WOKEN_NATIVELY:
        return desk.start(name, *words, **environ).ready()
    return desk.open(name, options=words, **environ).ready()


def begun(office: Office, desk: Desk, *words: str) -> Seat:
    """The client that its person said something to, idle again."""
    install(office)
    office.model.script("[me]", Say("hello"), *[Say("on it")] * 15)
    seat = seated(office, desk, "one", *words)
    seat.say("[me] hi")
    office.model.wait_for("[me]", 1, TO_START)
    wait_for_state(office, NAME, "idle")
    return seat


def opened_again(office: Office, desk: Desk) -> Seat:
    """The client that is gone, opened in its session by the name of its agent."""
    again = back_in_session(office, desk.open("again", "--resume", NAME))
    wait_for_state(office, NAME, "idle", TO_START)
    return again


def back_in_session(office: Office, seat: Seat) -> Seat:
    """The client that goes on with a session: OpenCode asks for nothing then; Codex joins with its next turn."""
    if office.client != "opencode":
        seat.ready()
    if office.client == "codex":
        seat.say("go on")
    return seat


def history_of(office: Office) -> str:
    """What happened in the team."""
    return str(office.say("history"))


def wait_for_mail(office: Office, seat: Seat | Desk, text: str, word: str = "[me]") -> None:
    """Block until the model was shown it. A client that just started may be long about its first turn."""

    def why() -> str:
        return f"no {text}\n{seat.screen}\n{office.logs()}"

    until(lambda: text in office.model.requests[word][-1].text, why, TO_START)


def processes_of(office: Office, text: str) -> list[int]:
    """The processes of ours that serve the office and have that in their command line."""
    return [pid for pid, line in workflow_runs.processes_of(office.cli.root).items() if text in line]


def waiting_for(office: Office) -> list[int]:
    """The hooks that wait beside clients."""
    return processes_of(office, "--wait")
