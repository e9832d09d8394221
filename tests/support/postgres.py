"""A real PostgreSQL server for tests. It has its own directory, listens on a socket there, and ends with the tests."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

USER = "teams"
NONE = "there is no PostgreSQL server on this machine (Debian: apt-get install postgresql)"
_PATIENCE = 60


def binaries() -> Path | None:
    """Return the directory of the server's programs; None without one."""
    found = [Path(path).parent for name in ("postgres",) if (path := shutil.which(name))]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((path for path in found if (path / "postgres").exists() and (path / "initdb").exists()), None)


def missing() -> str:
    """Return why no server can be started here; "" if one can."""
    try:
        import psycopg2  # noqa: F401
    except ImportError:
        return "the extra `postgres` is not installed"
    return "" if binaries() else NONE


class Postgres:
    """One server. PostgreSQL refuses to run as root, so root's tests run it as another user."""

    def __init__(self, *settings: str, listen: str = "", port: int = 5432, directory: Path | None = None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="teams-pg-", dir=_reachable(directory)))
        self.settings = ["-c", f"unix_socket_directories={self.directory}", "-c", f"listen_addresses={listen}"]
        self.settings += [word for setting in settings for word in ("-c", setting)]
        self.port = port
        self.as_user: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = next((name for name in ("postgres", "nobody") if _has(name)), "nobody")
            self.as_user = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
            shutil.chown(self.directory, user)
        self._make()
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def _make(self) -> None:
        words = [self._program("initdb"), "-D", f"{self.directory}/data", "-U", USER, "-A", "trust", "--no-sync"]
        words += ["-E", "UTF8", "--locale=C"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd="/", timeout=_PATIENCE, **self.as_user)

    def _program(self, name: str) -> str:
        place = binaries()
        assert place is not None
        return str(place / name)

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        words = [self._program("postgres"), "-D", f"{self.directory}/data", "-p", str(self.port)]
        with open(f"{self.directory}/log", "ab") as log:
            self.process = subprocess.Popen(
                [*words, *self.settings], stdout=log, stderr=log, cwd="/", preexec_fn=_ended_with_us, **self.as_user
            )
        give_up = time.monotonic() + _PATIENCE
        while not self.answers():
            assert self.process.poll() is None and time.monotonic() < give_up, self.log()
            time.sleep(0.05)

    def answers(self) -> bool:
        """Whether the server takes connections."""
        import psycopg2

        try:
            psycopg2.connect(self.address("postgres")).close()
        except psycopg2.OperationalError:
            return False
        return True

    def log(self) -> str:
        """Return the last lines of the server's log."""
        return Path(self.directory, "log").read_text(errors="replace")[-4000:]

    def kill(self) -> None:
        """End the server and all its processes at once, as kill -9 does."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in [self.process.pid, *map(int, children)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait(_PATIENCE)

    def stop(self) -> None:
        """End the server and remove its directory."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def address(self, database: str = "postgres", schema: str = "", user: str = USER) -> str:
        """Return the address of a store on this server."""
        more = f"&schema={schema}" if schema else ""
        return f"postgresql://{user}@/{database}?host={self.directory}&port={self.port}{more}"

    def psql(
        self, sql: str, *words: str, user: str = USER, database: str = "postgres"
    ) -> subprocess.CompletedProcess[str]:
        """Return the output of psql for a statement."""
        command = ["psql", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", str(self.directory), "-p", str(self.port)]
        command += ["-U", user, "-d", database, *words, "-c", sql]
        return subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)


def _reachable(directory: Path | None) -> Path | None:
    """Return the *directory* if the server's user can reach it and the path of the socket is short enough; else
    None.
    """
    if directory is None or len(str(directory)) > 60 or (os.geteuid() == 0 and not directory.stat().st_mode & 0o001):
        return None
    return directory


def _has(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def _ended_with_us() -> None:
    """Ask the system to stop the server when the tests end, even if they are killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


def end_users_of(address: str) -> None:
    """End all processes that use the store at the address, such as keepers, which outlive the command that started
    them.
    """
    said = f"TEAMS_STORE={address}".encode()
    for name in os.listdir("/proc"):
        try:
            words = Path("/proc", name, "environ").read_bytes().split(b"\0") if name.isdigit() else []
            if said in words and int(name) != os.getpid():
                os.kill(int(name), signal.SIGKILL)
        except OSError:  # it ended, or is not ours
            continue


def schema_of(address: str) -> str:
    """Return the schema that the address names."""
    return address.rpartition("schema=")[2]
