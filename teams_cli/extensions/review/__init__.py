"""Reviews a change without a model: parsers, linters and the repository's own tools look at the changed lines."""

from teams_cli.extensions import Extension

EXTENSION = Extension(provides={"review a change": "__main__:main"})
