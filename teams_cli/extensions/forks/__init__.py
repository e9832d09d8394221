"""Copies of agents that answer a question while the agents themselves go on working."""

from teams_cli.extensions import Extension

EXTENSION = Extension()
