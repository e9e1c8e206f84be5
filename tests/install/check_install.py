#!/usr/bin/env python3
"""Installs keel into an empty folder, moves it, and uses it from there: the program, and the
examples by pkg-config and by CMake. Nothing of the checkout may be opened meanwhile.

usage: tests/install/check_install.py ROOT BUILD

Exits with 77 where BUILD has not the whole of what is installed (`ninja -C BUILD library`)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
NEEDED = ("keel", "include/libkeel.so", "include/libkeel.a")


class Failed(Exception):
    """A check does not hold."""


def run(*command, code=0, **options):
    """What a command says on stdout; it must end with this exit code."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, **options)
    if done.returncode != code:
        raise Failed(f"{' '.join(words)}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout if code == 0 else done.stderr


def expect(holds, what):
    if not holds:
        raise Failed(what)


class Tree:
    """An installed tree at `prefix`, and a folder to work in."""

    def __init__(self, prefix, scratch):
        self.prefix, self.scratch = prefix, scratch
        (self.libdir,) = {path.parent for path in prefix.rglob("libkeel.so")}
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "CCACHE_DIR")
                if name in os.environ}
        self.env = {**kept, "PKG_CONFIG_PATH": str(self.libdir / "pkgconfig"),
                    "LC_ALL": "C.UTF-8"}

    def keel(self, *words, **options):
        return run(self.prefix / "bin/keel", *words, cwd=self.scratch, env=self.env, **options)

    def flags(self, *words):
        return run("pkg-config", *words, "keel", env=self.env).split()

    def compile(self, source, *more, static=False):
        """An example, compiled with the flags of pkg-config."""
        program = self.scratch / source.stem
        words = ["--cflags", "--libs", *(["--static"] if static else [])]
        flags = [flag.replace("-lkeel", "-l:libkeel.a") if static else flag
                 for flag in self.flags(*words)]
        run("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", *more, source, "-o", program,
            *flags, f"-Wl,-rpath,{self.libdir}:{self.libdir}/keel", "-Wl,--disable-new-dtags",
            env=self.env)
        return program


def install(build, folder):
    """Installs with `folder` as the root, moves the tree, and returns its new prefix."""
    first, moved = folder / "first", folder / "moved"
    run("meson", "install", "-C", build, "--no-rebuild", "--destdir", first)
    (program,) = first.rglob("bin/keel")
    shutil.move(program.parents[1], moved)
    return moved


def check_own_files(root, tree):
    """No installed file may name the checkout, nor a library lie in it."""
    path = str(root).encode()
    for file in tree.prefix.rglob("*"):
        is_text = file.is_file() and file.suffix not in {".a", "", ".gz"} and ".so" not in file.name
        if is_text:
            expect(path not in file.read_bytes(), f"{file} names the checkout")
    for file in (tree.prefix / "bin/keel", tree.libdir / "libkeel.so"):
        said = run("readelf", "-dW", file)
        for search in re.findall(r"R(?:UN)?PATH.*\[(.*)\]", said):
            expect(all(part.startswith("$ORIGIN") for part in search.split(":")),
                   f"{file} searches {search}")
        missing = re.findall(r"(\S+) => not found", run("ldd", file, env=tree.env))
        expect(not missing, f"{file}: not found: {missing}")


def check_headers(tree):
    """Each public header compiles alone."""
    for header in sorted((tree.prefix / "include/keel").glob("*.h")):
        language = ["c", "-std=c11"] if header.name == "norm.h" else ["c++", "-std=c++20"]
        run("c++", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", *language,
            f"-I{tree.prefix}/include", "-include", f"keel/{header.name}", "/dev/null")


def check_own_loop(root, tree, static):
    program = tree.compile(root / "examples/own_loop.cpp", static=static)
    for backend in ("onednn", "reference"):
        said = run(program, backend, cwd=tree.scratch, env=tree.env)
        losses = [float(loss) for loss in re.findall(r"loss (\S+)", said)]
        expect(losses[-1] < 0.05 * losses[0], f"own_loop on {backend} does not learn:\n{said}")
    return said


def check_both_libraries(root, tree):
    shared, static = (check_own_loop(root, tree, static=kind) for kind in (False, True))
    expect(shared == static, f"own_loop: with libkeel.so\n{shared}with libkeel.a\n{static}")


def check_cmake(root, tree):
    build = tree.scratch / "cmake"
    run("cmake", "-S", root / "examples", "-B", build, f"-DCMAKE_PREFIX_PATH={tree.prefix}")
    run("cmake", "--build", build, "--target", "own_loop")
    run(build / "own_loop", cwd=tree.scratch, env=tree.env)


def main():
    root, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    if not all((build / name).exists() for name in NEEDED):
        print("check_install: this build lacks a part of what is installed")
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            tree = Tree(install(build, folder), folder)
            expect(tree.keel("--version").startswith("keel "), "keel --version")
            check_own_files(root, tree)
            check_headers(tree)
            check_both_libraries(root, tree)
            check_cmake(root, tree)
        except Failed as failed:
            print(f"check_install: {failed}")
            return 1
    print("check_install: installed, moved and used, 0 faults")
    return 0


if __name__ == "__main__":
    sys.exit(main())
