"""Brings workflows and schemas of the repository into the package, where it is built; an editable install finds them
here.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PLACES = {"workflows/*.md": "teams_cli/workflows/shipped", "docs/schemas/*.json": "teams_cli/schemas"}


class BuildWithFiles(build_py):
    """Copies the files that these patterns find, each to its place."""

    def run(self):
        super().run()
        if not self.editable_mode:
            for pattern, name in PLACES.items():
                place = Path(self.build_lib) / name
                self.mkpath(str(place))
                for file in sorted(Path(__file__).parent.glob(pattern)):
                    self.copy_file(str(file), str(place / file.name))


setup(cmdclass={"build_py": BuildWithFiles})
