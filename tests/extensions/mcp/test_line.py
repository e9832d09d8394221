"""The MCP server over a bare pipe: garbage, many calls, the end of the input, and nothing but the protocol on
standard output.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.support.agents import end_all, keepers, team_of_agents, unread
from tests.support.cli import ALPHA, COMMAND, TIMEOUT, Cli, add_tasks
from tests.support.mcp_client import Line
from tests.support.seated_client import SeatedClient

pytestmark = pytest.mark.slow

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, NO_RESOURCE = -32700, -32600, -32601, -32602, -32002


@pytest.fixture
def line(cli: Cli) -> Iterator[Line]:
    """The MCP server of bob, after the handshake."""
    with Line(cli, "bob") as made:
        made.hello()
        yield made


def test_it_says_what_it_is_and_what_it_is_for(cli: Cli) -> None:
    with Line(cli, "bob") as line:
        line.send("server/discover")  # a probe for the newest protocol, before the handshake of an older one
        assert line.read()["error"]["code"] == METHOD_NOT_FOUND
        hello = line.hello()
        assert hello["serverInfo"]["name"] == "teams" and hello["protocolVersion"] == "2025-11-25"
        assert "claim_task" in hello["instructions"]
        assert hello["capabilities"]["tools"] == {"listChanged": True}
        assert hello["capabilities"]["resources"]["subscribe"] is True
        assert line.end() == ([], "")
        assert line.process.returncode == 0


GARBAGE: list[tuple[bytes, int, int | str | None]] = [
    (b"hello", PARSE_ERROR, None),
    (b"\xff\xfe{}", PARSE_ERROR, None),
    (b"[" * 100_000, PARSE_ERROR, None),
    (b'{"jsonrpc": "2.0", "id": 9, "method": "tools/list"', PARSE_ERROR, None),
    (b'{"id": 9, "method": 7}', INVALID_REQUEST, 9),
    (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', INVALID_REQUEST, "?"),
    (b'{"jsonrpc": "2.0", "id": 9, "method": "resources/read", "params": {"uri": "teams://[x"}}', NO_RESOURCE, 9),
    (b"[]", INVALID_REQUEST, None),
    (b"null", INVALID_REQUEST, None),
    (b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": 7}}', INVALID_PARAMS, 9),
    (b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {}}', INVALID_PARAMS, 9),
    (
        b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "a", "name": "b"}}',
        INVALID_PARAMS,
        9,
    ),
    (b'{"jsonrpc": "2.0", "id": 9, "method": "tools/fly"}', METHOD_NOT_FOUND, 9),
    (b'{"jsonrpc": "2.0", "id": 9, "method": "resources/read", "params": {"uri": 7}}', INVALID_PARAMS, 9),
    (b'{"jsonrpc": "2.0", "id": 9, "method": "' + b"x" * (17 << 20) + b'"}', INVALID_REQUEST, None),
]


def test_garbage_is_answered_and_does_no_harm(line: Line) -> None:
    for garbage, code, id in GARBAGE:
        line.write(garbage + b"\n\n")
        answer = line.read()
        assert (answer["error"]["code"], answer["id"]) == (code, id), (garbage[:99], answer)
        assert line.ask("list_agents")["self"] == "bob"


def test_calls_before_the_end_of_the_input_are_answered(cli: Cli, line: Line) -> None:
    """A script may write all its calls and close the pipe: the calls are answered, except for those that wait."""
    add_tasks(cli, "one")
    line.use("read_messages", wait=600)
    line.use("wait", task="1")
    claim, send = line.use("claim_task", next=True), line.use("send_to_agent", target="lea", message="hi")
    answers, errors = line.end()
    found = {answer["id"]: answer["result"]["structuredContent"] for answer in answers if "result" in answer}
    assert found[claim]["owner"] == "bob" and found[send]["delivered"] is True and len(found) == 2
    assert (errors, line.process.returncode) == ("", 0)


def test_a_send_that_is_cancelled_and_repeated_adds_no_message_without_an_answer(cli: Cli, line: Line) -> None:
    for text in "abcdefgh":
        line.notify("notifications/cancelled", {"requestId": line.use("send_to_agent", target="lea", message=text)})
        line.use("send_to_agent", target="lea", message=text)
    answers = [answer["result"]["structuredContent"] for answer in line.end()[0] if "result" in answer]
    sent = [message["message"] for message in cli.ok("read-messages", agent="lea")]
    assert {*sent} == {*"abcdefgh"} and len(sent) <= len(answers)


def test_a_wait_for_anything_ends_with_what_concerns_it_in_words_of_tools(cli: Cli, line: Line) -> None:
    line.use("wait")
    add_tasks(cli, "one")
    found = line.read()["result"]["structuredContent"]
    (ready,) = found["happened"]
    assert (ready["text"], ready["next"]) == ("task-1 is ready: one", "claim_task(next=true)")


def test_it_ends_with_its_client(cli: Cli, line: Line) -> None:
    """The server ends with its client, also while calls wait, and leaves later messages unread."""
    for _ in range(50):
        line.use("read_messages", wait=600)
    assert line.ask("list_agents")["self"] == "bob"
    line.process.stdout.close()
    line.process.stdin.close()
    assert line.process.wait(TIMEOUT) == 0
    line.process.stdin, line.process.stdout = None, None
    cli.ok("send-message", "bob", "later", agent="lea")
    assert unread(cli, "bob") == [1]


def test_it_ends_though_nobody_reads_or_calls_wait(cli: Cli) -> None:
    add_tasks(cli, *("title " * 30 for _ in range(50)))
    with Line(cli, "bob") as line:
        line.hello()
        for _ in range(30):
            line.use("get_tasks")
        line.process.stdin.close()
        assert line.process.wait(TIMEOUT) == 0
        line.process.stdin = None
    with Line(cli, "bob") as line:
        line.hello()
        line.use("wait", message=True)
        line.use("list_agents")
        line.read()
        line.process.send_signal(signal.SIGTERM)
        line.process.wait(TIMEOUT)
        assert "Traceback" not in line.end()[1]


def test_too_many_calls_at_once_are_refused_and_the_others_go_on(cli: Cli, line: Line) -> None:
    cli.ok("create-task", "one", agent="lea")
    waiting = {line.use("wait", task="1") for _ in range(140)}
    refused = [line.read() for _ in range(12)]
    assert {answer["result"]["structuredContent"]["error"]["code"] for answer in refused} == {"busy"}
    cli.ok("update-task", "1", "--status", "cancelled", agent="human")
    waiting -= {answer["id"] for answer in refused}
    answered = [line.read() for _ in waiting]
    assert {answer["id"] for answer in answered} == waiting
    assert {answer["result"]["structuredContent"]["task"]["status"] for answer in answered} == {"cancelled"}


def test_agents_started_through_it_write_nothing_to_the_line_and_outlive_it(tmp_path: Path) -> None:
    """Agents started through the server are not its descendants, because OpenCode ends these with the server."""
    cli = team_of_agents(tmp_path, "bob")
    try:
        with Line(cli, "bob") as line:
            line.hello()
            spawned = line.use("spawn", prompt="echo loud; echo louder >&2", agent_id="ben", wait=True)
            answer = line.read()
            assert answer["id"] == spawned and answer["result"]["structuredContent"]["output"] == "loud\n"
            assert "error" not in line.ask("spawn", prompt="$T read-messages --wait 60", agent_id="ann")
            above = keepers(cli.root)[-1:]
            while above[-1] > 1:
                above.append(int(Path(f"/proc/{above[-1]}/stat").read_text().rpartition(")")[2].split()[1]))
            assert line.process.pid not in above
            assert line.end() == ([], "")
    finally:
        end_all(cli.root)


def test_without_the_extra_it_says_what_to_install(cli: Cli, tmp_path: Path) -> None:
    for name in ("mcp", "mcp_types"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('no', name='{name}')\n")
    answer = cli("mcp", "--json", agent="bob", PYTHONPATH=f"{tmp_path}:{os.getcwd()}")
    assert answer.status == 2 and answer.error["code"] == "extension_missing"
    assert "pip install '.[mcp]'" in answer.error["hint"]


def test_more_calls_can_wait_than_files_can_be_open(cli: Cli) -> None:
    """Waiting calls share one watch, and the server goes on when it runs out of file descriptors."""
    words = f"ulimit -n 40; exec {' '.join(COMMAND)} mcp"
    with Line(cli, "bob", command=["sh", "-c", words]) as line:
        line.hello()
        for _ in range(60):
            line.use("wait", message=True)
        results: list[bool] = []
        answers = (line.read()["result"]["isError"] for _ in range(60))
        reading = Thread(target=lambda: results.extend(answers), daemon=True)
        reading.start()
        while reading.is_alive():  # a wait that begins after the first message needs another one
            cli.ok("send-message", "bob", "now", agent="lea")
            reading.join(0.5)
        assert False in results
        assert line.ask("list_agents")["self"] == "bob"


THREADS = ("01a21f04-216e", "01a21f04-317f")


def test_the_caller_is_the_session_that_the_call_names(cli: Cli) -> None:
    """Codex starts the server before anybody joined."""
    with Line(cli, "") as line:
        line.hello("codex-mcp-client")
        line.send("tools/list")
        listed = {tool["name"] for tool in line.read()["result"]["tools"]}
        assert listed == {"brief", "wait", "claim_task", "broadcast", "update_task", "more_tools"}
        seats = [SeatedClient(cli.environ("", ALPHA), "codex", thread) for thread in THREADS]
        try:
            for seat, name in zip(seats, ("agentA", "agentB"), strict=True):
                assert f"You are {name}" in seat.hook("SessionStart")
                call = {"name": "whoami", "arguments": {}, "_meta": {"threadId": seat.session}}
                line.send("tools/call", call)
                assert line.read()["result"]["structuredContent"]["agentId"] == name
            assert line.ask("brief")["error"]["code"] == "no_identity"
        finally:
            for seat in seats:
                seat.kill()
