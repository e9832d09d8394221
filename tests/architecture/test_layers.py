"""Which module may import which, which imports are slow, and what the core may not do."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import teams_cli
from teams_cli import commands, errors, extensions
from teams_cli.errors import TeamsError
from tests.support.cli import TIMEOUT, add_tasks, make_team
from tests.support.loaded import loaded_by

PACKAGE = Path(teams_cli.__file__).parent

# Lowest first: a module imports only what stands before it. What is not named here stands above the operations and
# below the commands; within a package the order is free, but nothing in them looks up.
LAYERS = """
    errors names text clock environment extensions processes sockets streams | records | store | teams
    | messages questions clients workflows | tasks | membership | agents | views hooks closing | runs | kinds
    | doctor copying | commands | cli serving
""".replace("|", " ").split()
FRONT_ENDS = {"cli", "__main__", "extensions", "hooks", "environment", "streams"}
HEAVY = {"typer", "pydantic", "filelock", "rich", "yaml", "click", "mcp", "anyio", "starlette", "uvicorn"}
HEAVY_OURS = {"records.types", "workflows.model", "workflows.files"}
CORE = [name for name in LAYERS[: LAYERS.index("commands") + 1] if name not in ("workflows", "runs", "extensions")]


def modules() -> dict[str, Path]:
    """Return every module of the program by its name below the package, such as `store.files`."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Return the imports of the file, each with when it happens: on "import", on a "call" of a function, or never, for
    "types" only.
    """
    waiting: list[tuple[ast.AST, str]] = [(tree(path), "import")]
    while waiting:
        node, when = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((name.name, when) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            yield node.module, when
            yield from ((f"{node.module}.{name.name}", when) for name in node.names)
        elif isinstance(node, ast.stmt | ast.Module | ast.ExceptHandler | ast.match_case):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                when = "call"
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                waiting += [(inner, "types") for inner in node.body]
                waiting += [(inner, when) for inner in node.orelse]
            else:
                waiting += [(inner, when) for inner in ast.iter_child_nodes(node)]


@cache
def own_imports(name: str) -> list[tuple[str, str]]:
    """Return the modules of the program that this module imports, each with when it does."""
    found = [(target.removeprefix("teams_cli."), when) for target, when in imports(MODULES[name])]
    return [(target, when) for target, when in found if target in MODULES and target != name]


def is_program(name: str) -> bool:
    """Whether the module is run as a process of its own."""
    return name.partition(".")[0] in FRONT_ENDS or '__name__ == "__main__"' in MODULES[name].read_text(encoding="utf-8")


def layer(name: str) -> int:
    """Return the place of a module in the order of layers. Modules of an extension are above everything else."""
    top, dot, _ = name.partition(".")
    return len(LAYERS) if dot and top == "extensions" else LAYERS.index(top)


def test_imports_go_one_way() -> None:
    """This includes imports for types and imports inside functions."""
    below = [name for name in MODULES if name not in ("", "__main__")]
    upward = [(name, target) for name in below for target, _ in own_imports(name) if layer(target) > layer(name)]
    assert upward == [], "these modules import from a layer above their own"


def test_no_module_is_imported_by_what_it_imports() -> None:
    """There are no import circles, except between a package and its modules, and for types within a package."""
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


def test_the_core_imports_nothing_heavy() -> None:
    """Functions may import heavy modules, where they check files of others."""
    for name in MODULES:
        if name.partition(".")[0] in CORE and name not in HEAVY_OURS:
            for target, when in imports(MODULES[name]):
                heavy = target.partition(".")[0] in HEAVY or target.removeprefix("teams_cli.") in HEAVY_OURS
                assert not (heavy and when == "import"), f"{name} imports {target}"


SLOW = {"dataclasses", "typing", "logging", "uuid", "tempfile", "inspect", "asyncio", "subprocess", "multiprocessing"}
SLOW |= {"contextlib", "functools"}


def test_everyday_commands_load_nothing_heavy(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, "t", "u")
    cli.ok("send-message", "mia", "hi", agent="lea")
    everyday = ("send-message bob hi", "read-messages", "get-tasks", "join-team --claim --wait 540", "brief")
    for words in (*everyday, "update-task 1 --status completed --result r --next --wait 540", "show-task 2"):
        loaded = loaded_by(words.split(), cli.environ("mia"), [str(PACKAGE.parent)])
        assert not loaded & (HEAVY | SLOW), words


OF_FACES = {"print", "input", "exit", "quit", "os.environ", "os.getenv", "os.path.expanduser", "Path.home"}
OF_FACES |= {f"sys.{name}" for name in ("exit", "stdout", "stderr", "stdin", "argv")}


def test_the_core_is_silent() -> None:
    """It neither prints nor exits, and does not read the environment or the home by itself."""
    for name in MODULES:
        for node in ast.walk(tree(MODULES[name])) if not is_program(name) else ():
            if isinstance(node, ast.Attribute) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                used = ast.unparse(node if isinstance(node, ast.Attribute) else node.func)
                assert used not in OF_FACES, f"{name}:{node.lineno} uses {used}"


ERRORS = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, TeamsError)]


CONTRACT = {
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


def test_every_error_has_the_status_of_the_contract_and_is_raised() -> None:
    """An error that nobody raises is a promise that nobody keeps. A subclass counts for its base class."""
    raised = called()
    whole = {*extensions.BROUGHT_BY.values()} <= extensions.every().keys()  # some are raised by an extension alone
    for cls in ERRORS:
        assert cls.status in CONTRACT.values() and cls.__doc__
        names = {sub.__name__ for sub in ERRORS if issubclass(sub, cls)}
        assert not whole or names & raised, f"nobody raises {cls.__name__}"
    found = {cls.__name__: cls.status for cls in ERRORS}
    assert {name: found[name] for name in CONTRACT} == CONTRACT


def called() -> set[str]:
    """Return the names of all functions that are called outside of `errors`; of `errors.Busy` the last part."""
    return {
        node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        for name, path in MODULES.items()
        if name.partition(".")[0] != "errors"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    }


def test_every_answer_can_be_told_in_words() -> None:
    """A command without words would do its work and then fail. The MCP server has words of its own."""
    assert all(callable(command.run) for command in commands.every().values())
    silent = {command.name for command in commands.every().values() if not command.words}
    assert silent == {"mcp"} & commands.every().keys()


def test_nothing_reads_the_home_when_told_where_to_look(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    cli = make_team(tmp_path / "root", "bob")
    words = ("send-message", "bob", "hi", "--root", str(cli.root))
    assert cli(*words, agent="lea", HOME=str(home), XDG_CONFIG_HOME=str(home / ".config")).status == 0
    assert os.listdir(home) == []


def test_where_the_teams_are_kept(tmp_path: Path) -> None:
    """A flag beats `TEAMS_HOME`, which beats `XDG_CONFIG_HOME`, which beats the home. A relative path in a variable is
    ignored.
    """
    home = tmp_path / "home"
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE.parent), "HOME": str(home)}
    environ["TEAMS_AGENT_ID"] = "lea"
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


def test_what_stays_beside_each_client_loads_little() -> None:
    """Each client has such a process for as long as it runs."""
    modules = ("hooks.waiting", *(["extensions.terminals.wrapper"] if "terminals" in extensions.every() else []))
    for module in modules:
        code = f"import sys, teams_cli.{module}; print(*sys.modules)"
        loaded = subprocess.run(
            [sys.executable, "-S", "-c", code],
            env={"PYTHONPATH": str(PACKAGE.parent)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        ours = {name.removeprefix("teams_cli.") for name in loaded if name.startswith("teams_cli.")}
        assert not {name.partition(".")[0] for name in ours} & {"commands", "messages", "tasks", "teams", "views"}, (
            module
        )
        assert not set(loaded) & HEAVY, module
