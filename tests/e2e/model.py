"""A model server on loopback that answers by a script in the form of the vendors' APIs, without a network.

A conversation is known by a word in its first user turn, such as `[alpha]`. Each request of the conversation
gets the next step of that word's script. Other requests of a client (for titles, or probes) get "ok" and are
not counted.
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.e2e import apis
from tests.e2e.apis import Api, Frames, Use


class Say:
    """A final answer; a *held* one is begun, and ends when the test calls `release`."""

    def __init__(self, text: str, held: bool = False) -> None:
        self.text = text
        self.held = held


class Run:
    """A call of the client's shell tool."""

    def __init__(self, command: str) -> None:
        self.command = command


class Hang:
    """An answer that never ends, so that the client has to be interrupted."""


class Refuse:
    """An error after which a retry does not help."""


Step = Say | Run | Use | Hang | Refuse


class Request:
    """A request of a client; *turns* are the role and the text of all that the model was shown, in order."""

    def __init__(self, api: Api, body: dict[str, Any]) -> None:
        self.body = body
        self.turns = list(api.turns(body))
        self.tools = api.tools(body)

    @property
    def text(self) -> str:
        """All that the model was shown, except for the system prompt."""
        return "\n".join(text for _, text in self.turns)

    def since(self, earlier: Request) -> str:
        """What the model is shown here but was not shown in the earlier request of the conversation."""
        return "\n".join(text for _, text in self.turns[len(earlier.turns) :])

    def said_by_user(self) -> list[str]:
        return [text for role, text in self.turns if role == "user"]


class Model:
    """The server, with the steps still to take (`scripts`) and the requests so far (`requests`) of each
    conversation.
    """

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
        """Answer the conversation that begins with *word* by these steps."""
        self.scripts[word] = list(steps)
        self.requests[word] = []

    def answer(self, word: str, text: str) -> None:
        """Answer *text* to any request whose last user turn has *word* in it, in whichever conversation."""
        self.asides[word] = text
        self.requests[word] = []

    def refuse(self, word: str) -> None:
        self.script(word, *[Refuse()] * 20)

    def release(self) -> None:
        """Let held answers end."""
        self.released.set()

    def step(self, request: Request) -> Step:
        """The next step of the conversation that the request belongs to."""
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

    def wait_for(self, word: str, count: int, patience: float = 120.0) -> Request:
        """Wait until the conversation has made *count* requests, and return the last of them."""
        give_up = time.monotonic() + patience
        while len(self.requests[word]) < count:
            assert time.monotonic() < give_up, f"{word} made {len(self.requests[word])} of {count} requests"
            time.sleep(0.02)
        return self.requests[word][count - 1]

    def close(self) -> None:
        self.closing.set()
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    answerer: Model
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        api = apis.of(self.path)
        if api is None or "count" in self.path:
            return self._whole({"input_tokens": 10, "totalTokens": 10})
        step = self.answerer.step(Request(api, body))
        if isinstance(step, Refuse):
            return self._whole(api.refusal(), 400)
        call = step.command if isinstance(step, Run) else step if isinstance(step, Use) else None
        text = step.text if isinstance(step, Say) else apis.THINKING
        if document := api.whole(body, text):
            return self._whole(document)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            self._stream(api, api.frames(body, text, call), step)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _whole(self, document: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, api: Api, frames: Frames, step: Step) -> None:
        for frame in frames:
            if frame is None:
                self._hold(api, step)
                continue
            self.wfile.write(api.encode(frame))
            self.wfile.flush()
        self.wfile.write(api.ending)
        self.close_connection = True

    def _hold(self, api: Api, step: Step) -> None:
        """Pause before the end of an answer for as long as its step says."""
        held = isinstance(step, Say) and step.held
        if not held and not isinstance(step, Hang):
            return
        wait_for = self.answerer.released if held else self.answerer.closing
        while not wait_for.wait(0.1):
            if api.comments:
                self.wfile.write(b": still here\n\n")
                self.wfile.flush()
