"""Brings the workflows of the repository into the package, where it is built; an editable install finds them here."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithWorkflows(build_py):
    """Copies `workflows/*.md` to `teams_cli/workflows/shipped`."""

    def run(self):
        super().run()
        if not self.editable_mode:
            place = Path(self.build_lib) / "teams_cli/workflows/shipped"
            self.mkpath(str(place))
            for file in sorted(Path(__file__).with_name("workflows").glob("*.md")):
                self.copy_file(str(file), str(place / file.name))


setup(cmdclass={"build_py": BuildWithWorkflows})
