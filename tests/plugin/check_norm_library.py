#!/usr/bin/env python3
"""Installs keel into an empty folder, moves it, and uses keel/norm.h from there: by pkg-config, by
CMake, and from Python; there also as a wheel.

usage: tests/plugin/check_norm_library.py ROOT BUILD

Exits with 77 where the build has no keel_norm. The tests of Python run where the interpreter that
KEEL_PYTHON names, or else python3, has NumPy, PyTorch or JAX, and those of JAX where meson was told
of XLA's headers; a line says so where one is missing."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

SKIPPED = 77

# The tests of a part of keel_norms, and the library that it needs.
PARTS = {"numpy": (["interface", "numpy", "masks_numpy", "options_numpy", "border_numpy",
                    "sums_numpy"],
                   "libkeel_norm.so"),
         "torch": (["torch", "constructors", "options", "masks_torch", "border_torch", "layouts",
                    "second", "binding", "modules", "samples", "sync", "fsdp", "ddp", "layers",
                    "encoder", "cuda", "types", "dynamic", "weight_norm", "docs", "runs",
                    "sums", "pairs", "strides", "transformers"],
                   "libkeel_norm.so"),
         "jax": (["jax", "jax_errors", "masks_jax", "options_jax", "sums_jax"],
                 "libkeel_norm_jax.so")}


# A wheel's files beside Python's: libraries, licences of what is in them, and
# what makes the layers a repository for kernels.
FILES_OF_WHEEL = {"libkeel_norm.so.2", "libkeel_norm_torch.so", "metadata.json", "keel.txt",
                  "fmt.txt", "Highway.txt", "Eigen.txt"}


def run(*command, **options):
    """The output of a command; ends with what it said if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"check_norm_library: {' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def install(build, folder):
    """Installs with `folder` as the root, moves the tree, and returns its new prefix."""
    first, moved = folder / "first", folder / "moved"
    run("meson", "install", "-C", build, "--no-rebuild", "--destdir", first)
    (library,) = first.rglob("libkeel_norm.so")
    prefix = next(p for p in library.parents if (p / "include").is_dir())
    shutil.move(prefix, moved)
    return moved


def check_pkg_config(example, prefix, folder):
    (file,) = prefix.rglob("keel_norm.pc")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(file.parent)}
    flags = run("pkg-config", "--cflags", "--libs", "keel_norm", env=environment).split()
    program = folder / "by_pkg_config"
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", example / "layer_norm.c", "-o", program,
        *flags, "-lm")
    return run(program, env=loader(prefix))


def check_cmake(example, prefix, folder):
    build = folder / "by_cmake"
    run("cmake", "-S", example, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    return run(build / "layer_norm", env=loader(prefix))


def loader(prefix):
    (library,) = prefix.rglob("libkeel_norm.so")
    return {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}


def has(python, package):
    return subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode == 0


def check_python(root, prefix, package):
    named = os.environ.get("KEEL_PYTHON")
    pythons = [named] if named else ["python3", "/usr/bin/python3"]
    python = next((python for python in pythons if has(python, package)), None)
    if python is None:
        print(f"check_norm_library: no {package} in {', '.join(pythons)}: "
              f"keel_norms.{package} was not tested")
        return
    tests, needed = PARTS[package]
    if not list(prefix.rglob(needed)):
        print(f"check_norm_library: no {needed}: keel_norms.{package} was not tested")
        return
    (library,) = prefix.rglob("libkeel_norm.so")
    environment = {**os.environ, "KEEL_NORM_LIBRARY": str(library)}
    for name in tests:
        run(python, root / f"plugin/python/tests/test_{name}.py", env=environment)
    if package == "torch":
        check_torch(root, python, environment)
    print(f"check_norm_library: keel_norms.{package}: all tests passed")


def check_torch(root, python, environment):
    """Runs tests on the kernels in Python, too, which serve where those in C++ are missing, and
    compares the functions that these declare with PyTorch's headers."""
    for name in ("torch", "binding", "strides"):
        run(python, root / f"plugin/python/tests/test_{name}.py",
            env={**environment, "KEEL_NORM_BINDING": "ctypes"})
    if run(python, "-c", "import torch; print(torch.cuda.is_available())").strip() != "True":
        print("check_norm_library: PyTorch finds no GPU: keel_norms.torch was not tested on one")
    headers = run(python, "-c", "import torch.utils.cpp_extension as c;"
                  "print(*c.include_paths(), sep=chr(10))").splitlines()
    run("c++", "-std=c++20", "-fsyntax-only", f"-I{root}", *[f"-I{path}" for path in headers],
        root / "plugin/c/torch_abi_check.cpp")


def check_tag(python, wheel):
    """By auditwheel: the wheel needs nothing of the system but what every Linux that is not older
    than the builder's has. A library that is missing from it, or is not found in it, shows here."""
    if not has(python, "auditwheel"):
        print(f"check_norm_library: {python} has no auditwheel: what the wheel needs of the system "
              "was not tested")
        return
    said = " ".join(run(python, "-m", "auditwheel", "show", wheel).split())
    tag = re.search(r'following platform tag: "(\S+)"', said)
    if tag is None or not tag[1].startswith("manylinux"):
        sys.exit(f"check_norm_library: expected a wheel of a manylinux tag, auditwheel: {said}")
    print(f"check_norm_library: auditwheel: {tag[1]}")


def check_wheel(root, build, folder):
    """Builds the wheel of keel-norms without a network and uses it without the checkout."""
    python = os.environ.get("KEEL_PYTHON", "python3")
    if not has(python, "numpy, setuptools.command.bdist_wheel"):
        print(f"check_norm_library: {python} has no NumPy or no setuptools that makes wheels: the "
              "wheel was not tested")
        return
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder / "wheel",
        root / "plugin/python",
        env={**os.environ, "KEEL_NORM_LIBRARY": str(build / "plugin/c/libkeel_norm.so")})
    (wheel,) = (folder / "wheel").glob("keel_norms-*.whl")
    lacking = FILES_OF_WHEEL - {pathlib.PurePath(name).name for name in
                                zipfile.ZipFile(wheel).namelist()}
    if lacking:
        sys.exit(f"check_norm_library: {wheel.name} has no {', '.join(sorted(lacking))}")
    check_tag(python, wheel)
    run(*pip, "install", "--no-deps", "--target", folder / "site", wheel)
    environment = {**os.environ, "PYTHONPATH": str(folder / "site")}
    environment.pop("KEEL_NORM_LIBRARY", None)
    run(python, "-c", "import numpy, keel_norms.numpy as kn; x = numpy.eye(3);"
        "assert numpy.isfinite(kn.layer_norm(x).backward(x).dx).all();"
        f"assert kn.__file__.startswith({str(folder)!r})", env=environment, cwd=folder)
    print(f"check_norm_library: {wheel.name}: built, installed and used")


def main():
    root, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    if not (build / "plugin/c/libkeel_norm.so").exists():
        print("check_norm_library: this build has no keel_norm")
        return SKIPPED
    example = root / "plugin/c/example"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prefix = install(build, folder)
        first = check_pkg_config(example, prefix, folder)
        second = check_cmake(example, prefix, folder)
        if first != second:
            sys.exit(f"check_norm_library: expected the same output, got\n{first}and\n{second}")
        if (build / "keel").is_file():  # test_runs.py trains with it
            os.environ["KEEL_PROGRAM"] = str(build / "keel")
        else:
            print("check_norm_library: this build has no keel: keel_norms.torch.load_run was not "
                  "tested")
        for package in PARTS:
            check_python(root, prefix, package)
        check_wheel(root, build, folder)
    print("check_norm_library: installed, built and run by pkg-config and by CMake, 0 faults")
    return 0


if __name__ == "__main__":
    sys.exit(main())
