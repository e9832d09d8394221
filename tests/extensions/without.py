"""Show that the rest works without an extension: `python -m tests.extensions.without NAME [WORDS FOR PYTEST...]`.

Runs the tests in a copy of this checkout that has neither the folder of the extension nor that of its tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def main(name: str, *words: str) -> int:
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place, "copy")
        listing = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True, text=True).stdout
        for path in filter(os.path.lexists, (TOP / name for name in listing.split("\0") if name)):
            target = copy / path.relative_to(TOP)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target, follow_symlinks=False)
        for folder in ("teams_cli", "tests"):
            shutil.rmtree(copy / folder / "extensions" / name)
        environ = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *words]
        return subprocess.run(command, cwd=copy, env=environ).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
