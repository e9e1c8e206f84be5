"""Holds text to its form: white space, final newlines, opening comments, nothing left to do; and
messages to the one place that may write to standard error."""
import pathlib
import re

import tree

# Data is left alone; files without a suffix are scripts and settings.
TEXT = tree.CPP | {"", ".py", ".build", ".txt", ".md", ".toml", ".yaml", ".yml"}
FOREIGN = {"LICENSE"}

# Letters in brackets keep these patterns from finding themselves.
UNFINISHED = re.compile(r"\b(TO[D]O|FIX[M]E|X[X]X|HA[C]K)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(work|home|root)/")
TEMPORARY_PATH = re.compile(r"(?<![\w.~-])/[t]mp/")

# Messages go through frontend/io/message.h, where one that cannot be written does no harm. What is
# named in a comment or asked of the terminal is no message.
MESSAGE = re.compile(r"^[^\"/]*?(\bstderr\b|\bstd::(cerr|clog)\b|\bperror\(|"
                     r"\bd?printf\(|\b(write|writev)\((2|STDERR_FILENO)\b)")
MESSENGER = "frontend/io/message.cpp"
PROGRAM = ("src/", "backends/", "frontend/", "models/", "studies/", "bench/", "program/")

# How long tests run is asked for in tests/support/thoroughness.h; the program takes options.
SWITCH = re.compile(r"KEEL_T[H]OROUGH")

COMMENT = {".py": ("#", '"""'), "": ("#",)} | dict.fromkeys(
    tree.CPP, ("//", "/*"))


def line_problems(path, line):
    if line != line.rstrip():
        yield "white space at the end"
    if "\t" in line:
        yield "a tab"
    if unfinished := UNFINISHED.search(line):
        yield f"{unfinished[0]} left"
    if MACHINE_PATH.search(line) or \
            (TEMPORARY_PATH.search(line) and not path.startswith("tests/")):
        yield "a path of one machine"
    if path.startswith(PROGRAM) and tree.suffix(path) in tree.CPP and path != MESSENGER and \
            MESSAGE.search(line):
        yield "a message past frontend/io/message.h"
    if path.startswith(PROGRAM) and SWITCH.search(line):
        yield "a switch of the tests in the program"


def opens_with_comment(root, path, text):
    """True if the file says on top what it holds, as its kind should."""
    suffix = tree.suffix(path)
    header = root / pathlib.PurePath(path).with_suffix(".h")
    if not text or suffix not in COMMENT or (suffix == ".cpp" and header.is_file()):
        return True
    if suffix == "" and not text[0].startswith("#!"):
        return True
    first = text[1] if text[0].startswith("#!") and len(text) > 1 else text[0]
    return first.startswith(COMMENT[suffix])


def check_file(root, path):
    try:
        text = (root / path).read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        yield f"{path}:1: not UTF-8"
        return
    lines = text.split("\n")
    if lines.pop() != "":
        yield f"{path}:{len(lines) + 1}: no newline at the end of the file"
    if not opens_with_comment(root, path, lines):
        yield f"{path}:1: no opening comment that says what the file holds"
    for number, line in enumerate(lines, 1):
        for problem in line_problems(path, line):
            yield f"{path}:{number}: {problem}"


def check(root):
    for path in tree.files(root):
        if tree.suffix(path) in TEXT and path not in FOREIGN:
            yield from check_file(root, path)


if __name__ == "__main__":
    tree.main(check)
