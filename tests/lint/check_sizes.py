"""Holds files, lines, functions and parameter lists to their size."""
import re
import shutil
import subprocess
import sys

import tree

FILE_LINES = 400
FILE_LINES_WISHED = 250
COLUMNS = 100
FUNCTION_LINES = 60
KERNEL_LINES = 80
PARAMETERS = 5

KERNELS = re.compile(r"backends/\w+/(kernels|simd)/")
# CUDA's own functions, NCCL's and PyTorch's, which the tests play, have the parameters that their
# owners gave them.
GIVEN = re.compile(r"_*(cuda|cublas|cudnn|nccl)[A-Z]|(aoti_)?torch_")
CTAGS = [
    "-x", "--_xformat=%F\t%n\t%e\t%N\t%S", "--kinds-C++=f", "--kinds-Python=fm",
    "--langmap=C++:.h.cpp.inc.cu.cuh",
    # A test case is a function too.
    "-D", "TEST_CASE(name)=void TEST_CASE()",
    "-D", "TEST_CASE_TEMPLATE(name,...)=void TEST_CASE()",
    "-L", "-",
]


def is_code(path):
    return tree.suffix(path) in tree.CPP | {".py"} or path.endswith("meson.build") \
        or path.startswith(("tools/", ".ci/"))


def check_lines(path, text):
    if len(text) > FILE_LINES:
        yield f"{path}:{FILE_LINES + 1}: {len(text)} lines, the cap is {FILE_LINES}"
    elif len(text) > FILE_LINES_WISHED:
        print(f"{path}:1: warning: {len(text)} lines, better under {FILE_LINES_WISHED}",
              file=sys.stderr)
    for number, line in enumerate(text, 1):
        if len(line) > COLUMNS:
            yield f"{path}:{number}: {len(line)} columns, the cap is {COLUMNS}"


def count_parameters(signature):
    """The number of parameters in "(int a, std::pair<int, int> b)"; commas inside <>, () and {}
    do not count, nor does Python's self, nor what it takes only by name, after a "*"."""
    inner = signature[signature.find("(") + 1:signature.rfind(")")].replace("->", "").strip()
    if inner in ("", "void"):
        return 0
    while (flat := re.sub(r"<[^<>()]*>|\([^()]*\)|\{[^{}]*\}", "", inner)) != inner:
        inner = flat
    names = [name.strip() for name in inner.split(",")]
    by_place = names[:names.index("*")] if "*" in names else names
    return len([name for name in by_place if name not in ("", "self")])


def universal_ctags():
    program = shutil.which("ctags-universal") or shutil.which("ctags")
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout \
        if program else ""
    return program if version.startswith("Universal") else None


def functions(root, paths):
    """(path, first line, last line, name, signature) of each function defined in the files."""
    listing = subprocess.run([universal_ctags(), *CTAGS], cwd=root, input="\n".join(paths),
                             text=True, capture_output=True, check=True).stdout
    for row in listing.splitlines():
        path, first, last, name, signature = row.split("\t")
        if last.isdigit():
            yield path, int(first), int(last), name, signature


def check_functions(root, paths):
    for path, first, last, name, signature in functions(root, paths):
        cap = KERNEL_LINES if KERNELS.match(path) else FUNCTION_LINES
        if last - first + 1 > cap:
            yield f"{path}:{first}: {name} has {last - first + 1} lines, the cap is {cap}"
        count = count_parameters(signature)
        if count > PARAMETERS and not GIVEN.match(name):
            yield f"{path}:{first}: {name} has {count} parameters, the cap is {PARAMETERS}"


def check(root):
    paths = [path for path in tree.files(root) if is_code(path)]
    for path in paths:
        yield from check_lines(path, tree.lines(root, path))
    if universal_ctags() is None:
        print("check_sizes.py: no universal-ctags, functions are not checked", file=sys.stderr)
    else:
        parsed = tree.CPP | {".py"}
        yield from check_functions(root, [path for path in paths if tree.suffix(path) in parsed])


if __name__ == "__main__":
    tree.main(check)
