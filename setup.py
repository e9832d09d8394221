"""Brings the workflows and the plugin into the package, where it is built; an editable install finds them here."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

MARKET = (".claude-plugin", ".agents", "plugins/teams", "plugins/portable")


class BuildWithFiles(build_py):
    """Copies `workflows/*.md` to `teams_cli/workflows/shipped`, and the plugin to `teams_cli/clients/market`."""

    def run(self):
        super().run()
        if not self.editable_mode:
            place = Path(self.build_lib) / "teams_cli/workflows/shipped"
            self.mkpath(str(place))
            for file in sorted(Path(__file__).with_name("workflows").glob("*.md")):
                self.copy_file(str(file), str(place / file.name))
            for folder in MARKET:
                source = Path(__file__).parent / folder
                self.copy_tree(str(source), str(Path(self.build_lib) / "teams_cli/clients/market" / folder))


setup(cmdclass={"build_py": BuildWithFiles})
