"""What is asked of servers here."""

from __future__ import annotations

from typing import Any

from tests.support.serving import Reply, Server

BUSY = "touch $D/busy; while [ ! -e $D/go ]; do sleep 0.05; done;"


def message(server: Server, to: str, body: Any, query: str = "") -> Reply:
    return server.ask("POST", f"/api/agents/{to}/message{query}", body)
