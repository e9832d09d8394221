"""What searching and looking at the board of a large team cost."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from teams_cli.membership import joining
from teams_cli.messages.messages import Message
from teams_cli.store.documents import encode
from teams_cli.store.files.engine import FileStore
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, COMMAND, Cli
from tests.support.serving import serving

MESSAGES = 100_000
NOW = "2030-01-01T00:00:00.000Z"


def bench_searching(directory: Path, rounds: int) -> None:
    """Search 100,000 messages: for a word that one of them has, that all have, and that none has."""
    root = directory / "searching"
    joining.spawn_team(FileStore(str(root)), ALPHA, Caller("lea"))
    for number in range(1, MESSAGES + 1):
        rare = " zebra" if number == MESSAGES // 3 else ""
        text = f"Message {number} of many: please look at locks.py and say what you think of line {number % 400}{rare}"
        letter = Message(from_="lea", to="bob", message=text, timestamp=NOW, id=f"msg-{number}", number=number)
        path = root / "teams" / ALPHA / "messages" / str(number // 1000) / f"{number}.bob.{number:x}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(letter))
    bare = _median([sys.executable, "-c", "pass"], root, rounds)
    first = _median([*COMMAND, "search", "zebra", "--team", ALPHA], root, 1)
    print(f"\nsearching {MESSAGES:,} messages; bare Python {1000 * bare:.0f} ms")
    print(f"  the first time, which makes the index   {1000 * first:6.0f} ms")
    for what, word in (("found in one", "zebra"), ("found in all", "message"), ("found in none", "unicorn")):
        seconds = _median([*COMMAND, "search", word, "--team", ALPHA], root, rounds)
        print(f"  {what:<38}  {1000 * seconds:6.0f} ms   {1000 * (seconds - bare):+.0f} ms  {seconds / bare:.1f} x")
    shutil.rmtree(root)


def bench_board(root: Path, rounds: int) -> None:
    """Look at the board of the team in *root*: the whole, and what one change makes of it."""
    cli = Cli(root, team=ALPHA)
    with serving(cli) as server:
        whole = server.ask("GET", "/api/board/rows")
        times, sizes = [], []
        version, newest = whole.json["version"], whole.json["messages"][-1]["number"]
        for number in range(rounds):
            cli.ok("announce", f"status {number}", agent="a0")
            start = time.perf_counter()
            changed = server.ask("GET", f"/api/board/rows?after={version}&messages={newest}")
            times.append(time.perf_counter() - start)
            sizes.append(len(changed.body))
            version = json.loads(changed.body)["version"]
    print(f"\nthe board as rows: the whole {len(whole.body):,} bytes; after a change {max(sizes):,} bytes at most, ")
    print(f"  in {1000 * statistics.median(times):.0f} ms")


def _median(words: list[str], root: Path, rounds: int) -> float:
    environ = {**os.environ, "TEAMS_HOME": str(root)}
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(words, env=environ, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)
