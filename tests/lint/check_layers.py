"""Holds the rules of who may include whom, and which library is used where."""
import fnmatch
import re

import tree

OPS = ["src/core", "src/graph", "src/ops"]
BACKEND = [*OPS, "src/runtime", "src/pch"]
TASK = ["frontend/io", "frontend/text", "frontend/data", "frontend/nn", "frontend/task",
        "frontend/decode"]
TRAIN = ["src", *TASK, "frontend/optim"]
COMPARE = [*TRAIN, "backends", "frontend/train"]

# Top-level folders, each of which may use those before it and none after it. Whatever a row below
# allows, includes that run against this order are complained of, and so are cycles.
ORDER = ["src", "backends", "frontend", "models", "studies", "bench", "include", "program",
         "plugin", "tests"]

# The folders that a folder may include besides itself. The longest folder that holds a file counts.
MAY_INCLUDE = {
    "src/core": [],
    "src/graph": ["src/core"],
    "src/ops": ["src/core", "src/graph"],
    "src/autodiff": OPS,
    "src/passes": OPS,
    "src/runtime": [*OPS, "src/passes"],
    "backends": [*BACKEND, "backends"],  # only backends.cpp names them all
    "backends/reference": BACKEND,
    "backends/onednn": BACKEND,
    "backends/cuda": BACKEND,
    "backends/null": BACKEND,
    "backends/mpi": BACKEND,
    "backends/nccl": BACKEND,
    "frontend/io": ["src/core"],
    "frontend/text": ["src/core", "frontend/io"],
    "frontend/data": ["src/core", "frontend/io", "frontend/text"],
    "frontend/nn": OPS,
    "frontend/optim": OPS,
    "frontend/task": [*OPS, "frontend/nn", "frontend/data"],
    "frontend/decode": ["src/core", "frontend/task"],
    "frontend/train": TRAIN,
    "frontend/report": ["src/core", "frontend/io", "frontend/nn", "frontend/train"],
    "frontend/compare/bounds": ["src"],
    "frontend/compare/walk": [*COMPARE, "frontend/compare/bounds"],
    "frontend/compare/cases": [*COMPARE, "frontend/compare/bounds", "frontend/compare/walk"],
    "frontend/compare/verdicts": [*COMPARE, "frontend/report", "frontend/compare/bounds",
                                  "frontend/compare/walk"],
    "frontend/identify": [*OPS, "src/runtime", "frontend/io", "frontend/nn", "frontend/compare"],
    "models": [*OPS, *TASK],
    "studies": [*TRAIN, "frontend/train", "frontend/report", "models"],
    "bench": ["src", "backends", "frontend", "models"],
    "include": ["src", "backends", "frontend", "models"],
    "program": ["src", "backends", "frontend", "models", "studies", "bench", "include"],
    "plugin": [],
    "plugin/c": ["src", "backends"],
    "tests": ["src", "backends", "frontend", "models", "studies", "bench", "plugin/c"],
}

# Made by meson outside of the source tree; each counts as lying beside its template.
GENERATED = {"norm_list.inc": "src/ops/norm/norm_list.inc", "op_list.inc": "src/ops/op_list.inc",
             "recipes.inc": "models/recipes.inc", "peer_scripts.inc": "bench/peer_scripts.inc",
             "paper_tables.inc": "studies/paper_tables.inc",
             "task_list.inc": "models/task_list.inc",
             "task_includes.inc": "models/task_includes.inc"}

OURS = tuple(folder + "/" for folder in ORDER)

# A library: how its headers are called, and the files that may include them. First match counts.
LIBRARIES = [
    ("the standard library", r"[a-z_0-9]+$", ["*"]),
    ("fmt", r"fmt/", ["*"]),
    ("C's integers of fixed size", r"stdint\.h$", ["plugin/c/keel/*"]),
    ("keel as it is installed", r"keel/", ["examples/*", "plugin/c/*"]),
    ("XLA", r"xla/ffi/", ["plugin/c/jax.cpp"]),
    ("PyTorch", r"torch/csrc/", ["plugin/c/torch_abi_check.cpp"]),
    ("the loader of libraries", r"dlfcn\.h$",
     ["backends/ranks.cpp", "backends/nccl/nccl_library.cpp", "plugin/c/cuda_library.cpp",
      "plugin/c/torch_abi.cpp", "tests/*"]),
    ("Eigen", r"(unsupported/)?Eigen/", ["backends/reference/*", "models/skip_thoughts/*",
                                            "studies/*", "tests/*"]),
    ("oneDNN", r"(oneapi/)?dnnl",
     ["backends/onednn/primitives*", "backends/onednn/instruction_set.cpp"]),
    ("TBB", r"(oneapi/)?tbb", ["backends/onednn/threads.cpp"]),
    ("Highway", r"hwy/", ["backends/onednn/*", "tests/backends/*"]),
    ("CUDA", r"cuda|cu(blas|dnn|rand|fft)|nccl|nvtx|cub/|cooperative_groups",
     ["backends/cuda/*", "tests/ptx/cuda/*"]),
    ("MPI", r"mpi\.h$", ["backends/mpi/*"]),
    ("CLI11", r"CLI/", ["program/*", "frontend/train/*"]),
    ("toml++", r"toml\+\+/", ["program/*", "frontend/train/*", "studies/*"]),
    ("libpng", r"png\.h$", ["frontend/io/picture_png.cpp"]),
    ("libjpeg-turbo", r"j(peglib|error)\.h$", ["frontend/io/picture_jpeg.cpp", "tests/*"]),
    ("libarchive", r"archive(_entry)?\.h$", ["frontend/io/tar.cpp"]),
    ("utf8proc", r"utf8proc", ["frontend/text/unicode.cpp"]),
    ("pugixml", r"pugixml", ["models/handwriting/iam_release.cpp"]),
    ("doctest", r"doctest/", ["tests/*"]),
    ("pages of memory", r"sys/mman\.h$", ["src/runtime/growing_memory.cpp",
                                          "plugin/c/torch_pages.cpp", "tests/*"]),
    ("a library or system header", r"",
     ["backends/*", "frontend/*", "studies/*", "bench/*", "program/*", "tests/*"]),
]

# One norm by its name is known to its six files, to the layers made of it, and to what tries or
# studies it. All others ask NormTraits (src/graph/op_info.h).
OF_ALL_NORMS = {"norm", "norm_ops", "columns", "row_norm", "sizes"}
NORM_USERS = ["src/ops/norm/*", "backends/*/kernels/norm/*", "frontend/nn/*", "studies/*",
              "tests/*", "frontend/compare/cases/column_cases.cpp",
              "frontend/compare/bounds/norm_gradient_bounds.cpp",  # weights are no norm of x
              "src/passes/image_norms.cpp",  # a layer norm over all of an image
              "frontend/optim/optimizer.cpp"]  # weights whose vectors keep length 1

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')

# Some standard libraries declare these in other headers too; newer ones do not.
ALGORITHM = re.compile(
    r"\bstd::((?:any_of|all_of|none_of|count|count_if|find|find_if|copy_n|copy_if|transform|sort|"
    r"stable_sort|nth_element|unique|reverse|rotate|shuffle|generate|replace|for_each|clamp|"
    r"minmax|max_element|min_element|is_sorted|binary_search)(?=[(<])|"
    r"ranges::(?!data|size|begin|end|empty)\w+(?=\())")


def within(path, folder):
    return path.startswith(folder + "/")


def top(path):
    return path.split("/", 1)[0]


def against_order(path, header):
    return ORDER.index(top(path)) < ORDER.index(top(header))


def cycle(edges):
    """Folders that include each other in a ring, the first one repeated at the end, or None."""
    def search(folder, trail):
        if folder in trail:
            return [*trail[trail.index(folder):], folder]
        rings = (search(target, [*trail, folder]) for target in sorted(edges.get(folder, ())))
        return next((ring for ring in rings if ring), None)
    return next((ring for ring in (search(folder, []) for folder in sorted(edges)) if ring), None)


def names_a_norm(path, header):
    norm = re.match(r"src/ops/norm/(\w+)\.h$", header)
    return (norm and norm[1] not in OF_ALL_NORMS
            and not any(fnmatch.fnmatch(path, user) for user in NORM_USERS))


def wrong_include(path, header, quoted):
    """Why `path` may not include `header`, or None."""
    header = GENERATED.get(header, header)
    if names_a_norm(path, header):
        return f"only NORM_USERS may know a norm by its name, and include {header}"
    if header.startswith(OURS):
        home = max((f for f in MAY_INCLUDE if within(path, f)), key=len, default=None)
        if home is None:
            return "this folder is not in the table of check_layers.py"
        if against_order(path, header):
            return f"{top(path)} stands before {top(header)} in ORDER and may not include {header}"
        if any(within(header, folder) or header == folder
               for folder in [home, *MAY_INCLUDE[home]]):
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


def headers(root, path, seen):
    """The libraries' headers that a file includes, itself or through ours."""
    if path in seen or not (root / path).is_file():
        return set()
    seen.add(path)
    named = [include[2] for include in map(INCLUDE.match, tree.lines(root, path)) if include]
    return set(named).union(*(headers(root, header, seen) for header in named))


def check_algorithm(root, path, text):
    for number, line in enumerate(text, 1):
        if (found := ALGORITHM.search(line)) and "algorithm" not in headers(root, path, set()):
            yield f"{path}:{number}: {found[1]} without <algorithm>"
            return


def check(root):
    edges = {}  # of top-level folders, as the files have them
    for path in tree.files(root):
        if tree.suffix(path) not in tree.CPP:
            continue
        text = tree.lines(root, path)
        yield from check_guard(path, text)
        if not path.endswith("-inl.h"):  # included only by kernels
            yield from check_algorithm(root, path, text)
        for number, line in enumerate(text, 1):
            include = INCLUDE.match(line)
            problem = include and wrong_include(path, include[2], include[1] == '"')
            if problem:
                yield f"{path}:{number}: {problem}"
            header = include and GENERATED.get(include[2], include[2])
            if header and header.startswith(OURS) and top(path) != top(header):
                edges.setdefault(top(path), set()).add(top(header))
    if ring := cycle(edges):
        yield f"tests/lint/check_layers.py:1: a cycle of includes: {' -> '.join(ring)}"


if __name__ == "__main__":
    tree.main(check)
