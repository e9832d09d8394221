"""Of the client library a command loads what it uses; to all others in the process the library is whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg2
import pytest

from teams_cli.extensions.postgres import driver
from teams_cli.extensions.postgres.connections import Server
from tests.conftest import server
from tests.support.cli import TIMEOUT, add_tasks, make_team
from tests.support.loaded import loaded_by

pytestmark = pytest.mark.slow

PARTS = {"re", "json", "decimal", "ssl", "socket", "enum", "threading", "psycopg2.extensions"}
PATH = [*filter(None, sys.path)]
OURS = "from teams_cli.extensions.postgres import driver"
USES = [
    "import psycopg2\nassert psycopg2.connect and psycopg2._psycopg is driver.library",
    "import psycopg2\nassert issubclass(psycopg2.errors.UniqueViolation, driver.library.IntegrityError)",
    "from psycopg2 import extras, pool\nassert extras.DictCursor and pool.SimpleConnectionPool",
    "import psycopg2.extensions as e\nassert e.connection is driver.library.connection",
    "from psycopg2.extensions import *\nassert adapt((1, None)).getquoted() == b'(1, NULL)'",
    "import psycopg2\nassert not hasattr(psycopg2, 'nothing') and psycopg2.paramstyle == 'pyformat'",
    "import ssl\nassert ssl.OPENSSL_VERSION",
]


def run(code: str, *path: str) -> subprocess.CompletedProcess[str]:
    """Run code where nothing is loaded but by it: what is installed beside may load modules at each start."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, *PATH])}
    return subprocess.run(
        [sys.executable, "-S", "-c", code], env=environ, capture_output=True, text=True, timeout=TIMEOUT
    )


@pytest.mark.parametrize("words", ["claim-task --next", "brief"])
def test_a_command_loads_nothing_that_the_library_has_in_python(words: str, on_postgres: str, tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, "one")
    loaded = loaded_by(words.split(), cli.environ("bob"), PATH)
    assert "psycopg2._psycopg" in loaded and not PARTS & loaded


def test_who_uses_the_library_has_all_of_it() -> None:
    for use in [*USES, "\n".join(USES)]:
        for before in ("", "import psycopg2\n"):
            done = run(f"{before}{OURS}\n{use}")
            assert done.returncode == 0, done.stderr


def test_a_library_whose_part_in_c_needs_the_rest_is_loaded_whole(tmp_path: Path) -> None:
    package = tmp_path / "psycopg2"
    package.mkdir()
    (package / "__init__.py").write_text("NEEDED = 7\n")
    (package / "_psycopg.py").write_text("from psycopg2 import NEEDED\n")
    done = run(f"{OURS}\nprint(driver.library.NEEDED)", str(tmp_path))
    assert done.stdout == "7\n", done.stderr


def test_options_reach_the_server_as_they_are() -> None:
    for name in ("plain", "", "it's", 'a "b"', "back\\slash", "two words", "\\'"):
        link = driver.connect({**psycopg2.extensions.parse_dsn(server().address()), "application_name": name})
        with link.cursor() as cursor:
            cursor.execute("SELECT current_setting('application_name')")
            assert cursor.fetchall() == [(name,)]
        link.close()


def test_an_address_says_options_with_any_characters(tmp_path: Path) -> None:
    place = Server(f"{server().address()}&application_name=it%27s%20a%5C", patience=5.0, lock_timeout=2.0)
    assert place.look("SELECT current_setting('application_name')") == [("it's a\\",)]
    place.close()
