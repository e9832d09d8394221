"""Review a change without a model: parsers, linters and the repository's own tools, told by the lines that changed."""

from teams_cli.extensions import Extension

EXTENSION = Extension()
