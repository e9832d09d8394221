"""What hooks add to each call of a model where the client allows it, and short reminders elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.calls import hook
from tests.hooks.conftest import PLUGIN
from tests.support.cli import ALPHA, TIMEOUT, Cli, add_tasks, complete, program


def told(cli: Cli, event: str = "UserPromptSubmit", **more: Any) -> str:
    answer = hook(cli, event, **more)
    return str(answer["hookSpecificOutput"]["additionalContext"]) if answer else ""


def read_long_ago(cli: Cli) -> None:
    path = cli.root / f"teams/{ALPHA}/inboxes/bob.json"
    inbox = json.loads(path.read_text())
    for entry in inbox["open"]:
        entry["readAt"] = "2026-01-01T00:00:00Z"
    path.write_text(json.dumps(inbox))


def test_each_call_of_a_model_has_the_current_state(cli: Cli) -> None:
    cli.ok("announce", "the parser", agent="mia")
    cli.ok("send-message", "bob", "x" * 1000, agent="lea")
    for _ in range(2):
        state = hook(cli, "ModelCall", "opencode")["state"]
        assert state["input"] == {"synthetic": True} and state["title"] == "2 agent(s), 1 message(s)"
        assert {"name": "mia", "status": "the parser", "idle": True} in state["output"]["agents"]
        assert state["output"]["messages"] == [{"id": 1, "from": "lea", "content": "x" * 1000}]
        assert state["output"]["hint"].endswith('other agents: broadcast(message="what you are working on")')
        assert state["output"]["reply"].startswith("broadcast(reply_to=ID, message=TEXT)")
    assert "| xxx" in told(cli, "PostToolUse", attends=True)
    (message,) = hook(cli, "ModelCall", "opencode")["state"]["output"]["messages"]
    assert message["content"] == "x" * 200 + "…"
    cli.ok("ack", "1", agent="bob")
    cli.ok("announce", "the tests", agent="mia")
    output = hook(cli, "ModelCall", "opencode")["state"]["output"]
    assert output["messages"] == [] and "the tests" in json.dumps(output["agents"])


def test_mail_that_was_shown_is_recalled_in_a_line_and_news_are_told_once(cli: Cli) -> None:
    add_tasks(cli, "one")
    told(cli, "SessionStart")
    cli.ok("send-message", "bob", "Which grammar?", agent="lea")
    assert "| Which grammar?" in told(cli) and told(cli) == ""
    read_long_ago(cli)
    assert told(cli) == "Still open: msg-1: teams reply ID TEXT, or teams ack ID"
    cli.ok("announce", "the lexer", agent="mia")
    cli.ok("announce", "the parser", agent="mia")
    complete(cli, "mia", "1")
    cli.ok("announce", "me", agent="bob")
    assert told(cli).startswith("Meanwhile: mia: the parser; task-1 completed by mia\n\nStill open: msg-1")
    cli.ok("ack", "1", agent="bob")
    assert told(cli) == ""
    cli.ok("announce", "more", agent="mia")
    assert told(cli, attends=True) == ""


DRIVER = """
const { server: teams } = (await import(process.argv[2])).default
const hooks = await teams({ client: { session: { promptAsync: async () => {} } } })
const info = (role) => ({ id: "m1", role, sessionID: "ses_main" })
const said = { type: "text", id: "p1", text: "go", sessionID: "ses_main", messageID: "m1" }
const shown = []
for (const role of ["user", "assistant"]) {
  const messages = [{ info: info(role), parts: [said] }]
  await hooks["experimental.chat.messages.transform"]({}, { messages })
  shown.push(messages.map(({ parts }) => parts))
}
const messages = [{ info: info("user"), parts: [said] }]
await hooks["experimental.session.compacting"]({}, {})
await hooks["experimental.chat.messages.transform"]({}, { messages })
shown.push(messages.map(({ parts }) => parts))
console.log(JSON.stringify(shown))
process.exit(0)
"""


@pytest.mark.skipif(not shutil.which("node"), reason="the plugin needs node")
def test_the_plugin_of_opencode_adds_attention_at_the_end_of_each_call(
    cli: Cli, in_opencode: Callable[[str], Any]
) -> None:
    """Attention is a text after the user's words, a call after the model's, and not in a compaction."""
    cli.ok("send-message", "bob", "Which grammar?", agent="lea")
    ((user,), (assistant,), (compacted,)) = in_opencode(DRIVER)
    assert [len(parts) for parts in (user, assistant, compacted)] == [2, 2, 1]
    assert user[1]["synthetic"] and user[1]["text"].startswith("[broadcast] 2 agent(s), 1 message(s)\n")
    assert (assistant[1]["tool"], assistant[1]["state"]["input"]) == ("broadcast", {"synthetic": True})
    output = json.loads(assistant[1]["state"]["output"])
    assert output["messages"] == [{"id": 1, "from": "lea", "content": "Which grammar?"}]


IN_WORKER = """
import { Worker } from "node:worker_threads"
const text = `
  import(process.env.PLUGIN).then(async ({ default: { server: teams } }) => {
    await teams({ client: { session: { promptAsync: async () => {} } } })
    process.exit(0)
  })`
new Worker(text, { eval: true, argv: [] })
"""


@pytest.mark.skipif(not shutil.which("node"), reason="the plugin needs node")
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="there is no /proc")
def test_the_plugin_of_opencode_knows_the_session_that_is_resumed(tmp_path: Path) -> None:
    """The plugin reads the session's id from the client's command line, which its worker lacks."""
    (tmp_path / "plugin.mjs").write_text(PLUGIN.read_text())
    (tmp_path / "driver.mjs").write_text(IN_WORKER)
    program(tmp_path / "teams", f'[ "$3" = --wait ] || cat > {tmp_path}/told\n')
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PLUGIN": str(tmp_path / "plugin.mjs")}
    for words in (["--session", "ses_old"], ["--session=ses_old"], ["-s", "ses_old"]):
        (tmp_path / "told").unlink(missing_ok=True)
        command = ["node", str(tmp_path / "driver.mjs"), *words]
        done = subprocess.run(command, env=environ, capture_output=True, timeout=TIMEOUT)
        assert done.returncode == 0, done
        told = json.loads((tmp_path / "told").read_text())
        assert (told["hook_event_name"], told["session_id"]) == ("SessionStart", "ses_old")
