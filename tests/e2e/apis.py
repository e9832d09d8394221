"""The APIs of the vendors: how a request shows the conversation to the model, and the frames in which an answer
is streamed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

Turns = Iterator[tuple[str, str]]
Frames = Iterator[dict[str, Any] | None]
THINKING = "I am thinking"
INPUT, CACHED, OUTPUT = 100, 30, 7
"""The tokens that every answer reports: input, the part of it from a cache, and output."""


class Use:
    """A call of a tool of the MCP server."""

    def __init__(self, tool: str, **arguments: Any) -> None:
        self.tool = tool
        self.arguments = arguments


class Outside(str):
    """A command that is to run outside the client's own sandbox, so that the client asks its person."""


Call = str | Use
"""A command for the client's shell tool, or a call of an MCP tool."""


class Api:
    """The API of one vendor; `frames` gives the documents of a stream, and None at the place where a held
    answer pauses.
    """

    comments = True

    def turns(self, body: dict[str, Any]) -> Turns:
        """The role and the text of all that the model was shown, in order; `tool_result` is the role of what
        tools answered.
        """
        raise NotImplementedError

    def tools(self, body: dict[str, Any]) -> set[str]:
        """The names of the tools that the model was offered."""
        return {tool.get("name", "") for tool in body.get("tools") or []}

    def call(self, body: dict[str, Any], call: Call) -> tuple[str, dict[str, Any]]:
        """The name of the tool as the client offers it, and the arguments."""
        if isinstance(call, str):
            return self.shell(body, call)
        offered = [name for name in self.tools(body) if name.endswith((f"team_{call.tool}", f"team__{call.tool}"))]
        return (offered or [call.tool])[0], call.arguments

    def shell(self, body: dict[str, Any], command: str) -> tuple[str, dict[str, Any]]:
        """The name of the client's shell tool, and its arguments for the command."""
        raise NotImplementedError

    def frames(self, body: dict[str, Any], text: str, call: Call | None) -> Frames:
        """The answer as a stream: the call if there is one, else the text."""
        raise NotImplementedError

    def whole(self, body: dict[str, Any], text: str) -> dict[str, Any] | None:
        """The answer in one document if the request asks for that, else None."""
        return None

    def refusal(self) -> dict[str, Any]:
        """An error that no retry helps against."""
        return {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}

    def encode(self, frame: dict[str, Any]) -> bytes:
        """The bytes in which a frame is sent."""
        return f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n".encode()

    ending = b""


def of(path: str) -> Api | None:
    """The API that serves the path, or None."""
    return next((api for part, api in _APIS.items() if part in path), None)


def _plain(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(block.get("text", "") for block in content)
    return content if isinstance(content, str) else json.dumps(content)


def _new(prefix: str) -> str:
    return f"{prefix}_{time.monotonic_ns()}"


class Messages(Api):
    """Anthropic's Messages API."""

    def turns(self, body: dict[str, Any]) -> Turns:
        for message in body.get("messages", []):
            content = message.get("content", "")
            if isinstance(content, str):
                yield message["role"], content
                continue
            for block in content:
                kind = block.get("type", "")
                if kind in ("tool_use", "tool_result"):
                    yield kind, _plain(block.get("content", block.get("input", "")))
                else:
                    yield message["role"], block.get("text", "")

    def whole(self, body: dict[str, Any], text: str) -> dict[str, Any] | None:
        return None if body.get("stream") else self._message(body, {"type": "text", "text": text}, "end_turn")

    def _message(self, body: dict[str, Any], block: dict[str, Any], reason: str) -> dict[str, Any]:
        return {
            "id": _new("msg"),
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "m"),
            "content": [block],
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": INPUT - CACHED, "cache_read_input_tokens": CACHED, "output_tokens": OUTPUT},
        }

    def frames(self, body: dict[str, Any], text: str, call: Call | None) -> Frames:
        if call is None:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
        else:
            name, given = self.call(body, call)
            block = {"type": "tool_use", "id": _new("toolu"), "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
        reason = "end_turn" if call is None else "tool_use"
        message = self._message(body, block, reason)
        yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield None
        yield {"type": "content_block_stop", "index": 0}
        ending = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": OUTPUT}}
        yield {"type": "message_stop"}

    def shell(self, body: dict[str, Any], command: str) -> tuple[str, dict[str, Any]]:
        return "Bash", {"command": command, "description": "as scripted"}


class Responses(Api):
    """OpenAI's Responses API, where tools of MCP servers are in namespaces, such as `brief` in `mcp__team`."""

    def turns(self, body: dict[str, Any]) -> Turns:
        for item in body.get("input", []):
            role = item.get("role") or item.get("type", "")
            content = item.get("content", item.get("output", item.get("arguments", "")))
            if isinstance(content, str):
                yield role, content
                continue
            for block in content or []:
                yield role, block.get("text", "")

    def frames(self, body: dict[str, Any], text: str, call: Call | None) -> Frames:
        key = _new("resp")
        yield {"type": "response.created", "response": {"id": key}}
        if call is None:
            item: dict[str, Any] = {"type": "message", "role": "assistant", "id": _new("m")}
            yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}}
            yield {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text}
            yield None
            item["content"] = [{"type": "output_text", "text": text}]
        else:
            name, given = self.call(body, call)
            item = {"type": "function_call", "name": name, "arguments": json.dumps(given), "call_id": _new("call")}
            if isinstance(call, Use):
                item.update(namespace="mcp__team", name=call.tool)
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        usage = {"input_tokens": INPUT, "output_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
        details = {"input_tokens_details": {"cached_tokens": CACHED}, "output_tokens_details": None}
        yield {"type": "response.completed", "response": {"id": key, "usage": {**usage, **details}}}

    def tools(self, body: dict[str, Any]) -> set[str]:
        spaces = [tool for tool in body.get("tools") or [] if tool.get("type") == "namespace"]
        inner = {f"{space['name']}__{tool['name']}" for space in spaces for tool in space["tools"]}
        return super().tools(body) | inner

    def shell(self, body: dict[str, Any], command: str) -> tuple[str, dict[str, Any]]:
        if "exec_command" in self.tools(body):
            beyond = {"sandbox_permissions": "require_escalated", "justification": "as scripted"}
            return "exec_command", {"cmd": command, **(beyond if isinstance(command, Outside) else {})}
        return "shell", {"command": ["sh", "-c", command]}


class Contents(Api):
    """Google's Gemini API, whose streams have neither named events nor comments."""

    comments = False

    def turns(self, body: dict[str, Any]) -> Turns:
        for content in body.get("contents", []):
            parts = content.get("parts", [])
            for part in parts:
                if "functionResponse" in part:
                    said = part["functionResponse"].get("response", {})
                    yield "tool_result", _plain(said.get("output", said.get("error", "")))
                elif "functionCall" in part:
                    yield "tool_use", json.dumps(part["functionCall"].get("args", {}))
            if texts := [part["text"] for part in parts if "text" in part]:
                yield content.get("role", "user"), "\n".join(texts)

    def tools(self, body: dict[str, Any]) -> set[str]:
        declared = [tool.get("functionDeclarations", []) for tool in body.get("tools") or []]
        return {function["name"] for functions in declared for function in functions}

    def frames(self, body: dict[str, Any], text: str, call: Call | None) -> Frames:
        part: dict[str, Any] = {"text": text}
        if call is not None:
            name, given = self.call(body, call)
            part = {"functionCall": {"name": name, "args": given}}
        yield self._frame([part])
        yield None
        yield self._frame([{"text": ""}], "STOP")

    def shell(self, body: dict[str, Any], command: str) -> tuple[str, dict[str, Any]]:
        return "run_shell_command", {"command": command}

    def _frame(self, parts: list[dict[str, Any]], reason: str | None = None) -> dict[str, Any]:
        candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
        if reason:
            candidate["finishReason"] = reason
        usage = {
            "promptTokenCount": INPUT,
            "cachedContentTokenCount": CACHED,
            "candidatesTokenCount": OUTPUT,
            "totalTokenCount": INPUT + OUTPUT,
        }
        return {"candidates": [candidate], "usageMetadata": usage}

    def refusal(self) -> dict[str, Any]:
        return {"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}

    def encode(self, frame: dict[str, Any]) -> bytes:
        return f"data: {json.dumps(frame)}\n\n".encode()


class Chat(Api):
    """OpenAI's older Chat Completions API, which other vendors offer, too."""

    ending = b"data: [DONE]\n\n"

    def turns(self, body: dict[str, Any]) -> Turns:
        for message in body.get("messages", []):
            role = "tool_result" if message["role"] == "tool" else message["role"]
            if role != "system":
                yield role, _plain(message.get("content") or "")
            for call in message.get("tool_calls") or []:
                yield "tool_use", call["function"]["arguments"]

    def tools(self, body: dict[str, Any]) -> set[str]:
        return {tool["function"]["name"] for tool in body.get("tools") or []}

    def frames(self, body: dict[str, Any], text: str, call: Call | None) -> Frames:
        delta: dict[str, Any] = {"role": "assistant", "content": text}
        if call is not None:
            name, given = self.call(body, call)
            function = {"name": name, "arguments": json.dumps(given)}
            called = {"index": 0, "id": _new("call"), "type": "function", "function": function}
            delta = {"role": "assistant", "content": None, "tool_calls": [called]}
        yield self._frame(delta)
        yield None
        usage: dict[str, Any] = {
            "prompt_tokens": INPUT,
            "prompt_tokens_details": {"cached_tokens": CACHED},
            "completion_tokens": OUTPUT,
            "total_tokens": INPUT + OUTPUT,
        }
        yield {**self._frame({}, "stop" if call is None else "tool_calls"), "usage": usage}

    def shell(self, body: dict[str, Any], command: str) -> tuple[str, dict[str, Any]]:
        name = "bash" if "bash" in self.tools(body) else "run_shell_command"
        return name, {"command": command, "description": "as scripted", "is_background": False}

    def _frame(self, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {"id": "chat", "object": "chat.completion.chunk", "created": 1, "model": "m1", "choices": [choice]}

    def encode(self, frame: dict[str, Any]) -> bytes:
        return f"data: {json.dumps(frame)}\n\n".encode()


_APIS: dict[str, Api] = {
    "/v1/messages": Messages(),
    "/v1/responses": Responses(),
    "GenerateContent": Contents(),
    "/chat/completions": Chat(),
}
