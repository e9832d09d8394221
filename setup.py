"""Brings files of the repository into the package, where it is built; an editable install finds them here."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PLACES = {"workflows/*.md": "teams_cli/workflows/shipped", "docs/schemas/*.json": "teams_cli/schemas"}
MARKET = (".claude-plugin", ".agents", "plugins/teams", "plugins/portable")
"""The folders of the plugin, which stay as they are in `teams_cli/clients/market`."""


class BuildWithFiles(build_py):
    """Copies the files that these patterns find, each to its place, and the folders of the plugin."""

    def run(self):
        super().run()
        if not self.editable_mode:
            top, package = Path(__file__).parent, Path(self.build_lib)
            for pattern, name in PLACES.items():
                self.mkpath(str(package / name))
                for file in sorted(top.glob(pattern)):
                    self.copy_file(str(file), str(package / name / file.name))
            for folder in MARKET:
                self.copy_tree(str(top / folder), str(package / "teams_cli/clients/market" / folder))


setup(cmdclass={"build_py": BuildWithFiles})
