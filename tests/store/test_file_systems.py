"""A root on a network file system is refused, because locks there do not exclude other machines."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import COMMAND, TIMEOUT

ALONE = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
SAID = """
set -e
mount -t tmpfs none "$1"
echo "22 1 0:99 / / rw - ext4 /dev/x rw" > "$1.said"
echo "23 1 0:99 / $1 rw - $2 somewhere rw" >> "$1.said"
mount --bind "$1.said" /proc/$$/mountinfo
shift 2
exec "$@"
"""
"""A file system in memory that the system reports as another kind; the test needs no file server."""


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p", "tmpfs"])
def test_one_of_the_network_is_refused(tmp_path: Path, kind: str) -> None:
    def on_it(*command: str) -> subprocess.CompletedProcess[str]:
        words = [*ALONE, "sh", "-c", SAID, "sh", str(tmp_path), kind, *command]
        environ = {**os.environ, "TEAMS_HOME": f"{tmp_path}/root", "TEAMS_AGENT_ID": "lea"}
        return subprocess.run(words, env=environ, capture_output=True, text=True, timeout=TIMEOUT)

    if on_it("true").returncode:
        pytest.skip("nothing can be mounted here")
    done = on_it(*COMMAND, "spawn-team", "alpha")
    if kind == "tmpfs":
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 1
    assert f"/root is on {kind}, where locks do not exclude other machines" in done.stderr
    assert "Choose a local disk with --root." in done.stderr
