"""A real PgBouncer in transaction mode before a test server. Its socket is beside the socket of the server."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tests.support.postgres import USER, Postgres

NONE = "there is no PgBouncer on this machine (Debian: apt-get install pgbouncer)"
_PATIENCE = 60
_PORT = 6432


def program() -> str | None:
    """Return the path of PgBouncer; None if it is not installed."""
    return shutil.which("pgbouncer") or next(
        (path for path in ("/usr/sbin/pgbouncer",) if os.access(path, os.X_OK)), None
    )


class PgBouncer:
    """A pooler with a number of connections to the server, for any number of clients."""

    def __init__(self, server: Postgres, size: int = 5) -> None:
        self.server = server
        self.directory = Path(tempfile.mkdtemp(prefix="teams-pool-"))
        self.directory.chmod(0o755)
        settings = f"""
            [databases]
            * = host={server.directory} port={server.port} pool_size={size}
            [pgbouncer]
            listen_addr =
            listen_port = {_PORT}
            unix_socket_dir = {self.directory}
            auth_type = trust
            auth_file = {self.directory}/users
            pool_mode = transaction
            max_client_conn = 2000
            logfile = {self.directory}/log
            pidfile =
        """
        Path(self.directory, "users").write_text(f'"{USER}" ""\n')
        Path(self.directory, "settings").write_text("\n".join(line.strip() for line in settings.splitlines()))
        if self.server.as_user:
            for path in (self.directory, *self.directory.iterdir()):
                shutil.chown(path, self.server.as_user["user"])
        words = [str(program()), "-q", f"{self.directory}/settings"]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, cwd="/", **self.server.as_user)
        give_up = time.monotonic() + _PATIENCE
        while not Path(self.directory, f".s.PGSQL.{_PORT}").exists():
            assert self.process.poll() is None and time.monotonic() < give_up
            time.sleep(0.02)

    def address(self, schema: str) -> str:
        """Return the address of a store behind the pooler. It also names the server itself, on which clients listen."""
        more = f"&listen={self.server.directory}:{self.server.port}"
        return f"postgresql://{USER}@/postgres?host={self.directory}&port={_PORT}&schema={schema}{more}"

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
