"""Holds the rules of who may include whom, and which library is used where."""
import fnmatch
import re

import tree

OPS = ["src/core", "src/graph", "src/ops"]
BACKEND = [*OPS, "src/runtime"]
TRAIN = ["src", "frontend/nn", "frontend/optim", "frontend/data", "frontend/task"]
ALL = [*TRAIN, "frontend/train", "frontend/study", "backends", "models"]

# What a folder may include besides itself. The longest folder that holds a file counts. Nobody is
# given frontend/cli, bench or tests, except the program its benchmarks, and bench the oracles and
# case tables of the tests.
MAY_INCLUDE = {
    "src/core": [],
    "src/graph": ["src/core"],
    "src/ops": ["src/core", "src/graph"],
    "src/autodiff": OPS,
    "src/passes": OPS,
    "src/runtime": [*OPS, "src/passes"],
    "backends": [*BACKEND, "backends"],  # backends.cpp alone names them all
    "backends/reference": BACKEND,
    "backends/onednn": BACKEND,
    "backends/cuda": BACKEND,
    "backends/null": BACKEND,
    "frontend/nn": OPS,
    "frontend/optim": OPS,
    "frontend/data": ["src/core"],
    "frontend/train": TRAIN,
    "frontend/task": [*OPS, "frontend/nn", "frontend/data"],
    "frontend/study": [*TRAIN, "frontend/train"],
    "frontend/cli": [*ALL, "bench"],
    "models": [*OPS, "frontend/nn", "frontend/data", "frontend/task"],
    "bench": [*ALL, "tests/support"],
    "tests": [*ALL, "bench"],
}

# Made by meson outside of the source tree; each counts as lying beside its template.
GENERATED = {"norm_list.inc": "src/ops/norm/norm_list.inc", "recipes.inc": "models/recipes.inc",
             "peer_script.inc": "bench/peer_script.inc"}

OURS = ("src/", "backends/", "frontend/", "models/", "bench/", "tests/")

# A library: how its headers are called, and the files that may include them. First match counts.
LIBRARIES = [
    ("the standard library", r"[a-z_0-9]+$", ["*"]),
    ("fmt", r"fmt/", ["*"]),
    ("Eigen", r"(unsupported/)?Eigen/", ["backends/reference/*", "tests/*"]),
    ("oneDNN", r"(oneapi/)?dnnl", ["backends/onednn/primitives*"]),
    ("TBB", r"(oneapi/)?tbb", ["backends/onednn/threads.cpp"]),
    ("Highway", r"hwy/", ["backends/onednn/*", "tests/backends/*"]),
    ("CUDA", r"cuda|cu(blas|dnn|rand|fft)|nccl|nvtx|cub/|cooperative_groups", ["backends/cuda/*"]),
    ("CLI11", r"CLI/", ["frontend/cli/*", "frontend/train/*"]),
    ("toml++", r"toml\+\+/", ["frontend/cli/*", "frontend/train/*"]),
    ("doctest", r"doctest/", ["tests/*"]),
    ("a library or system header", r"", ["backends/*", "frontend/*", "bench/*", "tests/*"]),
]

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def within(path, folder):
    return path.startswith(folder + "/")


def wrong_include(path, header, quoted):
    """Why `path` may not include `header`, or None."""
    header = GENERATED.get(header, header)
    if header.startswith(OURS):
        home = max((f for f in MAY_INCLUDE if within(path, f)), key=len, default=None)
        if home is None:
            return "this folder is not in the table of check_layers.py"
        if any(within(header, folder) for folder in [home, *MAY_INCLUDE[home]]):
            return None
        return f"{home} may not include {header}"
    library, pattern, users = next(row for row in LIBRARIES if re.match(row[1], header))
    if quoted and not pattern:
        return f'"{header}" is not written from the root of the repository'
    if any(fnmatch.fnmatch(path, user) for user in users):
        return None
    return f"{library} ({header}) may not be used here"


def check_guard(path, text):
    # Highway's -inl.h files are included once per SIMD target, which #pragma once would prevent.
    # In a precompiled header, compiled as a main file, it is a warning: those have a macro.
    macro = "#ifndef KEEL_" if "/pch/" in str(path) else "HWY_TARGET_TOGGLE"
    guarded = "#pragma once" in text or any(macro in line for line in text)
    if tree.suffix(path) in {".h", ".cuh"} and not guarded:
        yield f"{path}:1: no #pragma once"


def check(root):
    for path in tree.files(root):
        if tree.suffix(path) not in tree.CPP:
            continue
        text = tree.lines(root, path)
        yield from check_guard(path, text)
        for number, line in enumerate(text, 1):
            include = INCLUDE.match(line)
            problem = include and wrong_include(path, include[2], include[1] == '"')
            if problem:
                yield f"{path}:{number}: {problem}"


if __name__ == "__main__":
    tree.main(check)
