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
NEEDED = ("keel", "include/libkeel.so", "include/libkeel.a", "include/keel.1")


class Failed(Exception):
    """A check does not hold."""


def run(*command, code=0, **options):
    """The stdout of a command, which must end with this exit code."""
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


def check_manual(tree):
    """The man page and the completion have the options of the program."""
    page = (tree.prefix / "share/man/man1/keel.1").read_text(encoding="utf-8")
    expect("\n.SS keel bench step\n" in page and "\\-\\-on\\-nonfinite TEXT" in page, "keel.1")
    file = tree.prefix / "share/bash-completion/completions/keel"
    script = (f'source {file}; COMP_WORDS=(keel bench step --pro) COMP_CWORD=3; _keel; '
              'echo "${COMPREPLY[@]}"')
    expect(run("bash", "-c", script, cwd=tree.scratch) == "--profile\n", "completion for bash")


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


def build_examples(root, tree):
    """The folder of all examples, built by CMake."""
    build = tree.scratch / "cmake"
    run("cmake", "-S", root / "examples", "-B", build, f"-DCMAKE_PREFIX_PATH={tree.prefix}")
    run("cmake", "--build", build, "--parallel", "2")
    return build


def said_by(tree, program, *words, code=0, text=None):
    return run(program, *words, code=code, cwd=tree.scratch, env=tree.env, input=text)


def last_error(said):
    return float(re.findall(r"last weights: error (\S+) %", said)[-1])


def check_own_task(tree, program):
    """Every subcommand knows the task; a run that stopped ends as one that did not."""
    def table(*words, **more):
        return said_by(tree, program, *words, **more)

    train = ("train", "table", "--set", "train.epochs=4", "--quiet", "--out")
    whole = table(*train, "runs/whole")
    expect(last_error(whole) < 20, f"table does not learn:\n{whole}")
    table(*train, "runs/part", "--set", "train.epochs=2")
    resumed = table("train", "--resume", "runs/part", "--set", "train.epochs=4", "--quiet")
    expect(last_error(resumed) == last_error(whole), f"resumed, table ends otherwise:\n{resumed}")
    table(*train, "runs/bn", "--norm", "batchnorm")
    answers = table("predict", "runs/whole", "--text", "0.1,0.1", "--text", "0.5,-0.4")
    expect(set(answers.split()) <= {"red", "blue"}, f"answers: {answers}")
    refused = table("predict", "runs/whole", "--text", "0.1", code=3)
    expect("expected 2 numbers and a class" in refused, refused)
    expect("match float64 within rounding error" in table("compare", "table"), "compare table")
    table("report", "runs/whole", "runs/bn", "--out", "report")
    expect((tree.scratch / "report/report.html").is_file(), "no report")
    expect("\ntable " in table("list", "models"), "list models")
    table("bench", "step", "table", "--rounds", "3", "--json")
    expect("nearest: 'table'" in table("train", "tabel", code=2), "a name nearly right")
    folder = tree.scratch / "own"
    folder.mkdir()
    rows = "".join(f"{i % 7},{i % 5},{'red' if i % 7 > 3 else 'blue'}\n" for i in range(400))
    (folder / "table.csv").write_text("width,height,class\n" + rows, encoding="utf-8")
    own = table(*train, "runs/own", "--data", folder, "--set", "train.batch=16",
                "--set", "train.epochs=30")
    expect(last_error(own) < 15, f"a file's rows are not learned:\n{own}")


def check_own_norm(root, tree, program):
    said_by(tree, program, "gradcheck")
    compared = said_by(tree, program, "compare", "norm", "l1norm", "--strict", "--rank")
    for op in ("l1_norm", "l1_norm_backward"):
        expect(re.search(rf"^ok .* {op} ", compared, re.MULTILINE), f"{op}:\n{compared}")
    said_by(tree, program, "compare", "norm", "l1norm", "--inject",
            "node=norm/l1_norm,kind=scale,by=1.001", code=1)
    expect("l1norm" in said_by(tree, program, "list", "norms", "l1norm"), "list norms l1norm")
    few = ("mnist_mlp", "--norm", "l1norm", "--set", "model.hidden=32", "--set",
           "data.train_rows=512", "--set", "train.epochs=1", "--quiet")
    said_by(tree, program, "train", *few, "--out", "runs/l1")
    # Without its second kernel the backend refuses the op by name.
    source = tree.scratch / "reference_only.cpp"
    text = (root / "examples/own_norm.cpp").read_text(encoding="utf-8")
    source.write_text(text.replace(', {"onednn", prepare<float>}', ""), encoding="utf-8")
    said = said_by(tree, tree.compile(source), "train", *few, "--out", "runs/none", code=7)
    expect("backend onednn refuses l1_norm " in said, said)


def check_serving(tree, build):
    said_by(tree, build / "own_loop")
    alone, shared = (said_by(tree, build / "serving", "own_loop.safetensors", threads)
                     for threads in (1, 4))
    expect(alone == shared, f"expected the same answers of 1 and of 4 threads:\n{alone}{shared}")
    for wrong in ((), ("own_loop.safetensors", "0")):
        said = said_by(tree, build / "serving", *wrong, code=2)
        expect("usage: serving FILE [THREADS]" in said, said)


def check_python(root, tree):
    named = os.environ.get("KEEL_PYTHON")
    python = next((python for python in ([named] if named else ["python3", "/usr/bin/python3"])
                   if subprocess.run([python, "-c", "import numpy"],
                                     capture_output=True).returncode == 0), None)
    if python is None:
        print("check_install: no NumPy: examples/read_run.py was not tried")
        return
    said = said_by(tree, python, root / "examples/read_run.py", "runs/whole")
    expect("first/weight (2, 64)" in said and "valid error by epoch: [" in said, said)


def check_examples(root, tree):
    build = build_examples(root, tree)
    check_own_task(tree, build / "table_classifier")
    check_own_norm(root, tree, build / "own_norm")
    said_by(tree, build / "own_loop_static", "reference")
    check_serving(tree, build)
    check_python(root, tree)


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
            check_manual(tree)
            check_headers(tree)
            check_both_libraries(root, tree)
            check_examples(root, tree)
        except Failed as failed:
            print(f"check_install: {failed}")
            return 1
    print("check_install: installed, moved and used, 0 faults")
    return 0


if __name__ == "__main__":
    sys.exit(main())
