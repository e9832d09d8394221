"""Team coordination for AI coding agents: teams, tasks and messages as JSON files."""

__version__ = "0.3.0"
