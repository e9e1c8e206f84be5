#!/usr/bin/env python3
"""Compiles every CUDA source for sm_80 and sm_90 with nvcc and reads what ptxas says of it: nothing
may be warned of, and no kernel may spill registers. Needs no GPU; skips without nvcc.

usage: tests/cuda/check_kernels.py ROOT BUILD    BUILD: a build folder, for its generated headers
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ARCHITECTURES = ("sm_80", "sm_90")
FLAGS = ["-std=c++20", "-O3", "--fmad=false", "--expt-relaxed-constexpr", "-DFMT_CONSTEVAL=",
         "-DFMT_USE_CONSTEXPR=1", "-cubin", "-Xptxas", "-v"]
KERNEL = re.compile(r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores, "
                    r"(\d+) bytes spill loads.*?Used (\d+) registers", re.DOTALL)


def compile_one(root, build, source, architecture):
    """Returns nvcc's exit code and what it and ptxas printed."""
    with tempfile.TemporaryDirectory() as scratch:
        command = ["nvcc", *FLAGS, f"-arch={architecture}", f"-I{root}", f"-I{build}",
                   "-o", str(pathlib.Path(scratch, "kernel.cubin")), str(source)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


def faults(source, architecture, code, text):
    """What is wrong with one compilation, line by line."""
    where = f"{source.name} ({architecture})"
    if code != 0 or "warning" in text:
        yield f"{where}: {text.strip()}"
    for name, stores, loads, _ in KERNEL.findall(text):
        if int(stores) or int(loads):
            yield f"{where}: {name} spills {stores} bytes"


def main():
    root, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    if not shutil.which("nvcc"):
        print("check_kernels: skipped, for there is no nvcc")
        return 77
    sources = sorted((root / "backends/cuda").rglob("*.cu"))
    jobs = [(source, architecture) for source in sources for architecture in ARCHITECTURES]
    bad, kernels, most = [], 0, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda job: compile_one(root, build, *job), jobs)
        for job, (code, text) in zip(jobs, results):
            bad.extend(faults(*job, code, text))
            found = KERNEL.findall(text)
            kernels += len(found)
            most = max([most, *(int(registers) for *_, registers in found)])
    print(*bad, sep="\n", end="\n" if bad else "")
    print(f"check_kernels: {len(sources)} sources for {', '.join(ARCHITECTURES)}: {kernels} "
          f"kernels, at most {most} registers a thread, {len(bad)} faults")
    return 1 if bad or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
