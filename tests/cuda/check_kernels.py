#!/usr/bin/env python3
"""Builds CUDA by nvcc for sm_80 and sm_90, links it, starts it, and reads what ptxas said: nothing
may be warned of, and no kernel may spill registers but those named below. Needs no GPU; skips
without nvcc.

usage: tests/cuda/check_kernels.py ROOT BUILD    BUILD: a build folder that tools/setup has made
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ARCHITECTURES = {"sm_80", "sm_90"}
KERNEL = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'.*?(\d+) bytes spill stores, "
                    r"(\d+) bytes spill loads.*?Used (\d+) registers", re.DOTALL)
INCLUDE = re.compile(r'#include "(backends/cuda/[^"]+)"')
MISSING = 7  # the exit code of a program that finds no GPU
# Kernels of which nvcc 13 stores or loads up to so many bytes of registers.
# A smaller tile would end that; which of the two is faster has to be measured on a GPU first.
KNOWN_SPILLS = {("attention.txt", "sm_80"): 16,
                ("relative_attention_backward.txt", "sm_80"): 32,
                ("relative_attention_backward.txt", "sm_90"): 40,
                ("scale_norm.txt", "sm_80"): 12}


def run(*command, **options):
    """Returns a command's exit code and all that it printed."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **options)
    return done.returncode, done.stdout


def text_faults(texts):
    """The complaints of nvcc and ptxas, and the GPUs for which they did not compile."""
    for path, text in texts.items():
        if "warning" in text:
            yield f"{path.name}: {text.strip()}"
        kernels = KERNEL.findall(text)
        for name, architecture, stores, loads, _ in kernels:
            if max(int(stores), int(loads)) > KNOWN_SPILLS.get((path.name, architecture), 0):
                yield f"{path.name}: {name} spills {stores} bytes ({architecture})"
        if kernels and {kernel[1] for kernel in kernels} != ARCHITECTURES:
            yield f"{path.name}: not compiled for {ARCHITECTURES}"


def reads(root, path, header):
    """Whether a source includes the header, itself or through another one."""
    included = INCLUDE.findall(path.read_text(encoding="utf-8"))
    return header in included or any(reads(root, root / other, header) for other in included)


def header_faults(root, build, sources, programs):
    """After a header was edited, exactly the kernels that include it are to be compiled again."""
    header = "backends/cuda/kernels/warp.cuh"
    expected = {source.stem for source in sources if reads(root, source, header)}
    before = (root / header).stat()
    try:
        os.utime(root / header, (time.time(), time.time()))
        _, text = run("ninja", "-C", build, "-n", "-v", *programs)
    finally:
        os.utime(root / header, ns=(before.st_atime_ns, before.st_mtime_ns))
    found = set(re.findall(r" -c -o backends/cuda/(\w+)\.o ", text))
    if found != expected or not expected:
        yield f"after an edit of {header}, ninja compiles {sorted(found)}, not {sorted(expected)}"


def start_faults(build, programs):
    """The program says that there is no GPU, unless there is one, and the tests start."""
    has_gpu = run("sh", "-c", "nvidia-smi -L")[0] == 0
    code, text = run(build / programs[0], "bench", "norms", "layernorm", "--backend", "cuda",
                     "--shapes", "8x8", "--rounds", "3")
    if code != (0 if has_gpu else MISSING) or ("no GPU can be used" in text) == has_gpu:
        yield f"{programs[0]} ended with {code}: {text.strip()}"
    code, text = run(build / programs[1], "--test-case=cuda errors:*")
    if code != 0 or not re.search(r"test cases: +[1-9]", text):
        yield f"{programs[1]} ended with {code}: {text.strip()}"


def norm_faults(root, build):
    """The norms' library for other programs loads its kernels for GPUs and says that there is no
    GPU, unless there is one."""
    program = ("from keel_norms import _library as l\n"
               "try: l.plan('rms_norm', '', ((l.F32, (4, 6)),), (l.CUDA, 0)); print('planned')\n"
               "except l.KeelError as error: print(error)")
    libraries = build / "plugin/c"
    code, text = run(sys.executable, "-c", program,
                     env={**os.environ, "PYTHONPATH": str(root / "plugin/python"),
                          "KEEL_NORM_LIBRARY": str(libraries / "libkeel_norm.so")})
    has_gpu = run("sh", "-c", "nvidia-smi -L")[0] == 0
    if code != 0 or ("planned" if has_gpu else "no GPU can be used") not in text:
        yield f"libkeel_norm_cuda.so: a plan on a GPU: {text.strip()}"


def configure_faults(root, build):
    """Meson takes the options with which CUDA belongs to keel itself."""
    options = (build / ".setup-options").read_text(encoding="utf-8").split()
    options = ["-Dcuda=enabled" if word.startswith("-Dcuda=") else word for word in options]
    with tempfile.TemporaryDirectory() as scratch:
        code, text = run("meson", "setup", *options, scratch, root)
    if code != 0:
        yield f"meson setup -Dcuda=enabled: {text[-500:].strip()}"


def version_faults(root):
    """tools/setup refuses an nvcc that is too old, and says so."""
    with tempfile.TemporaryDirectory() as scratch:
        old = pathlib.Path(scratch, "nvcc")
        old.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 11.8, V11.8.89'\n",
                       encoding="utf-8")
        old.chmod(0o755)
        path = f"{scratch}:{os.environ['PATH']}"
        code, text = run(root / "tools/setup", "--gpu", "--no-build",
                         env={**os.environ, "PATH": path})
    if code == 0 or "nvcc 11.8 is older than 12.0" not in text:
        yield f"tools/setup --gpu with nvcc 11.8 ended with {code}: {text[-500:].strip()}"


def main():
    root, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    options = json.loads(run("meson", "introspect", "--buildoptions", build)[1])
    mode = next(option["value"] for option in options if option["name"] == "cuda")
    if mode not in ("aside", "enabled"):
        print("check_kernels: skipped, for CUDA is not built")
        return 77
    programs = ["keel_cuda", "tests/keel_cuda_tests"] if mode == "aside" else [
        "keel", "tests/keel_tests"]
    caching = {"CCACHE_SLOPPINESS": "pch_defines,time_macros", "CCACHE_DEPEND": "1"}
    has_norms = (build / "plugin/c/libkeel_norm.so").exists()
    built = [*programs, *(["plugin/c/libkeel_norm_cuda.so"] if has_norms else [])]
    code, text = run("ninja", "-C", build, *built, env={**caching, **os.environ})
    if code != 0:
        print(f"{text}check_kernels: ninja -C {build} {' '.join(built)} failed")
        return 1
    texts = {path: path.read_text(encoding="utf-8")
             for path in sorted((build / "backends/cuda").glob("*.txt"))}
    sources = [source for source in sorted((root / "backends/cuda").rglob("*.cu"))
               if source.stem in {path.stem for path in texts}
               or source.stem != "convolution_cudnn"]
    bad = [*text_faults(texts), *header_faults(root, build, sources, programs),
           *start_faults(build, programs), *version_faults(root)]
    if has_norms:
        bad += norm_faults(root, build)
    bad += [f"{source.name}: not compiled" for source in sources
            if source.stem not in {path.stem for path in texts}]
    if mode == "aside":
        bad += configure_faults(root, build)
    kernels = [kernel for text in texts.values() for kernel in KERNEL.findall(text)]
    print(*bad, sep="\n", end="\n" if bad else "")
    most = max((int(registers) for *_, registers in kernels), default=0)
    print(f"check_kernels: {len(sources)} sources for {', '.join(sorted(ARCHITECTURES))}: "
          f"{len(kernels)} kernels, at most {most} registers a thread, {len(bad)} faults")
    return 1 if bad or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
