"""Finds file-local names that clash where a folder's files are compiled as one (meson.build,
`together`): a build that compiles every file alone does not notice them."""
import collections
import pathlib
import re
import subprocess
import sys

import check_sizes
import tree

CTAGS = ["-x", "--_xformat=%F\t%n\t%N\t%K\t%s\t%S", "--kinds-C++=fvscgd", "-L", "-",
         # A test case is a function too.
         "-D", "TEST_CASE(name)=void TEST_CASE()",
         "-D", "TEST_CASE_FIXTURE(fixture,name)=void TEST_CASE()"]
ALONE = re.compile(r"src/ops/|backends/|tests/ptx/|plugin/|examples/|include/")
LISTED = re.compile(r"'(\w+)': files\((.*?)\)", re.S)  # in a table of libraries
UNNAMED = re.compile(r"(.*?)(?:::)?__anon\w+")


def groups(root, paths):
    """The group that a file is compiled with: the library of a table, otherwise its folder."""
    group = {path: str(pathlib.PurePath(path).parent) for path in paths}
    for meson in [path for path in tree.files(root) if path.endswith("meson.build")]:
        folder = pathlib.PurePath(meson).parent
        for name, listed in LISTED.findall((root / meson).read_text(encoding="utf-8")):
            group |= {str(folder / file): f"{folder}, {name}"
                      for file in re.findall(r"'([^']+)'", listed)}
    if (script := root / "tests/sources.py").exists():
        listed = subprocess.check_output([sys.executable, script], text=True)
        for line in listed.splitlines():
            name, file = line.split()
            group[f"tests/{file}"] = f"tests, {name}"
    return group


def types_of(signature):
    """The parameters without their names and defaults."""
    inner = signature[signature.find("(") + 1:signature.rfind(")")]
    while (flat := re.sub(r"(<[^<>]*),([^<>]*>)", r"\1;\2", inner)) != inner:
        inner = flat
    plain = [part.partition("=")[0].strip() for part in inner.split(",")]
    return ",".join(re.sub(r"(?<=[\w>&*]) ?\b\w+$", "", part) if " " in part else part
                    for part in plain)


def local_names(root, paths):
    """(path, line, name, its namespace, and the types of a function's parameters)."""
    listing = subprocess.run([check_sizes.universal_ctags(), *CTAGS], cwd=root,
                             input="\n".join(paths), text=True, capture_output=True,
                             check=True).stdout
    for row in listing.splitlines():
        path, line, name, kind, scope, signature = row.split("\t")
        inside = UNNAMED.fullmatch(scope)
        if kind == "macro":
            if f"#undef {name}" not in tree.lines(root, path):
                yield path, int(line), name, "", "macro"
        elif inside and not name.startswith(("__anon", "TEST_CASE", "operator")):
            yield path, int(line), name, inside[1], \
                types_of(signature) if kind == "function" else ""


def check(root):
    if check_sizes.universal_ctags() is None:
        print("check_unity.py: no universal-ctags, nothing is checked", file=sys.stderr)
        return
    paths = [p for p in tree.files(root) if p.endswith(".cpp") and not ALONE.match(p)]
    group = groups(root, paths)
    first = collections.defaultdict(dict)
    for path, line, name, space, types in local_names(root, paths):
        others = first[group[path], name, space, types]
        if others and path not in others:
            other, at = next(iter(others.items()))
            yield f"{path}:{line}: {name} has a namesake in {other}:{at}, compiled with this file"
        others.setdefault(path, line)


if __name__ == "__main__":
    tree.main(check)
