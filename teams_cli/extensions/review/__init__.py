"""Review a change without a model, by parsers, linters and the repository's own tools, for the changed lines."""

from teams_cli.extensions import Extension

EXTENSION = Extension(provides={"review a change": "__main__:main"})
