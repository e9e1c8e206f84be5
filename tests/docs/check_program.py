#!/usr/bin/env python3
"""Holds docs/cli.md and the table of docs/norms.md to what the program says of itself.

usage: tests/docs/check_program.py ROOT BUILD [--write]

BUILD is a build folder with keel. --write puts the table into docs/norms.md."""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lint"))
sys.dont_write_bytecode = True
import check_docs  # noqa: E402

NORMS = "docs/norms.md"
BEGIN, END = "<!-- the program's table begins -->", "<!-- the program's table ends -->"
SUBCOMMAND = re.compile(r"^  ([a-z0-9]+) {2,}", re.MULTILINE)
OPTION = re.compile(r"^  (?:-\w,)?(--[a-z0-9-]+)", re.MULTILINE)


def said(keel, *words):
    return subprocess.run([keel, *words], capture_output=True, text=True, check=True).stdout


def subcommands(keel, words=()):
    """Every subcommand that takes options, with its help."""
    text = said(keel, *words, "--help")
    _, _, names = text.partition("\nSubcommands:\n")
    found = SUBCOMMAND.findall(names.partition("\n\n")[0])
    if not found:
        yield " ".join(words), text
    for name in found:
        yield from subcommands(keel, (*words, name))


def check_options(root, keel):
    listed = check_docs.read_options(check_docs.Page(root, check_docs.CLI))
    there = {name: set(OPTION.findall(text)) | {"-h"} for name, text in subcommands(keel)}
    for name in sorted(there.keys() - listed.keys()):
        yield f"{check_docs.CLI}: no heading for keel {name}"
    for name, options in sorted(there.items()):
        for option in sorted(options ^ listed.get(name, options)):
            who = "the program" if option in options else "this page"
            yield f"{check_docs.CLI}: keel {name}: only {who} has {option}"


def norms_table(keel):
    names = ("norm", "formula", "parameters", "state", "gradient", "defaults", "source")
    rows = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for norm in json.loads(said(keel, "list", "norms", "--json")):
        cells = [f"`{norm['norm']}`", *(norm[name].replace("|", "\\|") for name in names[1:])]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def check_norms(root, keel, write):
    page = (root / NORMS).read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN + "\n")
    _, end, after = rest.partition(END)
    if not begin or not end:
        yield f"{NORMS}: expected a table between {BEGIN} and {END}"
        return
    wanted = before + begin + norms_table(keel) + end + after
    if wanted != page and write:
        (root / NORMS).write_text(wanted, encoding="utf-8")
    elif wanted != page:
        yield f"{NORMS}: not what the program says; tests/docs/check_program.py . build --write"


def main():
    root, keel = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]) / "keel"
    problems = [*check_options(root, keel), *check_norms(root, keel, "--write" in sys.argv)]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
