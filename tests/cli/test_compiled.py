"""Our own way to import finds what the interpreter's would, and leaves to that what it does not know."""

from __future__ import annotations

import builtins
import importlib.util
import inspect
import json
import marshal
import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import CodeType

import pytest

import teams_cli
from teams_cli import compiled
from teams_cli.compiled import Finder
from tests.support.cli import TIMEOUT

PACKAGE = "compiled_house"
LOAD = """
import importlib, sys
from teams_cli import compiled
package, *row = sys.argv[1:]
compiled.prefer(f"{package}.")
importlib.import_module(package)
finder = sys.meta_path[0]
looked, finder.load = [], lambda name, load=finder.load: looked.append(name) or load(name)
compiled.load("row", row)
compiled.keep_rows()
given = [name for name in row if f"{package}.{name}" in sys.modules]
door, *_ = [importlib.import_module(f"{package}.{name}") for name in row]
print(*(() if looked else given), door.OPEN)
"""
KEEPING = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
ROW = ["door", "room", "room.bed"]
KEPT = f"__pycache__/row.{sys.implementation.cache_tag}.opt-row.pyc"


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with a module and a room, compiled, which our finder is asked for first."""
    room = tmp_path / PACKAGE / "room"
    room.mkdir(parents=True)
    for path, text in (("__init__", ""), ("door", "OPEN = 1\n"), ("room/__init__", "TABLE = 2\n"), ("room/bed", "")):
        source = tmp_path / PACKAGE / f"{path}.py"
        source.write_text(text)
        py_compile.compile(str(source))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", [Finder(f"{PACKAGE}."), *sys.meta_path])
    yield tmp_path / PACKAGE
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]


def is_ours(name: str) -> bool:
    return type(sys.modules[f"{PACKAGE}.{name}"].__loader__).__module__ == "teams_cli.compiled"


def test_modules_and_packages(house: Path) -> None:
    door = importlib.import_module(f"{PACKAGE}.door")
    room = importlib.import_module(f"{PACKAGE}.room")
    bed = importlib.import_module(f"{PACKAGE}.room.bed")
    assert (door.OPEN, room.TABLE) == (1, 2)
    assert room.__path__ == [str(house / "room")] and bed.__package__ == f"{PACKAGE}.room"
    assert door.__file__ == str(house / "door.py")
    assert door.__cached__ == importlib.util.cache_from_source(door.__file__)
    assert all(map(is_ours, ("door", "room", "room.bed")))
    assert inspect.getsource(door) == "OPEN = 1\n"
    assert importlib.reload(door).OPEN == 1


def test_modules_in_a_row_are_as_if_each_was_imported(house: Path) -> None:
    importlib.import_module(PACKAGE)
    compiled.load("row", [*ROW, "window", "room.chair"])
    loaded = {name: dict(vars(sys.modules[f"{PACKAGE}.{name}"])) for name in ROW}
    assert vars(sys.modules[PACKAGE])["room"].bed is sys.modules[f"{PACKAGE}.room.bed"]
    for name, own in loaded.items():
        del sys.modules[f"{PACKAGE}.{name}"]
        imported = vars(importlib.import_module(f"{PACKAGE}.{name}"))
        assert imported.keys() == own.keys() - {"bed"}
        assert all(imported[key] == own[key] for key in imported.keys() - {"__spec__", "__loader__"})


def test_a_module_in_a_row_that_fails_is_not_left_behind(house: Path) -> None:
    (house / "door.py").write_text("OPEN = 1 / 0\n")
    py_compile.compile(str(house / "door.py"))
    importlib.import_module(PACKAGE)
    with pytest.raises(ZeroDivisionError):
        compiled.load("row", ["door"])
    assert f"{PACKAGE}.door" not in sys.modules


def test_a_package_comes_before_a_module_of_its_name(house: Path) -> None:
    """As it does for the interpreter: of what an older version had under that name, something may be left."""
    (house / "room.py").write_text("TABLE = 3\n")
    py_compile.compile(str(house / "room.py"))
    assert importlib.import_module(f"{PACKAGE}.room").TABLE == 2 and is_ours("room")


@pytest.mark.parametrize("fails", [False, True])
def test_what_modules_in_a_row_import_is_what_they_would_otherwise(house: Path, fails: bool) -> None:
    """What is there, what is not there yet, and what is not; and it is imported as usual behind them."""
    bed = f"""
from __future__ import annotations
import {PACKAGE}.door
from {PACKAGE} import cellar, door
from {PACKAGE}.door import OPEN
from .json import INSIDE
try:
    from {PACKAGE} import attic
except ImportError as error:
    attic = str(error)
SEEN = cellar.DEEP, door.OPEN, OPEN, {PACKAGE}.door.OPEN, INSIDE, attic
"""
    usual = builtins.__import__
    for name, text in (("cellar", "DEEP = 4\n"), ("room/json", "INSIDE = 5\n"), ("room/bed", bed + "1 / 0\n" * fails)):
        (house / f"{name}.py").write_text(text)
        py_compile.compile(str(house / f"{name}.py"))
    for _ in range(2):  # the first makes the row
        importlib.import_module(PACKAGE)
        with pytest.raises(ZeroDivisionError) if fails else nullcontext():
            compiled.load("row", ROW)
        compiled.keep_rows()
        assert builtins.__import__ is usual and (house / KEPT).exists()
        if not fails:
            said = f"cannot import name 'attic' from '{PACKAGE}' ({house / '__init__.py'})"
            assert vars(sys.modules[f"{PACKAGE}.room.bed"])["SEEN"] == (4, 1, 1, 1, 5, said)
        for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
            del sys.modules[name]


def load_row(house: Path, *flags: str) -> list[str]:
    """Load the row in a process of its own, as a command does; the modules that its file gave, and what one says."""
    command = [sys.executable, *flags, "-c", LOAD, PACKAGE, *ROW]
    done = subprocess.run(command, cwd=house.parent, env=KEEPING, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done
    return done.stdout.split()


def test_a_row_is_read_from_one_file_when_it_was_loaded_once(house: Path) -> None:
    assert load_row(house) == ["1"]
    kept = house / KEPT
    first = kept.read_bytes()
    assert load_row(house) == [*ROW, "1"]
    assert kept.read_bytes() == first
    assert [path.name for path in kept.parent.iterdir() if "row" in path.name] == [kept.name]


@pytest.mark.parametrize("name", ["door", "room/__init__", "room/bed"])
def test_a_row_of_what_was_changed_since_is_made_anew(house: Path, name: str) -> None:
    load_row(house)
    source = house / f"{name}.py"
    source.write_text("OPEN = 12345\n")
    shown = {"door": "12345"}.get(name, "1")
    assert load_row(house)[-1] == shown  # compiles it
    load_row(house)
    assert load_row(house) == [*ROW, shown]


@pytest.mark.parametrize("damage", ["gone", "cut off", "empty", "nulls", "of another version", "of others", "a pipe"])
def test_a_row_that_is_not_good_is_made_anew(house: Path, damage: str) -> None:
    load_row(house)
    kept = house / KEPT
    whole = kept.read_bytes()
    if damage in ("gone", "a pipe"):
        kept.unlink()
        if damage == "a pipe":
            os.mkfifo(kept)
    elif damage == "of others":
        head = marshal.dumps((ROW[:1], []))
        kept.write_bytes(whole[:16] + len(head).to_bytes(4, "little") + head)
    else:
        half = whole[: len(whole) // 2]
        made = {"cut off": half, "empty": b"", "nulls": half + bytes(len(whole) - len(half))}
        kept.write_bytes(made.get(damage, b"\0\0\r\n" + whole[4:]))
    assert load_row(house)[-1] == "1"
    assert kept.read_bytes() == whole and load_row(house) == [*ROW, "1"]


@pytest.mark.parametrize("bit", [0, 7])
@pytest.mark.parametrize("place", ["head", *range(16, 24), "part", "module"])
def test_a_row_of_which_a_bit_says_another_length_or_type_is_made_anew(house: Path, place: str | int, bit: int) -> None:
    load_row(house)
    kept = house / KEPT
    whole = kept.read_bytes()
    part = 20 + int.from_bytes(whole[16:20], "little")
    at = place if isinstance(place, int) else {"head": 0, "part": part, "module": part + 5}[place]
    kept.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
    assert load_row(house)[-1] == "1" and load_row(house) == [*ROW, "1"]


@pytest.mark.parametrize("left", [0, 10, 18, 30, 0.4, 0.7, -1])
def test_a_long_row_that_was_cut_off_anywhere_is_made_anew(house: Path, left: float) -> None:
    for name, text in (("door", "OPEN = 1\n"), ("room/__init__", ""), ("room/bed", "")):
        (house / f"{name}.py").write_text(f"{text}LONG = {'x' * 40_000!r}\n")
        py_compile.compile(str(house / f"{name}.py"))
    load_row(house)
    kept = house / KEPT
    whole = kept.read_bytes()
    assert len(whole) > 40_000 and load_row(house) == [*ROW, "1"]
    kept.write_bytes(whole[: int(left * len(whole)) if 0 < left < 1 else int(left)])
    assert load_row(house)[-1] == "1"
    assert kept.read_bytes() == whole and load_row(house) == [*ROW, "1"]


def test_a_row_that_says_what_no_interpreter_writes_is_made_anew(house: Path) -> None:
    load_row(house)
    kept = house / KEPT
    whole = kept.read_bytes()
    kept.write_bytes(upsetting(whole))
    assert load_row(house)[-1] == "1"
    assert kept.read_bytes() == whole and load_row(house) == [*ROW, "1"]


def upsetting(whole: bytes) -> bytes:
    """The file with a byte of its only part changed so that the interpreter finds an error of its own."""
    part = 20 + int.from_bytes(whole[16:20], "little")
    for at in range(part, len(whole)):
        for byte in (whole[at] ^ 0x40, 250):
            damaged = whole[:at] + bytes([byte]) + whole[at + 1 :]
            try:
                marshal.loads(damaged[part:])
            except SystemError:
                return damaged
            except Exception:  # that is another kind of damage
                continue
    raise AssertionError("no change of a byte was one")


SAYING = """
from __future__ import annotations

OPEN = 1


class Chair:
    \"\"\"Something to sit on.\"\"\"

    legs: int = 4

    def broken(self, why: str = "age", *more: str, **how: int) -> str:
        \"\"\"Only said.\"\"\"


def half(of: int) -> float:
    \"\"\"Fails for nothing.\"\"\"
    return 1 / of
"""
ASK = """
import inspect, json, sys, traceback
from teams_cli import compiled
compiled.prefer("compiled_house.")
import compiled_house
compiled.load("row", ["door", "room", "room.bed"])
compiled.keep_rows()
from compiled_house.door import Chair, half
try:
    half(0)
except ZeroDivisionError as error:
    line = traceback.extract_tb(error.__traceback__)[-1]
functions = [half, Chair.broken]
print(json.dumps([
    [list(inspect.signature(function).parameters) for function in functions],
    [function.__doc__ for function in functions],
    [len(function.__annotations__) for function in functions], "annotations" in vars(sys.modules[half.__module__]),
    Chair.__doc__, Chair.__annotations__, Chair().broken(), half(2), line.filename, line.lineno,
]))
"""


def test_a_row_leaves_out_the_annotations_of_functions_and_futures_and_nothing_else(house: Path) -> None:
    """The first command has the modules as they are compiled, the next one from the row."""
    source = house / "door.py"
    source.write_text(SAYING)
    py_compile.compile(str(source))
    ask = [sys.executable, "-c", ASK]
    first, later = (
        json.loads(subprocess.check_output(ask, cwd=house.parent, env=KEEPING, text=True, timeout=TIMEOUT))
        for _ in range(2)
    )
    line = SAYING.splitlines().index("    return 1 / of") + 1
    told = [["of"], ["self", "why", "more", "how"]], ["Fails for nothing.", "Only said."]
    does = "Something to sit on.", {"legs": "int"}, None, 0.5, str(source), line
    assert first == [*told, [2, 4], True, *does]
    assert later == [*told, [0, 0], False, *does]


def test_a_row_is_not_kept_of_a_source_that_is_half_written(house: Path) -> None:
    """As an upgrade leaves it for a moment: the time and the size are those of what is compiled."""
    source = house / "door.py"
    was = source.stat()
    source.write_text("OPEN = (\n")
    os.utime(source, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert source.stat().st_size == was.st_size and load_row(house) == ["1"]
    assert not list(house.rglob("*row*"))


def test_a_row_is_not_kept_where_nothing_is_compiled(house: Path) -> None:
    for compiled_file in house.rglob("*.pyc"):
        compiled_file.unlink()
    assert load_row(house, "-B") == ["1"]
    assert not list(house.rglob("*row*"))


def test_a_row_is_kept_of_what_is_compiled_also_by_an_interpreter_that_writes_nothing(house: Path) -> None:
    """As in a container, where PYTHONDONTWRITEBYTECODE is set and the installer compiled."""
    assert load_row(house, "-B") == ["1"]
    assert load_row(house, "-B") == [*ROW, "1"]


def test_a_row_is_not_kept_where_nothing_may_be_written(house: Path) -> None:
    (house / KEPT).mkdir()  # also for who may write all
    assert load_row(house) == ["1"]
    assert len(list(house.rglob("*row*"))) == 1


def test_every_command_finds_the_rows_of_the_one_before_and_none_of_a_change(tmp_path: Path) -> None:
    shutil.copytree(
        Path(teams_cli.__file__).parent, tmp_path / "teams_cli", ignore=shutil.ignore_patterns("__pycache__")
    )
    environ = KEEPING | {"TEAMS_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}

    def say(*words: str) -> str:
        command = [sys.executable, "-m", "teams_cli", *words]
        done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT)
        assert done.returncode == 0, done
        return done.stdout

    def rows() -> dict[str, bytes]:
        return {path.name.partition(".")[0]: path.read_bytes() for path in tmp_path.rglob("*.opt-row.pyc")}

    say("spawn-team", "alpha", "--as", "lea")
    say("join-team", "alpha", "--as", "mia")
    for _ in range(2):
        say("send-message", "lea", "hi", "--team", "alpha", "--as", "mia")
    help_at_first, help_later = (say("create-task", "--help") for _ in range(2))
    assert help_at_first == help_later and "Add a task to the team's queue." in help_later
    kept = rows()
    assert kept.keys() == {"first", "usual", "of-tasks", "send-message"}
    text = tmp_path / "teams_cli" / "cli" / "show" / "messages.py"
    text.write_text(text.read_text().replace("sent to", "was sent to"))
    for _ in range(3):
        assert "was sent to" in say("send-message", "lea", "hi", "--team", "alpha", "--as", "mia")
    assert {name for name, data in rows().items() if data != kept[name]} == {"send-message"}
    for text in [*sorted(tmp_path.glob("teams_cli/*/__init__.py")), tmp_path / "teams_cli" / "text.py"]:
        environ["PYTHONDONTWRITEBYTECODE"] = "1"  # what was changed is compiled anew each time
        text.write_text(f"{text.read_text()}\n")
        assert "was sent to" in say("send-message", "lea", "hi", "--team", "alpha", "--as", "mia")


@pytest.mark.parametrize("damage", ["edited", "not compiled", "cut off", "of another interpreter", "checked by hash"])
def test_what_is_not_as_usual_is_left_to_the_interpreter(house: Path, damage: str) -> None:
    source = house / "door.py"
    cached = Path(importlib.util.cache_from_source(str(source)))
    if damage == "edited":
        source.write_text("OPEN = 3000\n")
    elif damage == "not compiled":
        cached.unlink()
    elif damage == "of another interpreter":
        cached.write_bytes(b"\0\0\r\n" + cached.read_bytes()[4:])
    elif damage == "checked by hash":
        py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    else:
        cached.write_bytes(b"")
    door = importlib.import_module(f"{PACKAGE}.door")
    assert vars(door)["OPEN"] == (3000 if damage == "edited" else 1)
    assert not is_ours("door")


@pytest.mark.parametrize("damage", ["cut off", "nulls"])
def test_a_compiled_module_that_is_not_whole_is_made_anew(house: Path, damage: str) -> None:
    """As a full disk leaves it: the interpreter itself would fail for it whenever it is imported."""
    kept = Path(importlib.util.cache_from_source(str(house / "door.py")))
    whole = kept.read_bytes()
    kept.write_bytes(whole[:24] + bytes(len(whole) - 24 if damage == "nulls" else 0))
    assert load_row(house) == ["1"]
    assert type(marshal.loads(kept.read_bytes()[16:])) is CodeType
    assert load_row(house) == ["1"]  # it had no room in a row before
    assert load_row(house) == [*ROW, "1"]


def test_a_source_of_the_same_size_and_another_time_is_compiled_anew(house: Path) -> None:
    source = house / "door.py"
    source.write_text("OPEN = 7\n")
    os.utime(source, (1, 1))
    assert importlib.import_module(f"{PACKAGE}.door").OPEN == 7


def test_what_is_not_there_is_not_found(house: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"{PACKAGE}.window"):
        importlib.import_module(f"{PACKAGE}.window")
