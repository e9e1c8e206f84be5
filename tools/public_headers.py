#!/usr/bin/env python3
"""Installs the public headers: include/keel/*.h, and what they include, below FOLDER/keel.

usage: tools/public_headers.py ROOT FOLDER

The headers of the tree that they need lie in keel/inside, and every include of them is rewritten,
so that a program's own src/ or frontend/ is never taken for keel's."""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^(\s*#\s*include\s*)"([^"]+)"', re.MULTILINE)
PUBLIC = "include/keel/"


def includes(root, header):
    path = root / header
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return [name for _, name in INCLUDE.findall(text)]


def closure(root):
    """The public headers and all that they include, as sorted paths relative to root."""
    waiting = [str(path.relative_to(root)) for path in sorted((root / PUBLIC).glob("*.h"))]
    seen = set(waiting)
    while waiting:
        new = set(includes(root, waiting.pop())) - seen
        seen |= new
        waiting += new
    return sorted(seen)


def place(header):
    """Where a header of the tree lies below the include folder."""
    return header.replace(PUBLIC, "keel/") if header.startswith(PUBLIC) else f"keel/inside/{header}"


def install(root, folder):
    for header in closure(root):
        text = (root / header).read_text(encoding="utf-8")
        target = folder / place(header)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(INCLUDE.sub(lambda m: f'{m[1]}"{place(m[2])}"', text), encoding="utf-8")


if __name__ == "__main__":
    install(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
