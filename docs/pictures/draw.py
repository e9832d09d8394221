#!/usr/bin/env python3
"""Draw the pictures of the documentation from real output: `python docs/pictures/draw.py [DIRECTORY]`.

`teams` and chromium have to be on PATH. board.png is the board in a browser without a window. watch.svg and session.svg
are commands run in a pseudo-terminal, exported by rich. Run it before a release, and look at what it drew.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

SHOP = """
teams spawn-team shop --as lead --description 'Web shop, release 2'
teams create-task --from - --as lead <<'.'
- {id: schema, title: Design the order schema, priority: high}
- {id: api, title: Build the orders API, blockedBy: [schema], priority: high, check: sh check.sh}
- {id: ui, title: Build the checkout page, blockedBy: [schema]}
- {id: mail, title: Send order confirmations, blockedBy: [api]}
- {id: docs, title: Document the API, blockedBy: [api], reviewBy: human}
- {id: audit, title: Audit payments for security, planRequired: true, priority: high}
- {id: perf, title: Load-test the checkout, blockedBy: [api, ui]}
- {id: lint, title: Clean up lint warnings, priority: low}
.
for name in ann bob cat dan; do teams join-team --as $name; done
teams claim-task 1 --as ann
teams update-task 1 --status completed --result 'schema.sql, 6 tables' --as ann
teams claim-task 2 --as ann
teams announce 'POST /orders, validation' --as ann
teams claim-task 3 --as bob
teams announce 'checkout form' --as bob
teams claim-task 6 --as cat
teams propose-plan '1. List all code that touches card data. 2. Check it against the PCI list.' --task 6 --as cat
teams claim-task 8 --as dan
teams update-task 8 --status completed --result '41 warnings fixed' --as dan
id=$(teams send-message ann 'Does POST /orders return the order id?' --as bob --json | jq -r .id)
teams reply $id 'Yes, in Location and in the body' --as ann
teams set broadcast human --as lead
teams ask-others 'Which payment provider should the checkout use: Stripe or Adyen?' --no-wait --as bob
"""
"""A team of a made-up shop in the middle of its work."""
PAIR = """
teams spawn-team shop --as lead
teams create-task 'Show prices' --check 'sh check.sh' --as lead
teams join-team --as bob
teams join-team --as cat
"""
SESSION = [
    "teams claim-task 1 --as bob",
    "teams claim-task 1 --as cat",
    'teams send-message bob "Prices are in cents, please" --as cat',
    "teams wait --as bob",
    "teams update-task 1 --status completed --as bob",
    "touch prices.py && git add . && git commit -q -m prices",
    "teams update-task 1 --status completed --as bob",
]
REPOSITORY = """
git init -q -b main
echo 'test -e prices.py' >check.sh
git add check.sh
git commit -q -m first
"""


def run(script: str, environ: dict[str, str]) -> None:
    subprocess.run(["bash", "-ec", script], env=environ, check=True, stdout=subprocess.DEVNULL)


def on_terminal(command: str, width: int, environ: dict[str, str]) -> str:
    """The output of a command on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    output = b""
    with subprocess.Popen(["bash", "-c", command], stdin=theirs, stdout=theirs, stderr=theirs, env=environ):
        os.close(theirs)
        while True:
            try:
                output += os.read(ours, 1 << 16)
            except OSError:  # nobody has the terminal open any more
                break
    os.close(ours)
    return output.decode().replace("\r\n", "\n").rstrip("\n")


def draw(commands: list[str], picture: Path, title: str, width: int, environ: dict[str, str]) -> None:
    """Draw a terminal with these commands and their output."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for command in commands:
        console.print(Text("$ ", "bold green") + Text(command, "bold"))
        if output := on_terminal(command, width, environ):
            console.print(Text.from_ansi(output))
    console.save_svg(str(picture), title=title)


def photograph(picture: Path, environ: dict[str, str]) -> None:
    """Take a picture of the board in a browser."""
    address = Path(environ["TEAMS_HOME"], "server.json")
    with subprocess.Popen(["teams", "serve", "--port", "0"], env=environ, stdout=subprocess.DEVNULL) as server:
        try:
            while not (address.exists() and address.read_text()):
                time.sleep(0.1)
            served = json.loads(address.read_text())
            size = ["--window-size=1360,860", "--virtual-time-budget=4000", f"--screenshot={picture}"]
            browser = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *size]
            page = f"{served['url']}/#token={served['token']}"
            subprocess.run([*browser, page], check=True, stderr=subprocess.DEVNULL, timeout=120)
        finally:
            server.terminate()


def main(pictures: Path) -> None:
    author = {"GIT_AUTHOR_NAME": "ann", "GIT_AUTHOR_EMAIL": "ann@example.org"}
    author |= {"GIT_COMMITTER_NAME": "ann", "GIT_COMMITTER_EMAIL": "ann@example.org"}
    with tempfile.TemporaryDirectory() as directory:
        environ = {**os.environ, **author, "HOME": directory, "TEAMS_TEAM": "shop", "TERM": "xterm-256color"}
        environ |= {"COLORTERM": "truecolor"}
        os.mkdir(f"{directory}/repository")
        os.chdir(f"{directory}/repository")
        run(REPOSITORY, environ)
        shop, pair = ({**environ, "TEAMS_HOME": f"{directory}/{name}"} for name in ("shop", "pair"))
        run(SHOP, shop)
        photograph(pictures / "board.png", shop)
        draw(["teams watch --once"], pictures / "watch.svg", "teams watch", 118, shop)
        run(PAIR, pair)
        draw(SESSION, pictures / "session.svg", "two agents, one task", 112, pair)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent).resolve())
