#!/usr/bin/env python3
"""Plants the faults of tests/ptx/faults.txt into CUDA sources, one at a time: nvcc compiles the
source to PTX, which takes the place of the program's own while its tests run. They have to fail.

usage: tests/ptx/plant.py ROOT BUILD [TEXT]    TEXT: only faults whose source or words contain it
"""
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

KERNELS = "backends/cuda/kernels"
SECONDS = 600  # for the tests of one fault: an endless loop is noticed, too


@dataclasses.dataclass
class Fault:
    source: str
    file: str
    tests: str
    what: str
    find: str = ""
    replacement: str = ""
    number: int = 0  # of the line that says what it does


def read_list(text):
    source = file = tests = fault = None
    for number, line in enumerate(text.splitlines(), 1):
        word, _, rest = line.partition(" ")
        rest = rest.replace("\\n", "\n")
        if not line or word == "#":
            continue
        if word == "source":
            source, file = rest, f"{rest}.cu"
        elif word == "file":
            file = rest
        elif word == "tests":
            tests = rest
        elif word == "-":
            fault.find = rest
        elif word == "+":
            fault.replacement = rest
            yield fault
        else:
            fault = Fault(source, file, tests, line, number=number)


def compile_ptx(root, build, folder, source):
    """Compiles a source, in which files of the folder take the place of the tree's."""
    changed = folder / KERNELS / f"{source}.cu"
    path = changed if changed.is_file() else root / KERNELS / f"{source}.cu"
    made = folder / "planted.ptx"
    done = subprocess.run(
        ["nvcc", "-ptx", "-std=c++20", "-O3", "--expt-relaxed-constexpr", "--fmad=false",
         "-arch=compute_80", "-DFMT_CONSTEVAL=", "-DFMT_USE_CONSTEXPR=1", f"-I{folder}",
         f"-I{root}", f"-I{build}", "-o", made, path],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return made if done.returncode == 0 else done.stdout


def passes(build, tests, ptx):
    """Whether the tests pass with this PTX in place of the program's own, and what they said."""
    program = build / "tests/keel_cuda_tests"
    if not program.exists():
        program = build / "tests/keel_tests"
    environment = {**os.environ, "KEEL_BACKEND": "cuda", "KEEL_PTX_REPLACE": str(ptx),
                   "LD_PRELOAD": str(build / "tests/ptx/libkeel_ptx.so")}
    try:
        done = subprocess.run([program, f"--test-case={tests}", "--abort-after=1"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, env=environment, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False, "no end"
    if re.search(r"test cases: +0 ", done.stdout):
        return True, "no such test case"
    watch = [line for line in done.stdout.splitlines() if "[ptx]" in line]
    return done.returncode == 0, watch[0].split("[ptx]", 1)[1][:160] if watch else "by its results"


def plant(root, build, fault):
    """The tests' verdict on a fault, and whether it is a problem: they do not notice the fault."""
    text = (root / KERNELS / fault.file).read_text(encoding="utf-8") if fault.find else ""
    if fault.find and text.count(fault.find) != 1:
        return f"stale: occurs {text.count(fault.find)} times", True
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        changed = folder / KERNELS / fault.file
        changed.parent.mkdir(parents=True)
        if fault.find:
            changed.write_text(text.replace(fault.find, fault.replacement), encoding="utf-8")
        ptx = compile_ptx(root, build, folder, fault.source)
        if isinstance(ptx, str):
            return f"does not compile:\n{ptx}", True
        is_right, how = passes(build, fault.tests, ptx)
    if is_right == bool(fault.find):
        return f"is not noticed ({how})" if fault.find else f"fails ({how})", True
    return f"noticed: {how}" if fault.find else "passes", False


def main():
    root, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    faults = list(read_list((root / "tests/ptx/faults.txt").read_text(encoding="utf-8")))
    chosen = [fault for fault in faults
              if len(sys.argv) < 4 or sys.argv[3] in f"{fault.source} {fault.what}"]
    # Each source as it is, first: its tests pass with PTX in place of the program's own.
    sound = {(fault.source, fault.tests): Fault(fault.source, fault.file, fault.tests, "as it is")
             for fault in chosen}
    bad = 0
    subjects = [*sound.values(), *chosen]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for fault, (said, is_bad) in zip(subjects, pool.map(
                lambda fault: plant(root, build, fault), subjects)):
            bad += is_bad
            print(f"plant: {fault.source}: {fault.what}: {said}", flush=True)
    print(f"plant: {len(chosen)} faults, {bad} problems")
    return 1 if bad or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
