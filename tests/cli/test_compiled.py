"""Our own way to import finds what the interpreter's would, and leaves to that what it does not know."""

from __future__ import annotations

import importlib.util
import inspect
import os
import py_compile
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from teams_cli import compiled
from teams_cli.compiled import Finder

PACKAGE = "compiled_house"


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
    compiled.load(["door", "room", "room.bed", "window", "room.chair"])
    loaded = {name: dict(vars(sys.modules[f"{PACKAGE}.{name}"])) for name in ("door", "room", "room.bed")}
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
        compiled.load(["door"])
    assert f"{PACKAGE}.door" not in sys.modules


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


def test_a_source_of_the_same_size_and_another_time_is_compiled_anew(house: Path) -> None:
    source = house / "door.py"
    source.write_text("OPEN = 7\n")
    os.utime(source, (1, 1))
    assert importlib.import_module(f"{PACKAGE}.door").OPEN == 7


def test_what_is_not_there_is_not_found(house: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"{PACKAGE}.window"):
        importlib.import_module(f"{PACKAGE}.window")
