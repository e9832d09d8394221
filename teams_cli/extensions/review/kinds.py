"""Says what a file is, from its path and sometimes from its beginning: its language; and whether it is a test, test
data, or foreign.
"""

from __future__ import annotations

import os
import re

PYTHON = (".py", ".pyw", ".pyi")
SCRIPT = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
TYPED = (".ts", ".tsx", ".mts", ".cts")
SHELL = (".sh", ".bash", ".dash", ".ksh")
CODE = (
    *(*PYTHON, *SCRIPT, *SHELL, ".go", ".rs", ".java", ".kt", ".rb", ".php", ".c", ".h", ".cc", ".cpp", ".hpp"),
    *(".cs", ".swift", ".scala", ".lua", ".pl", ".sql", ".vue", ".svelte"),
)
_TEST = re.compile(
    r"(^|/)(tests?|specs?|testing|__tests__|e2e)/|(^|/)test_[^/]*$|[_.-](test|spec)s?\.[^/]*$|(^|/)conftest\.py$"
)
_DATA = re.compile(
    r"(^|/)(fixtures?|testdata|test[-_]data|testfiles|__snapshots__|__fixtures__|golden|corpus|samples?)(/|$)"
    r"|(^|/)tests?/(.*/)?(data|files|resources|certs|inputs?|cases)/"
)
_FOREIGN = re.compile(
    r"(^|/)(node_modules|vendor|vendored|third[-_]party|site-packages|dist|\.yarn|bower_components)/"
    r"|\.min\.(js|css)$|(^|/)(package-lock|npm-shrinkwrap)\.json$|\.lock$|(^|/)(pnpm-lock\.yaml|go\.sum)$|\.(map|snap)$"
)
_GENERATED = re.compile(r"@generated\b|(?i:do not edit)\b.{0,60}$|(?i:automatically generated)", re.MULTILINE)
_WITH_COMMANDS = re.compile(
    r"(^|/)(GNUm|[Mm])akefile$|\.mk$|(^|/)\.gitlab-ci\.ya?ml$|(^|/)\.circleci/"
    r"|(^|/)\.github/workflows/[^/]+\.ya?ml$|(^|/)action\.ya?ml$"
)
_INTERPRETER = re.compile(r"#!\s*(?:\S*/)?(?:env\s+(?:-S\s+)?)?(\w+)")


def is_python(path: str) -> bool:
    """Return whether the file is Python. False for a template, whose path contains `{{`."""
    return path.endswith(PYTHON) and "{{" not in path


def is_script(path: str) -> bool:
    """Return whether the file is JavaScript or TypeScript. False for a template, whose path contains `{{`."""
    return path.endswith(SCRIPT) and "{{" not in path


def is_code(path: str) -> bool:
    """Return whether the file is source code of any language. The workflow `council` uses this function, too."""
    return path.endswith(CODE)


def is_shell(path: str, tree: str) -> bool:
    """Return whether the file is a shell script, as its name or its first line says."""
    if path.endswith(SHELL):
        return True
    return "." not in os.path.basename(path) and interpreter(path, tree) in ("sh", "bash", "dash", "ksh")


def has_commands(path: str) -> bool:
    """Return whether the file is not a shell script, but has lines that a shell runs. Such files are Dockerfiles,
    makefiles, and files for continuous integration.
    """
    return is_dockerfile(path) or bool(_WITH_COMMANDS.search(path))


def is_dockerfile(path: str) -> bool:
    """Return whether the file describes an image that Docker or Podman builds."""
    name = os.path.basename(path)
    return name.partition(".")[0] in ("Dockerfile", "Containerfile") or name.endswith(".Dockerfile")


def interpreter(path: str, tree: str) -> str:
    """Return the program that the first line of the file names after `#!`; "" if there is none."""
    match = _INTERPRETER.match(_beginning(path, tree).partition("\n")[0])
    return match[1] if match else ""


def is_test(path: str) -> bool:
    """Return whether the file is a test, or a helper of tests."""
    return bool(_TEST.search(path))


def is_test_data(path: str) -> bool:
    """Return whether the file is data that tests read, which may have defects on purpose."""
    return bool(_DATA.search(path)) or (is_test(path) and not path.endswith(CODE))


def is_foreign(path: str, tree: str) -> bool:
    """Return whether the file is not maintained in this repository, because it comes from another project or is
    generated.
    """
    return bool(_FOREIGN.search(path) or _GENERATED.search(_beginning(path, tree)))


def _beginning(path: str, tree: str) -> str:
    try:
        with open(os.path.join(tree, path), encoding="utf-8", errors="replace") as file:
            return file.read(600)
    except OSError:
        return ""
