#!/usr/bin/env python3
"""Runs kernels as nvcc compiled them, on the host: the program with CUDA and its tests are started
with tests/ptx' library loaded before CUDA's, which interprets the PTX that lies in them.

usage: tests/ptx/check_cuda.py ROOT BUILD [--all]

Without --all: a chosen part, of a minute. With it: what `keel compare` says of every op, every norm
and every model. (tools/test --ptx runs the kernels' tests besides.) Skips without nvcc.
"""
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

# Each names some kernels of another kind: rows, columns, images, attention, losses, updates.
CHOSEN = ["cuda errors:*", "cuda once: every norm on rows of one*", "cuda once: new memory*",
          "cuda once: what is uploaded*", "cuda attention: its backward*",
          "backend softmax: masked*", "backend attention: heads of every width",
          "backend dropout: seeds*", "backend loss: labels*", "backend embedding: ids*",
          "backend recurrent: saturated*", "backend reduce: NaN*", "backend layout: padding"]
COMPARED = ["mnist_mlp", "mnist_cnn"]


def run(command, build, **environment):
    """Returns a command's exit code and all that it printed."""
    surroundings = {**os.environ, "LD_PRELOAD": str(build / "tests/ptx/libkeel_ptx.so"),
                    "KEEL_PTX_PTXAS": str(build / "backends/cuda"), **environment}
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, env=surroundings)
    return done.returncode, done.stdout


def compare(build, program, edge, *words):
    """The fault of one `keel compare`, or nothing. `edge`: low or high, the end of the
    interval in which an approximate instruction's result may lie."""
    start = time.monotonic()
    code, text = run([build / program, "compare", *words, "--backends", "cuda"], build,
                     KEEL_PTX_APPROXIMATION=edge)
    print(f"check_cuda: compare {' '.join(words)}, edge {edge}: exit code {code}, "
          f"{time.monotonic() - start:.0f} s", flush=True)
    return [] if code == 0 else [f"compare {' '.join(words)}, edge {edge}, ended with {code}:\n"
                                 f"{text[-3000:]}"]


def test_faults(build, tests):
    """Runs the chosen test cases, after every kernel of the program was decoded."""
    listed = run([build / tests, "--list-test-cases"], build)[1].splitlines()
    for one in CHOSEN:
        if not fnmatch.filter(listed, one):
            yield f"{tests} has no test case {one}"
    pattern = "--test-case=" + ",".join(CHOSEN)
    code, text = run([build / tests, pattern], build, KEEL_BACKEND="cuda", KEEL_PTX_DECODE="all")
    passed = re.search(r"test cases:.*?(\d+) passed", text)
    count = int(passed.group(1)) if passed else 0
    print(f"check_cuda: {count} test cases passed")
    if code != 0:
        yield f"{tests} {pattern} ended with {code}:\n{text[-3000:]}"


def count_faults(root, build):
    """Counts have a row for each pass; a layer norm's forward moves the fewest bytes, in one
    launch, and its backward at most twice as many."""
    code, text = run([root / "bench/cuda_counts.py", build, "layernorm", "--shapes", "1024x1024"],
                     build, LD_PRELOAD="")
    rows = re.findall(r"\| layernorm \| 1024x1024 \| (\w+) \| (\d+) \| (\d+) \| \d+ \| (\d+) \|",
                      text)
    is_right = [row[0] for row in rows] == ["forward", "backward"] and rows[0][2] == "1" and all(
        1 <= int(moved) / int(fewest) < (1.05 if name == "forward" else 2)
        for name, fewest, _, moved in rows)
    if code != 0 or not is_right:
        yield f"bench/cuda_counts.py ended with {code}:\n{text[-3000:]}"


def kernels(build):
    """The kernels that ptxas compiled."""
    text = "".join(path.read_text(encoding="utf-8")
                   for path in (build / "backends/cuda").glob("*.txt"))
    return set(re.findall(r"Compiling entry function '(\w+)'", text))


def models(root):
    lines = (root / "models/tasks.txt").read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line and not line.startswith("#")]


def main():
    root, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    options = json.loads(run(["meson", "introspect", "--buildoptions", build], build,
                             LD_PRELOAD="")[1])
    mode = next(option["value"] for option in options if option["name"] == "cuda")
    if mode not in ("aside", "enabled"):
        print("check_cuda: skipped, for there is no nvcc, so CUDA is not built")
        return 77
    program, tests = ("keel_cuda", "tests/keel_cuda_tests") if mode == "aside" else (
        "keel", "tests/keel_tests")
    code, text = run(["ninja", "-C", build, program, tests, "tests/ptx/libkeel_ptx.so"], build,
                     LD_PRELOAD="")
    if code != 0:
        print(f"{text}check_cuda: ninja failed")
        return 1
    used = tempfile.NamedTemporaryFile(suffix=".txt")
    os.environ["KEEL_PTX_USED"] = used.name
    subjects = [["low", name] for name in COMPARED]
    if "--all" in sys.argv:
        subjects = [*([edge, "--all-ops"] for edge in ("low", "high")),
                    *(["low", name] for name in models(root))]
    bad = [] if "--all" in sys.argv else list(test_faults(build, tests))
    bad += count_faults(root, build)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for faults in pool.map(lambda words: compare(build, program, *words), subjects):
            bad += faults
    print(*bad, sep="\n", end="\n" if bad else "")
    run_once = set(used.read().decode().split())
    print(f"check_cuda: {len(run_once)} of {len(kernels(build))} kernels were run")
    print(f"check_cuda: kernels as nvcc compiled them, on the host: {len(bad)} faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
