"""Forks: copies of agents that answer a question while the agents go on working."""

from teams_cli.extensions import Extension

EXTENSION = Extension(provides={"a copy of an agent": "copies:copy_of"})
