"""Finds imports and uses of modules and names that the repository does not have, or that the change removed. It looks
at Python and at scripts, which are files in JavaScript or TypeScript.
"""

from __future__ import annotations

import ast
import os
import re
import warnings

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import Change, Git, content, lines_of
from teams_cli.extensions.review.findings import SERIOUS, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_GENERATED = ("_pb2", "_pb2_grpc", "version")
"""Endings of the names of modules that a build generates."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def parse(text: str) -> ast.Module | None:
    """Return the syntax tree of a Python source, or None if it can't be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def import_names(path: str) -> set[str]:
    """Return the names under which other modules may import the module at *path*. There are several if *path* has a
    directory such as `src`, because imports may start there or at the top of the repository.
    """
    parts = path.rpartition(".")[0].removesuffix("/__init__").split("/")
    tops = [0] + [index + 1 for index, part in enumerate(parts) if part in ("src", "lib", "python")]
    return {".".join(parts[top:]) for top in tops if parts[top:]}


def top_names(module: ast.Module) -> set[str] | None:
    """Return the names that a module defines at its top. Return None if they can't all be known, because of `import *`,
    `__getattr__`, `globals()` or `exec`.
    """
    defined: set[str] = set()
    to_visit: list[ast.AST] = list(module.body)
    while to_visit:
        node = to_visit.pop()
        if isinstance(node, _DEFINITIONS):
            defined.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            defined.update((name.asname or name.name).partition(".")[0] for name in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif isinstance(node, ast.Name) and node.id == "exec":
            return None
        else:
            to_visit += ast.iter_child_nodes(node)
    uses_globals = any(isinstance(node, ast.Name) and node.id == "globals" for node in ast.walk(module))
    return None if uses_globals or defined & {"*", "__getattr__"} else defined


def imported_modules(path: str, node: ast.ImportFrom) -> set[str]:
    """Return the possible dotted names of the module from which *node* imports. For a relative import there may be
    several, because *path*, the file with the import, may be importable under several names.
    """
    if not node.level:
        return {node.module or ""}
    modules = set()
    for importer in import_names(path):
        package = importer.split(".") if path.endswith("__init__.py") else importer.split(".")[:-1]
        package = package[: len(package) - node.level + 1]  # each dot after the first goes up one package
        modules.add(".".join([*package, node.module] if node.module else package))
    return modules


class Modules:
    """The Python modules of the repository, by the names under which they are imported. A module is parsed only when it
    is needed.
    """

    def __init__(self, change: Change, git: Git, paths: list[str]) -> None:
        self.repo = change.repo
        self.paths = {name: path for path in paths for name in import_names(path)}
        """The path of each module, by its import names."""
        self._top_names: dict[str, set[str] | None] = {}
        """The result of `top_names` for each module that was needed, by its path; None if it can't be parsed."""
        self.removed = set[str]()
        """The import names of the modules that the change removed or renamed."""
        self.old_names: dict[str, set[str]] = {}
        """For each changed module, by its import name: the names that the module defined before the change."""
        for file in change.files:
            if kinds.is_python(file.old) and file.status in "MDR":  # modified, deleted or renamed
                old_tree = parse(git.line("cat-file", "blob", f"{change.base}:{file.old}"))
                for name in import_names(file.old):
                    if name not in self.paths:
                        self.removed.add(name)
                    elif old_tree:
                        self.old_names[name] = top_names(old_tree) or set()

    def lacks(self, module: str) -> bool:
        """Return whether *module* belongs to a package of the repository, but is not there. Return False if the package
        is not in the repository, because it may be installed.
        """
        parent, _, name = module.rpartition(".")
        if module in self.paths or name.startswith("_") or name.endswith(_GENERATED):  # a build may make `_name`, too
            return False
        package = self.paths.get(parent, "")
        if not package.endswith("__init__.py"):  # the repository has no such package
            return False
        text = content(self.repo, package)
        makes_modules = "__path__" in text or "sys.modules" in text
        return not makes_modules and not self._has_file(package, name)

    def lacks_name(self, module: str, name: str) -> bool:
        """Return whether *module* is in the repository, and does not define *name*. Return False if this can't be
        known.
        """
        is_submodule = f"{module}.{name}" in self.paths
        if module not in self.paths or is_submodule or name == "*" or name.startswith("__"):
            return False
        path = self.paths[module]
        if path not in self._top_names:
            tree = parse(content(self.repo, path))
            self._top_names[path] = top_names(tree) if tree else None
        defined = self._top_names[path]
        return defined is not None and name not in defined and not self._has_file(path, name)

    def _has_file(self, path: str, name: str) -> bool:
        """Return whether the directory of the file *path* has an entry called *name*, with or without an ending."""
        entries = os.listdir(os.path.dirname(os.path.join(self.repo, path)))
        return any(entry == name or entry.startswith(f"{name}.") for entry in entries)


def python_imports(change: Change, git: Git) -> Iterator[Finding]:
    """Yield a finding for each import, in a changed line, of a name that does not exist. Also yield a finding for each
    use, in any line, of a name that the change removed.
    """
    paths = [path for path in git.listed("*.py", "*.pyi") if os.path.isfile(os.path.join(change.repo, path))]
    modules = Modules(change, git, paths)
    last_parts = {name.rpartition(".")[2] for name in (*modules.removed, *modules.old_names)}
    for path in paths:
        file, text = change.file(path), content(change.repo, path)
        names_changed_module = any(part in text for part in last_parts)  # quicker than to parse all files
        if not file and not names_changed_module:
            continue
        if kinds.is_foreign(path, change.repo) or (tree := parse(text)) is None:
            continue
        for finding in _missing(path, tree, modules):
            if finding.rule == "removed" or (file and finding.line in file.lines):
                yield finding


def _missing(path: str, tree: ast.Module, modules: Modules) -> Iterator[Finding]:
    """Yield a finding for each import of a missing module or name, and for each use of a name that the change removed
    from a module. Code inside `try` may fail on purpose, so it is left out.
    """
    in_try: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            for statement in node.body:
                in_try.update(ast.walk(statement))
    nodes = [node for node in ast.walk(tree) if node not in in_try]
    aliases: dict[str, str] = {}  # the imported module for each name that stands for one in this file
    for node in nodes:
        if isinstance(node, ast.Import):
            for name in node.names:
                aliases[name.asname or name.name] = name.name
                yield from _missing_module(path, node.lineno, {name.name}, modules)
        elif isinstance(node, ast.ImportFrom):
            yield from _missing_in_import_from(path, node, aliases, modules)
    for node in nodes:  # only now all aliases are known
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            is_dotted_name = isinstance(node.value, ast.Name | ast.Attribute)
            origin = aliases.get(ast.unparse(node.value), "") if is_dotted_name else ""
            if node.attr in modules.old_names.get(origin, ()) and modules.lacks_name(origin, node.attr):
                yield _removed(path, node.lineno, f"{node.attr} of {modules.paths[origin]}")


def _missing_in_import_from(
    path: str, node: ast.ImportFrom, aliases: dict[str, str], modules: Modules
) -> Iterator[Finding]:
    """Yield a finding for each missing module or name. Add each imported module of the repository to *aliases*."""
    origins = imported_modules(path, node)
    yield from _missing_module(path, node.lineno, origins, modules)
    for name in node.names:  # each is a submodule, or a name that the module defines
        submodules = {f"{origin}.{name.name}".lstrip(".") for origin in origins}
        for module in submodules & modules.paths.keys():
            aliases[name.asname or name.name] = module
        if submodules & modules.removed:
            yield _removed(path, node.lineno, f"the module {min(submodules)}")
            continue
        known_origins = origins & modules.paths.keys()  # a finding only if none of them defines the name
        if known_origins and all(modules.lacks_name(origin, name.name) for origin in known_origins):
            subject = f"{name.name} of {modules.paths[min(known_origins)]}"
            if any(name.name in modules.old_names.get(origin, ()) for origin in known_origins):
                yield _removed(path, node.lineno, subject)
            else:
                message = f"there is no {subject}: the import fails"
                yield Finding(SERIOUS, path, node.lineno, message, "import")


def _missing_module(path: str, line: int, names: set[str], modules: Modules) -> Iterator[Finding]:
    """Yield a finding if the module that *line* imports does not exist under any of its possible *names*."""
    if names & modules.removed:
        yield _removed(path, line, f"the module {min(names)}")
    elif all(modules.lacks(name) for name in names):
        yield Finding(SERIOUS, path, line, f"there is no {min(names)}: the import fails", "import")


def _removed(path: str, line: int, subject: str) -> Finding:
    message = f"{subject} was removed or renamed, and is still used here"
    return Finding(SERIOUS, path, line, message, "removed", anywhere=True)


_DECLARED_EXPORT = re.compile(
    r"^\s*export\s+(?:declare\s+)?(?:default\s+)?(?:abstract\s+)?(?:async\s+)?"
    r"(?:function\s*\*?|class|const|let|var|interface|type|enum|namespace)\s+([\w$]+)",
    re.MULTILINE,
)
_LISTED_EXPORTS = re.compile(r"export\s+(?:type\s+)?\{([^}]*)\}")
_UNKNOWN_EXPORTS = re.compile(
    r"export\s+\*(?!\s+as\b)|module\.exports|^\s*export\s+(?:const|let|var)\s*[{\[]", re.MULTILINE
)
"""Matches exports of a kind whose names can't be known."""
_IMPORT = re.compile(r"(?:import|export)\s+(?:type\s+)?(?:[\w$]+\s*,\s*)?\{([^}]*)\}\s*from\s*[\"'](\.[^\"']*)[\"']")
_IMPORTED_FILE = re.compile(r"(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)[\"'](\.{1,2}/[^\"'?#!]*)[\"']")


def missing_files(change: Change, git: Git) -> Iterator[Finding]:
    """Yield a finding for each changed line of a script that imports a file which does not exist. Only imports by a
    relative path are checked. Files that git ignores are skipped, because a build may make them.
    """
    for path in change.readable():
        file = change.file(path)
        if not file or not kinds.is_script(path) or kinds.is_foreign(path, change.head_tree):
            continue
        for number, line in enumerate(lines_of(content(change.head_tree, path)), 1):
            if number not in file.lines or line.lstrip().startswith(("//", "*", "/*")):
                continue
            for name in _IMPORTED_FILE.findall(line):
                target = os.path.normpath(os.path.join(os.path.dirname(path), name))
                if target.startswith("..") or _exists(change.repo, target):  # nothing is known outside the repository
                    continue
                is_ignored = bool(git.line("check-ignore", "--", target))  # then a build may make it
                if not is_ignored:
                    yield Finding(SERIOUS, path, number, f"there is no {target}: the import fails", "import")


def _exists(repo: str, target: str) -> bool:
    """Return whether *target* exists, or a file with another ending from which a build may make it."""
    directory, name = os.path.split(os.path.join(repo, target))
    stem, ending = os.path.splitext(name)
    beginnings = (f"{name}.", f"{stem}.") if ending in kinds.SCRIPT else (f"{name}.",)
    try:
        entries = os.listdir(directory)
    except OSError:
        return False
    return any(entry == name or entry.startswith(beginnings) for entry in entries)


def removed_exports(change: Change, git: Git) -> Iterator[Finding]:
    """Yield a finding for each import, in a script, of a name that a changed module exported before and does not export
    any more.
    """
    removed: dict[str, set[str]] = {}  # the removed names by the stem of their module
    for file in change.files:
        if kinds.is_script(file.old) and file.status in "MDR":  # modified, deleted or renamed
            is_removed = file.status == "D" or _stem(file.old) != _stem(file.path)
            text_now = "" if is_removed else content(change.head_tree, file.path)
            if not _UNKNOWN_EXPORTS.search(text_now):
                text_before = git.line("cat-file", "blob", f"{change.base}:{file.old}")
                removed[_stem(file.old)] = _exported_names(text_before) - _exported_names(text_now)
    if not any(removed.values()):
        return
    for path in git.listed(*(f"*{end}" for end in kinds.SCRIPT)):
        text = content(change.repo, path)
        for match in _IMPORT.finditer(text):
            origin = _stem(os.path.normpath(os.path.join(os.path.dirname(path), match[2])))
            for name in _names_in_braces(match[1], is_export=False) & removed.get(origin, set()):
                line = text.count("\n", 0, match.start()) + 1
                message = f"{name} is no longer exported by {match[2]}, and is still imported here"
                yield Finding(SERIOUS, path, line, message, "removed", anywhere=True)


def _stem(path: str) -> str:
    """Return the name by which scripts import a file: its path without the ending and a final `/index`."""
    stem, end = os.path.splitext(path)
    return (stem if end in kinds.SCRIPT else path).removesuffix("/index")


def _exported_names(text: str) -> set[str]:
    listed = (_names_in_braces(names, is_export=True) for names in _LISTED_EXPORTS.findall(text))
    return set(_DECLARED_EXPORT.findall(text)).union(*listed)


def _names_in_braces(text: str, is_export: bool) -> set[str]:
    """Return the exported names in the braces: of `a as b`, this is `a` in an import, and `b` in an export."""
    names = set()
    for part in text.split(","):
        inner, _, outer = part.strip().removeprefix("type ").partition(" as ")
        name = outer if outer and is_export else inner
        names.add(name.strip())
    return names - {""}
