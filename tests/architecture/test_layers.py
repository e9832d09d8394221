"""Who may import whom, what may be heavy, and what the core keeps its hands off."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import teams_cli
from teams_cli import commands, errors
from teams_cli.commands.declaration import named
from teams_cli.errors import TeamsError
from teams_cli.teams.caller import Caller
from tests.support.cli import ALPHA, TIMEOUT, add_tasks, make_team

PACKAGE = Path(teams_cli.__file__).parent

# Lowest first: a module imports only what stands before it. What is not named here stands above the operations and
# below the commands; within a package the order is free, but nothing in them looks up.
LAYERS = """
    errors names text clock environment processes streams bugs | records | store | teams
    | messages questions clients workflows | tasks | membership | agents | views hooks closing | runs | kinds
    | doctor copying | commands | cli serving | mcp_server http_api
""".replace("|", " ").split()
FRONT_ENDS = {"cli", "__main__", "mcp_server", "http_api", "hooks", "environment", "streams"}
HEAVY = {"typer", "pydantic", "filelock", "rich", "yaml", "click", "mcp", "anyio", "starlette", "uvicorn"}
HEAVY_OURS = {"records.validation", "records.types", "workflows.model", "workflows.files", "commands.runners.workflows"}
CORE = [name for name in LAYERS[: LAYERS.index("commands") + 1] if name not in ("workflows", "runs")]


def modules() -> dict[str, Path]:
    """Every module of the program by its name below the package, `store.files`."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """What the file imports, and when: on "import", on a "call" of a function, or never, for "types" only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    when: dict[ast.AST, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            when |= {inner: "call" for inner in ast.walk(node)}
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            when |= {inner: "types" for part in node.body for inner in ast.walk(part)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name, when.get(node, "import")) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            for target in (node.module, *(f"{node.module}.{name.name}" for name in node.names)):
                yield target, when.get(node, "import")


@cache
def own_imports(name: str) -> list[tuple[str, str]]:
    """The modules of the program that this one imports, and when."""
    found = [(target.removeprefix("teams_cli."), when) for target, when in imports(MODULES[name])]
    return [(target, when) for target, when in found if target in MODULES and target != name]


def is_program(name: str) -> bool:
    """Whether the module is run as a process of its own."""
    return name.partition(".")[0] in FRONT_ENDS or '__name__ == "__main__"' in MODULES[name].read_text(encoding="utf-8")


def layer(name: str) -> int:
    """The place of a module in the order."""
    top = name.partition(".")[0]
    return LAYERS.index(top)


@pytest.mark.parametrize("name", [name for name in MODULES if name not in ("", "__main__")])
def test_imports_go_one_way(name: str) -> None:
    """Also those for types only, and those inside functions; what is above is never looked up to."""
    for target, _ in own_imports(name):
        assert layer(target) <= layer(name), f"{name} imports {target}, which stands above it"


def test_no_module_is_imported_by_what_it_imports() -> None:
    """No circle, but for a package with its own modules, and for types among the modules of one package."""
    seen: dict[str, int] = {}

    def visit(name: str, way: list[str]) -> None:
        if seen.get(name) == 2:
            return
        assert seen.get(name) != 1, f"circle: {' -> '.join([*way[way.index(name) :], name])}"
        seen[name] = 1
        for target, when in sorted(own_imports(name)):
            siblings = "." in name and name.partition(".")[0] == target.partition(".")[0]
            if not name.startswith(f"{target}.") and not (siblings and when == "types"):
                visit(target, [*way, name])
        seen[name] = 2

    for name in MODULES:
        if name:
            visit(name, [])


@pytest.mark.parametrize("name", [name for name in MODULES if name.partition(".")[0] in CORE])
def test_the_core_imports_nothing_heavy(name: str) -> None:
    """At module level, that is; `validation` is what is imported where a boundary is crossed."""
    if name in HEAVY_OURS:
        return
    for target, when in imports(MODULES[name]):
        heavy = target.partition(".")[0] in HEAVY or target.removeprefix("teams_cli.") in HEAVY_OURS
        assert not (heavy and when == "import"), f"{name} imports {target}"


@pytest.mark.parametrize("words", ["send-message bob hi", "read-messages", "claim-task 1", "claim-task --next"])
def test_hot_commands_load_nothing_heavy(words: str, tmp_path: Path) -> None:
    """Seen from outside: of the process that ran the command, no heavy module was loaded."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, "t", "u")
    cli.ok("send-message", "mia", "hi", agent="lea")
    code = "import sys; from teams_cli.cli.main import run; s = run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", f"{code}; sys.exit(s)", *words.split()]
    done = subprocess.run(
        command, env=cli.environ("mia"), cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT
    )
    loaded = set(done.stderr.split())
    assert done.returncode == 0, done
    assert not loaded & HEAVY
    bare = [sys.executable, "-c", "import sys; print(*sys.modules)"]
    before = set(subprocess.run(bare, capture_output=True, text=True, timeout=TIMEOUT).stdout.split())
    slow = {
        "dataclasses",
        "typing",
        "logging",
        "uuid",
        "tempfile",
        "inspect",
        "asyncio",
        "subprocess",
        "multiprocessing",
    }
    assert not (loaded - before) & slow


@pytest.mark.parametrize("name", [name for name in MODULES if not is_program(name)])
def test_the_core_is_silent(name: str) -> None:
    """It neither prints nor exits, nor reads the environment or the home by itself."""
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("print", "input", "exit", "quit"), f"{name}:{node.lineno}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used = f"{node.value.id}.{node.attr}"
            assert used not in (
                "os.environ",
                "os.getenv",
                "os.path.expanduser",
                "sys.exit",
                "sys.stdout",
                "sys.stderr",
                "sys.stdin",
                "sys.argv",
                "Path.home",
            ), f"{name}:{node.lineno} uses {used}"


ERRORS = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, TeamsError)]
STATUSES = {1, 2, 10, 11, 12, 13, 14, 15}


@pytest.mark.parametrize("cls", ERRORS, ids=lambda cls: cls.__name__)
def test_every_error_has_a_status_and_is_raised(cls: type[TeamsError]) -> None:
    """One that nobody raises or catches is a promise that nobody keeps; a subclass counts for its base."""
    assert cls.status in STATUSES and cls.__doc__
    assert cls("what").code == "".join("_" * c.isupper() + c.lower() for c in cls.__name__).lstrip("_")
    names = {sub.__name__ for sub in ERRORS if issubclass(sub, cls)}
    assert names & called(), f"nobody raises {cls.__name__}"


@cache
def called() -> set[str]:
    """The names of all that is called anywhere but where the errors are, `errors.Busy` by the last of them."""
    return {
        node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        for name, path in MODULES.items()
        if name.partition(".")[0] != "errors"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    }


def test_every_answer_can_be_told_in_words() -> None:
    """Else a command would do its work and fail then. The MCP server speaks a language of its own."""
    assert all(callable(command.run) for command in commands.every().values())
    silent = {command.name for command in commands.every().values() if not command.words}
    assert silent == {"mcp"}
    assert all(
        callable(named(f"cli.show.{command.words}")) for name, command in commands.every().items() if name not in silent
    )


def test_every_status_is_that_of_the_contract() -> None:
    found = {cls.__name__: cls.status for cls in ERRORS}
    expected = {
        "TeamsError": 1,
        "StorageFailed": 1,
        "InvalidValue": 2,
        "WrongUsage": 2,
        "NotFound": 10,
        "Conflict": 11,
        "Busy": 12,
        "OutcomeUnknown": 12,
        "NotAllowed": 13,
        "WaitRanOut": 14,
        "DamagedRecord": 15,
    }
    assert {name: found[name] for name in expected} == expected


def test_nothing_reads_the_home_when_told_where_to_look(tmp_path: Path) -> None:
    """With a root given, no other directory of the user is touched."""
    home = tmp_path / "home"
    home.mkdir()
    cli = make_team(tmp_path / "root", "bob")
    environ = {**cli.environ("lea"), "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    words = [sys.executable, "-m", "teams_cli", "send-message", "bob", "hi", "--root", str(cli.root), "--team", ALPHA]
    assert subprocess.run(words, env=environ, capture_output=True, timeout=TIMEOUT).returncode == 0
    assert os.listdir(home) == [] and Caller("lea").name == "lea"


def test_where_the_teams_are_kept(tmp_path: Path) -> None:
    """A flag beats `TEAMS_HOME` beats `XDG_CONFIG_HOME`, which beats the home; a relative one of these is ignored."""
    home = tmp_path / "home"
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "TEAMS_AGENT_ID": "lea"}
    xdg, below = tmp_path / "xdg", "opencode/opencode-teams"
    for more, flags, root in [
        ({}, [], home / ".config" / below),
        ({"XDG_CONFIG_HOME": str(xdg)}, [], xdg / below),
        ({"XDG_CONFIG_HOME": "relative"}, [], home / ".config" / below),
        ({"XDG_CONFIG_HOME": str(xdg), "TEAMS_HOME": str(tmp_path / "own")}, [], tmp_path / "own"),
        ({"TEAMS_HOME": str(tmp_path / "own")}, ["--root", str(tmp_path / "said")], tmp_path / "said"),
    ]:
        name = f"t{len(list(tmp_path.rglob('team.json')))}"
        words = [sys.executable, "-m", "teams_cli", "spawn-team", name, *flags]
        done = subprocess.run(words, env={**environ, **more}, cwd=tmp_path, capture_output=True, timeout=TIMEOUT)
        assert done.returncode == 0, done
        assert (root / "teams" / name / "team.json").is_file()
        assert (root.stat().st_mode & 0o777) == 0o700
