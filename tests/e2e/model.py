"""A model server on loopback that says what a script tells it to, as the two vendors' APIs would; no network.

A conversation is known by a word in its first user turn, `[alpha]`. Each of its requests gets the next step of that
word's script. What a client sends besides (titles, probes) gets "ok" and is not counted.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Say:
    """A final answer; a *held* one is begun, and ended when the test says so."""

    def __init__(self, text: str, held: bool = False) -> None:
        self.text = text
        self.held = held


class Run:
    """A call of the client's shell tool."""

    def __init__(self, command: str) -> None:
        self.command = command


class Hang:
    """An answer that never ends: the client is to be interrupted."""


class Refuse:
    """An error that no retry helps against."""


Step = Say | Run | Hang | Refuse


class Request:
    """What a client sent: *turns* are the role and text of everything that the model was shown, in order."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        self.turns = list(_turns(body))
        self.tools = {tool.get("name") for tool in body.get("tools") or []}

    @property
    def text(self) -> str:
        """All that the model was shown, but for the system prompt."""
        return "\n".join(text for _, text in self.turns)

    def since(self, earlier: Request) -> str:
        """What is shown here and was not in an earlier request of the same conversation."""
        return "\n".join(text for _, text in self.turns[len(earlier.turns) :])

    def said_by_user(self) -> list[str]:
        """The user's turns."""
        return [text for role, text in self.turns if role == "user"]


def _turns(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for item in body.get("messages", body.get("input", [])):
        role = item.get("role") or item.get("type", "")
        content = item.get("content", item.get("output", item.get("arguments", "")))
        if isinstance(content, str):
            yield role, content
            continue
        for block in content or []:
            kind = block.get("type", "")
            if kind in ("tool_use", "tool_result"):
                yield kind, _plain(block.get("content", block.get("input", "")))
            else:
                yield role, block.get("text", "")


def _plain(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(block.get("text", "") for block in content)
    return content if isinstance(content, str) else json.dumps(content)


class Model:
    """The server: `scripts` holds the steps still to be taken, `requests` what was sent, by conversation."""

    def __init__(self) -> None:
        self.scripts: dict[str, list[Step]] = {}
        self.requests: dict[str, list[Request]] = {}
        self.asides: dict[str, str] = {}
        self.lock = threading.Lock()
        model = self

        class Handler(_Handler):
            answerer = model

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.closing = threading.Event()
        self.released = threading.Event()
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def script(self, word: str, *steps: Step) -> None:
        """Have the conversation that begins with *word* go so."""
        self.scripts[word] = list(steps)
        self.requests[word] = []

    def answer(self, word: str, text: str) -> None:
        """Answer so whatever ends with a user turn that has *word* in it, in whichever conversation."""
        self.asides[word] = text
        self.requests[word] = []

    def refuse(self, word: str) -> None:
        """Have every request of that conversation fail."""
        self.script(word, *[Refuse()] * 20)

    def release(self) -> None:
        """Let held answers end."""
        self.released.set()

    def step(self, request: Request) -> Step:
        """What to answer, by the conversation that the request belongs to."""
        with self.lock:
            for word, text in self.asides.items():
                if word in (request.said_by_user() or [""])[-1]:
                    self.requests[word].append(request)
                    return Say(text)
            said = "\n".join(request.said_by_user())
            words = [word for word in self.scripts if word in said]
            if not request.tools or not words:
                return Say("ok")
            word = min(words, key=said.index)
            self.requests[word].append(request)
            return self.scripts[word].pop(0) if self.scripts[word] else Say(f"{word} has nothing more to say")

    def wait_for(self, word: str, count: int, patience: float = 30.0) -> Request:
        """Block until a conversation made so many requests; the last of these."""
        give_up = time.monotonic() + patience
        while len(self.requests[word]) < count:
            assert time.monotonic() < give_up, f"{word} made {len(self.requests[word])} of {count} requests"
            time.sleep(0.02)
        return self.requests[word][count - 1]

    def close(self) -> None:
        """End the server and what hangs."""
        self.closing.set()
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    answerer: Model
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        anthropic = self.path.startswith("/v1/messages")
        if anthropic and "count_tokens" in self.path:
            return self._whole({"input_tokens": 10})
        step = self.answerer.step(Request(body))
        if isinstance(step, Refuse):
            return self._whole({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}, 400)
        events = _anthropic(body, step) if anthropic else _responses(body, step)
        if anthropic and not body.get("stream"):
            return self._whole(_anthropic_message(body, step))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            self._stream(events, step)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _whole(self, document: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[dict[str, Any]], step: Step) -> None:
        wait_for = self.answerer.closing if isinstance(step, Hang) else None
        if isinstance(step, Say) and step.held:
            wait_for = self.answerer.released
        for event in events:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
            while wait_for and "delta" in event["type"] and not wait_for.wait(0.1):
                self.wfile.write(b": still here\n\n")
                self.wfile.flush()
        self.close_connection = True


def _anthropic_message(body: dict[str, Any], step: Step) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": getattr(step, "text", "I am thinking")}
    if isinstance(step, Run):
        block = {"type": "tool_use", "id": f"toolu_{time.monotonic_ns()}", "name": "Bash"}
        block["input"] = {"command": step.command, "description": "as scripted"}
    return {
        "id": f"msg_{time.monotonic_ns()}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "m"),
        "content": [block],
        "stop_reason": "tool_use" if isinstance(step, Run) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def _anthropic(body: dict[str, Any], step: Step) -> Iterator[dict[str, Any]]:
    """The events of the Messages API."""
    message = _anthropic_message(body, step)
    (block,) = message["content"]
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    if block["type"] == "text":
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


def _responses(body: dict[str, Any], step: Step) -> Iterator[dict[str, Any]]:
    """The events of the Responses API."""
    key = f"resp_{time.monotonic_ns()}"
    yield {"type": "response.created", "response": {"id": key}}
    if isinstance(step, Run):
        tools = {tool.get("name") for tool in body["tools"]}
        name, arguments = ("exec_command", {"cmd": step.command})
        if name not in tools:
            name, arguments = "shell", {"command": ["sh", "-c", step.command]}
        item: dict[str, Any] = {"type": "function_call", "name": name, "arguments": json.dumps(arguments)}
        item["call_id"] = f"call_{time.monotonic_ns()}"
    else:
        text = getattr(step, "text", "I am thinking")
        item = {"type": "message", "role": "assistant", "id": f"m_{time.monotonic_ns()}"}
        yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}}
        yield {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text}
        item["content"] = [{"type": "output_text", "text": text}]
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    usage_details = {"input_tokens_details": None, "output_tokens_details": None}
    yield {"type": "response.completed", "response": {"id": key, "usage": {**usage, **usage_details}}}
