"""Imports, in Python and scripts, of modules and names that the repository does not have or that the change removed."""

from __future__ import annotations

import ast
import os
import re
import warnings

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import Change, ChangedFile, Git, content
from teams_cli.extensions.review.findings import SERIOUS, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_GENERATED = ("_pb2", "_pb2_grpc", "version")
"""Endings of the names of modules that a build makes."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def parsed(text: str) -> ast.Module | None:
    """The syntax tree of Python source; None if it can't be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def import_names(path: str) -> set[str]:
    """The names by which the module can be imported: from the top, and from directories that may be the top."""
    parts = path.rpartition(".")[0].removesuffix("/__init__").split("/")
    tops = [0] + [index + 1 for index, part in enumerate(parts) if part in ("src", "lib", "python")]
    return {".".join(parts[top:]) for top in tops if parts[top:]}


def names(module: ast.Module) -> set[str] | None:
    """All names at the top of a module; None if some can't be seen: `import *`, `__getattr__`, globals(), exec."""
    defined: set[str] = set()
    waiting: list[ast.AST] = list(module.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, _DEFINITIONS):
            defined.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            defined.update((name.asname or name.name).partition(".")[0] for name in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif isinstance(node, ast.Name) and node.id == "exec":
            return None
        else:
            waiting += ast.iter_child_nodes(node)
    uses_globals = any(isinstance(node, ast.Name) and node.id == "globals" for node in ast.walk(module))
    return None if uses_globals or defined & {"*", "__getattr__"} else defined


def absolute(path: str, node: ast.ImportFrom) -> set[str]:
    """The names of the module that is imported from; a relative one is counted from the file's package."""
    if not node.level:
        return {node.module or ""}
    origins = set()
    for own in import_names(path):
        parts = own.split(".") if path.endswith("__init__.py") else own.split(".")[:-1]
        parts = parts[: len(parts) - node.level + 1]
        origins.add(".".join([*parts, *([node.module] if node.module else [])]))
    return origins


class Modules:
    """The Python modules of the repository by the names under which they are imported, parsed when needed."""

    def __init__(self, change: Change, git: Git, paths: list[str]) -> None:
        self.repo = change.repo
        self.paths = {name: path for path in paths for name in import_names(path)}
        self._names: dict[str, set[str] | None] = {}
        self.gone: dict[str, str] = {}
        """The path of each module that the change removed or renamed."""
        self.before: dict[str, set[str]] = {}
        """The names that each module had before the change, by its import name."""
        for file in change.files:
            if kinds.is_python(file.old) and file.status in "MDR":
                self._note_change(file, git, change.base)

    def _note_change(self, file: ChangedFile, git: Git, base: str) -> None:
        tree = parsed(git.line("cat-file", "blob", f"{base}:{file.old}"))
        for name in import_names(file.old):
            if name not in self.paths:
                self.gone[name] = file.old
            elif tree:
                self.before[name] = names(tree) or set()

    def may_be_affected(self, text: str) -> bool:
        """Whether a file with this text may use a module that changed."""
        return any(name.rpartition(".")[2] in text for name in (*self.gone, *self.before))

    def lacks(self, module: str) -> bool:
        """Whether a package of the repository would have the module and does not."""
        parent, _, last = module.rpartition(".")
        package = self.paths.get(parent, "")
        if module in self.paths or last.startswith("_") or last.endswith(_GENERATED):
            return False
        if not package.endswith("__init__.py"):
            return False
        is_dynamic = any(word in content(self.repo, package) for word in ("__path__", "sys.modules"))
        return not is_dynamic and not self._has_file(package, last)

    def lacks_name(self, module: str, name: str) -> bool:
        """Whether a module of the repository has no such name; False where that can't be told."""
        if module not in self.paths or f"{module}.{name}" in self.paths or name == "*" or name.startswith("__"):
            return False
        path = self.paths[module]
        if path not in self._names:
            tree = parsed(content(self.repo, path))
            self._names[path] = names(tree) if tree else None
        defined = self._names[path]
        return defined is not None and name not in defined and not self._has_file(path, name)

    def had(self, module: str, name: str) -> bool:
        """Whether the module had that name before the change."""
        return name in self.before.get(module, ())

    def _has_file(self, path: str, name: str) -> bool:
        """Whether the directory of that file has a directory of that name, or a file with any ending behind it."""
        entries = os.listdir(os.path.dirname(os.path.join(self.repo, path)))
        return any(entry == name or entry.startswith(f"{name}.") for entry in entries)


def python_imports(change: Change, git: Git) -> Iterator[Finding]:
    """Find imports of missing names in changed lines, and uses, in any file, of names that the change removed."""
    listed = git.listed("*.py", "*.pyi")
    paths = [path for path in listed if os.path.isfile(os.path.join(change.repo, path))]
    modules = Modules(change, git, paths)
    for path in paths:
        file, text = change.file(path), content(change.repo, path)
        if (file or modules.may_be_affected(text)) and not kinds.is_foreign(path, change.repo):
            tree = parsed(text)
            for finding in _missing(path, tree, modules) if tree else ():
                if finding.rule == "removed" or (file and finding.line in file.lines):
                    yield finding


def _missing(path: str, tree: ast.Module, modules: Modules) -> Iterator[Finding]:
    """Find uses of names that the repository's modules do not have. A use in `try` may fail and does not count."""
    tries = (node for node in ast.walk(tree) if isinstance(node, ast.Try))
    guarded = {inner for node in tries for part in node.body for inner in ast.walk(part)}
    nodes = [node for node in ast.walk(tree) if node not in guarded]
    aliases: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for name in node.names:
                aliases[name.asname or name.name] = name.name
                yield from _missing_module(path, node.lineno, {name.name}, modules)
        elif isinstance(node, ast.ImportFrom):
            origins = absolute(path, node)
            yield from _missing_module(path, node.lineno, origins, modules)
            for name in node.names:
                submodules = {f"{origin}.{name.name}".lstrip(".") for origin in origins}
                for module in submodules & modules.paths.keys():
                    aliases[name.asname or name.name] = module
                if submodules & modules.gone.keys():
                    yield _removed(path, node.lineno, f"the module {min(submodules)}")
                else:
                    yield from _missing_name(path, node.lineno, origins & modules.paths.keys(), name.name, modules)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            is_name = isinstance(node.value, ast.Name | ast.Attribute)
            origin = aliases.get(ast.unparse(node.value), "") if is_name else ""
            if modules.had(origin, node.attr) and modules.lacks_name(origin, node.attr):
                yield _removed(path, node.lineno, f"{node.attr} of {modules.paths[origin]}")


def _missing_module(path: str, line: int, possible: set[str], modules: Modules) -> Iterator[Finding]:
    if possible & modules.gone.keys():
        yield _removed(path, line, f"the module {min(possible)}")
    elif all(modules.lacks(name) for name in possible):
        yield Finding(SERIOUS, path, line, f"there is no {min(possible)}: the import fails", "import")


def _missing_name(path: str, line: int, origins: set[str], name: str, modules: Modules) -> Iterator[Finding]:
    if origins and all(modules.lacks_name(origin, name) for origin in origins):
        what = f"{name} of {modules.paths[min(origins)]}"
        if any(modules.had(origin, name) for origin in origins):
            yield _removed(path, line, what)
        else:
            yield Finding(SERIOUS, path, line, f"there is no {what}: the import fails", "import")


def _removed(path: str, line: int, what: str) -> Finding:
    what = f"{what} was removed or renamed, and is still used here"
    return Finding(SERIOUS, path, line, what, "removed", anywhere=True)


_DECLARED = re.compile(
    r"^\s*export\s+(?:declare\s+)?(?:default\s+)?(?:abstract\s+)?(?:async\s+)?"
    r"(?:function\s*\*?|class|const|let|var|interface|type|enum|namespace)\s+([\w$]+)",
    re.MULTILINE,
)
_LISTED = re.compile(r"export\s+(?:type\s+)?\{([^}]*)\}")
_OPEN = re.compile(r"export\s+\*(?!\s+as\b)|module\.exports|^\s*export\s+(?:const|let|var)\s*[{\[]", re.MULTILINE)
"""Exports whose names can't be seen."""
_IMPORT = re.compile(r"(?:import|export)\s+(?:type\s+)?(?:[\w$]+\s*,\s*)?\{([^}]*)\}\s*from\s*[\"'](\.[^\"']*)[\"']")
_IMPORTED_FILE = re.compile(r"(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)[\"'](\.{1,2}/[^\"'?#!]*)[\"']")


def missing_files(change: Change, git: Git) -> Iterator[Finding]:
    """Relative imports in changed lines of files that are not there and that no build makes."""
    for path in change.readable():
        file = change.file(path)
        if not file or not kinds.is_script(path) or kinds.is_foreign(path, change.head_tree):
            continue
        for number, line in enumerate(content(change.head_tree, path).splitlines(), 1):
            if number not in file.lines or line.lstrip().startswith(("//", "*", "/*")):
                continue
            for name in _IMPORTED_FILE.findall(line):
                target = os.path.normpath(os.path.join(os.path.dirname(path), name))
                is_there = target.startswith("..") or _is_there(change.repo, target)
                if not is_there and not git.line("check-ignore", "--", target):
                    yield Finding(SERIOUS, path, number, f"there is no {target}: the import fails", "import")


def _is_there(repo: str, target: str) -> bool:
    """Whether the file or directory exists, with another ending or without one, too: a build may make it."""
    directory, name = os.path.split(os.path.join(repo, target))
    stem, end = os.path.splitext(name)
    stems = {name, stem} if end in kinds.SCRIPT else {name}
    try:
        entries = os.listdir(directory)
    except OSError:
        return False
    return any(entry == name or entry.startswith(tuple(f"{one}." for one in stems)) for entry in entries)


def removed_exports(change: Change, git: Git) -> Iterator[Finding]:
    """Imports of names that a changed module exported before and does not export now."""
    removed = {_stem(file.old): names for file in change.files if (names := _lost_exports(change, git, file))}
    for path in git.listed(*(f"*{end}" for end in kinds.SCRIPT)) if removed else ():
        text = content(change.repo, path)
        for match in _IMPORT.finditer(text):
            origin = _stem(os.path.normpath(os.path.join(os.path.dirname(path), match[2])))
            for name in _names_in_braces(match[1], 0) & removed.get(origin, set()):
                line = text.count("\n", 0, match.start()) + 1
                what = f"{name} is no longer exported by {match[2]}, and is still imported here"
                yield Finding(SERIOUS, path, line, what, "removed", anywhere=True)


def _stem(path: str) -> str:
    """The name by which scripts import a file: without its ending and `index`."""
    stem, end = os.path.splitext(path)
    return (stem if end in kinds.SCRIPT else path).removesuffix("/index")


def _lost_exports(change: Change, git: Git, file: ChangedFile) -> set[str]:
    if not kinds.is_script(file.old) or file.status not in "MDR":
        return set()
    before = git.line("cat-file", "blob", f"{change.base}:{file.old}")
    is_gone = file.status == "D" or _stem(file.old) != _stem(file.path)
    after = "" if is_gone else content(change.head_tree, file.path)
    return set() if _OPEN.search(after) else _exported(before) - _exported(after)


def _exported(text: str) -> set[str]:
    listed = (_names_in_braces(names, -1) for names in _LISTED.findall(text))
    return set(_DECLARED.findall(text)).union(*listed)


def _names_in_braces(text: str, which: int) -> set[str]:
    """The names in braces; of `a as b` the first or the last."""
    parts = (part.strip().removeprefix("type ").split(" as ") for part in text.split(","))
    return {part[which].strip() for part in parts if part[which].strip()}
