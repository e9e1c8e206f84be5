#!/usr/bin/env python3
"""Prints the test files that name the backend under test, themselves or by what they include, and
all tests of kernels: those that say something new when they run with another backend or on another
instruction set. With commas between, as doctest takes file names."""
import functools
import pathlib
import re
import sys

FOLDERS = ("ops", "backends", "passes", "runtime", "frontend/nn", "frontend/optim", "models/mnist_")
NAMES_IT = re.compile(r"\b(default_backend|tested_backends)\(\)")
INCLUDE = re.compile(r'#include "(tests/[^"]+\.h)"')


@functools.cache
def text(path):
    return path.read_text() if path.exists() else ""


def included(root, path, seen):
    """The file, and what it includes from tests/ with the source beside each header."""
    if path in seen:
        return seen
    seen.add(path)
    if path.suffix == ".h":
        included(root, path.with_suffix(".cpp"), seen)
    for header in INCLUDE.findall(text(path)):
        included(root, root / header, seen)
    return seen


def names_backend(root, path):
    helper = root / "tests/support/tested_backends.h"
    return any(NAMES_IT.search(text(file)) for file in included(root, path, set()) - {helper})


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = []
    for path in sorted((root / "tests").rglob("*_test.cpp")):
        name = str(path.relative_to(root / "tests"))
        if not name.startswith(FOLDERS):
            continue
        if name.startswith("backends/") or names_backend(root, path):
            found.append(f"*tests/{name}")
    print(",".join(found))


if __name__ == "__main__":
    main()
