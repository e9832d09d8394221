"""A root on a file system of the network is refused: locks there do not exclude other machines."""

from __future__ import annotations

import os
import shutil
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
"""A mount of memory, of which the system says that it is something else; no server of files is needed for that."""


def on(kind: str, place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a root on a mount that is said to be of a kind."""
    place.mkdir(exist_ok=True)
    environ = {**os.environ, "TEAMS_HOME": f"{place}/root", "TEAMS_AGENT_ID": "lea"}
    command = [*ALONE, "sh", "-c", SAID, "sh", str(place), kind, *COMMAND, *words]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=TIMEOUT)


@pytest.fixture
def may_mount(tmp_path: Path) -> None:
    where = tmp_path / "tried"
    where.mkdir()
    if subprocess.run([*ALONE, "sh", "-c", SAID, "sh", where, "tmpfs", "true"], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")


@pytest.mark.usefixtures("may_mount")
@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
def test_one_of_the_network_is_refused(tmp_path: Path, kind: str) -> None:
    done = on(kind, tmp_path / "mounted", "spawn-team", "alpha")
    assert done.returncode == 1
    assert f"mounted/root is on {kind}, where locks do not exclude other machines" in done.stderr
    assert "Choose a local disk with --root." in done.stderr


@pytest.mark.usefixtures("may_mount")
def test_one_of_this_machine_is_not(tmp_path: Path) -> None:
    done = on("tmpfs", tmp_path / "mounted", "spawn-team", "alpha")
    assert done.returncode == 0, done.stderr


def test_a_disk_of_this_machine_is_not_asked_what_it_is(tmp_path: Path) -> None:
    """What has a device is none of the network, whatever else is mounted."""
    if not os.major(tmp_path.stat().st_dev):
        pytest.skip("the files of the tests are on no disk")
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    environ = {**os.environ, "TEAMS_HOME": str(tmp_path / "root"), "TEAMS_AGENT_ID": "lea"}
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-o", str(trace), "-e", "trace=openat", *COMMAND, "spawn-team", "alpha"]
    subprocess.run(command, env=environ, check=True, capture_output=True, timeout=TIMEOUT)
    assert "mountinfo" not in trace.read_text()
