#!/usr/bin/env python3
"""Makes the reference of the web pages from the sources: the public C++ headers by Doxygen, the
Python modules by pdoc, as far as these programs and what the modules import are there.

usage: tools/reference.py ROOT FOLDER

Writes FOLDER/cpp/, FOLDER/python/ and FOLDER/index.md, which says what is missing. The Python of
KEEL_PYTHON (default python3) runs pdoc. The norm library is that of KEEL_NORM_LIBRARY, or of
build/."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import public_headers  # noqa: E402

MODULES = {"keel_norms.torch": "modules for PyTorch",
           "keel_norms.torch.functional": "functions for PyTorch",
           "keel_norms.numpy": "functions for NumPy", "keel_norms.jax": "functions for JAX",
           "keel_judge": "the judge of PyTorch programs"}
SETTINGS = """PROJECT_NAME = keel
PROJECT_BRIEF = "the public headers"
INPUT = {headers}
STRIP_FROM_PATH = {headers}
STRIP_FROM_INC_PATH = {headers}
OUTPUT_DIRECTORY = {folder}
HTML_OUTPUT = cpp
FILE_PATTERNS = *.h
RECURSIVE = YES
EXTRACT_ALL = YES
JAVADOC_AUTOBRIEF = YES
BUILTIN_STL_SUPPORT = YES
GENERATE_LATEX = NO
HAVE_DOT = NO
QUIET = YES
WARNINGS = NO
"""
BLOCK = re.compile(r"^( *)//(?!/)(.*)$")
TRAILING = re.compile(r"^(.*[;,{})] +)// (.*)$")
SPECIAL = re.compile(r"([\\<>@#%&*_])")


def escaped(text):
    """Prose as Doxygen has to read it; what stands in backticks is code already."""
    parts = text.split("`")
    return "`".join(part if i % 2 else SPECIAL.sub(r"\\\1", part) for i, part in enumerate(parts))


def is_formula(text):
    """Lines that are set as they stand: indented ones, and those with columns."""
    return text.startswith("  ") or "   " in text.strip()


def block(indent, lines):
    """A comment in keel's form as one in Doxygen's."""
    code = False
    for text in lines:
        formula = is_formula(text) or (code and not text.strip())
        if formula != code:
            yield f"{indent}///"
        code = formula
        yield f"{indent}///" + ("     " + text if code else escaped(text))


def documented(lines):
    """Lines of a header with comments that Doxygen reads; the first comment is the file's."""
    comment, indent, first = [], "", True
    for line in [*lines, ""]:
        found = BLOCK.match(line)
        if found:
            indent = found[1]
            comment.append(found[2])
            continue
        if comment:
            yield from ["/// \\file", "///"] if first else []
            yield from block(indent, comment)
            yield from [""] if first else []
            comment, first = [], False
        trailing = TRAILING.match(line)
        yield f"{trailing[1]}///< {escaped(trailing[2])}" if trailing else line


def cpp(root, folder):
    """None, or why there is no reference of the headers."""
    if shutil.which("doxygen") is None:
        return "Doxygen is not installed"
    headers = folder / "headers"
    public_headers.install(root, headers)
    for path in headers.rglob("*.h"):
        path.write_text("\n".join(documented(path.read_text(encoding="utf-8").split("\n"))),
                        encoding="utf-8")
    settings = SETTINGS.format(headers=headers.resolve(), folder=folder.resolve())
    done = subprocess.run(["doxygen", "-"], input=settings, text=True, capture_output=True,
                          check=False)
    shutil.rmtree(headers)
    return None if done.returncode == 0 else f"Doxygen ended with {done.returncode}"


def python(root, folder):
    """The modules that are documented, and why the others are not."""
    program = os.environ.get("KEEL_PYTHON", "python3")
    paths = [str(root / "plugin/python"), str(root / "plugin/judge"),
             os.environ.get("PYTHONPATH", "")]
    library = os.environ.get("KEEL_NORM_LIBRARY", str(root / "build/plugin/c/libkeel_norm.so"))
    env = os.environ | {"PYTHONPATH": ":".join(paths), "KEEL_NORM_LIBRARY": library}
    missing = {}
    for name in ("pdoc", *MODULES):
        done = subprocess.run([program, "-c", f"import {name}"], env=env, text=True,
                              capture_output=True, check=False)
        if done.returncode != 0:
            missing[name] = (done.stderr.strip().split("\n") or ["no reason"])[-1]
    there = [] if "pdoc" in missing else [name for name in MODULES if name not in missing]
    if there:
        done = subprocess.run([program, "-m", "pdoc", "--docformat", "restructuredtext", "-o",
                               str(folder / "python"), *there], env=env, text=True,
                              capture_output=True, check=False)
        if done.returncode != 0:
            missing["pdoc"], there = done.stderr.strip().split("\n")[-1], []
    return there, missing


def index(no_cpp, there, missing):
    yield "# Reference, made from the sources\n"
    yield ("Signatures of everything that programs may use. [The library](../library.md) and\n"
           "[the norms](../norm-library.md) say how to use it.\n")
    yield f"- The public C++ headers: {no_cpp}, so they are not here.\n" if no_cpp else \
        "- [The public C++ headers](cpp/index.html), and what they need below `keel/inside`\n"
    for name in there:
        yield f"- [`{name}`](python/{name.replace('.', '/')}.html): {MODULES[name]}\n"
    for name, reason in missing.items():
        yield f"- `{name}` is not here: {reason}\n"


def main():
    root, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    no_cpp = cpp(root, folder)
    there, missing = python(root, folder)
    (folder / "index.md").write_text("\n".join(index(no_cpp, there, missing)), encoding="utf-8")
    for name, reason in {**({"C++": no_cpp} if no_cpp else {}), **missing}.items():
        print(f"[docs] no reference of {name}: {reason}", file=sys.stderr)


if __name__ == "__main__":
    main()
