"""The modules that a command has loaded when it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from tests.support.cli import TIMEOUT

_CODE = """
import os, sys
before = set(sys.modules)
from teams_cli import __main__
leave = __main__._leave
def told(status):
    print(*sorted(set(sys.modules) - before), file=sys.stderr)
    leave(status)
__main__._leave = told
sys.argv[0] = "teams"
__main__.main()
"""


def loaded_by(words: Sequence[str], environ: dict[str, str], path: Sequence[str]) -> set[str]:
    """Return the modules that the command loads from the directories of *path* and from the interpreter's own.
    Installed packages are hidden from it, because they may load modules at the start.
    """
    command = [sys.executable, "-S", "-c", _CODE, *words]
    environ = {**environ, "PYTHONPATH": os.pathsep.join(path)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done
    return {*done.stderr.split("\n")[-2].split()}
