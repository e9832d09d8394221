"""Lets `teams` start all clients that speak the Agent Client Protocol."""

from teams_cli.extensions import Extension

EXTENSION = Extension(
    clients={
        "acp": "agents:ANY",
        "copilot-acp": "agents:COPILOT",
        "gemini-acp": "agents:GEMINI",
        "opencode-acp": "agents:OPENCODE",
        "qwen-acp": "agents:QWEN",
    }
)
