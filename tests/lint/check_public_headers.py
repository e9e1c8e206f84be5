"""Holds the public headers to their promise: few, and free of every library but C++'s own and fmt,
whatever they include."""
import re
import sys

import tree

sys.path.insert(0, str(tree.pathlib.Path(__file__).resolve().parents[2] / "tools"))
sys.dont_write_bytecode = True
import public_headers  # noqa: E402

MOST = 10  # public headers; docs/library.md names each
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ALLOWED = re.compile(r"[a-z_0-9]+$|fmt/")
# Files that a program that uses keel has no business with.
CLOSED = re.compile(r"backends/(?!backends\.h$)|program/|bench/|studies/|tests/|.*/pch/|.*-inl\.h$")


def wrong(root, kind, name):
    """Why a public header may not include this, or None."""
    if kind == "<":
        return None if ALLOWED.match(name) else f"a public header includes <{name}>"
    if CLOSED.match(name):
        return f"a public header includes {name}"
    return None if (root / name).is_file() else f"{name} is not there"


def check(root):
    if not (root / public_headers.PUBLIC).is_dir():
        return
    public = [path for path in tree.files(root) if path.startswith(public_headers.PUBLIC)
              and path.endswith(".h")]
    if len(public) > MOST:
        yield f"{public[MOST]}:1: expected at most {MOST} public headers, got {len(public)}"
    for header in public_headers.closure(root):
        if CLOSED.match(header) or not (root / header).is_file():
            continue
        for number, line in enumerate(tree.lines(root, header), 1):
            include = INCLUDE.match(line)
            problem = include and wrong(root, include[1], include[2])
            if problem:
                yield f"{header}:{number}: {problem}"


if __name__ == "__main__":
    tree.main(check)
