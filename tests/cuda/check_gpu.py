#!/usr/bin/env python3
"""Runs tools/gpu with programs that only pretend: its refusals, its exit codes and its report.

usage: tests/cuda/check_gpu.py ROOT
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

# All that the script calls, so that a machine's own nvidia-smi and compute-sanitizer are not seen.
COMMANDS = ("bash awk cat cmp cp date dirname du env grep ldd ls mkdir mktemp printf realpath rm "
            "sh sleep strip tail tee timeout xargs").split()
KEEL = """case "$1 $FAULT" in
  --version*) exit 0;;
  *refused) [ "$1" != bench ] || { echo 'keel: error: no GPU can be used' >&2; exit 7; };;
  *stopped) [ "$1" != compare ] || exit 124;;
  train*) while [ "$1" != --out ]; do shift; done
          mkdir -p "$2/checkpoints"
          if [ "$FAULT" = random ]; then echo "$2"; fi > "$2/checkpoints/step";;
esac"""
TESTS = """case "$1 $FAULT" in
  --version*) exit 0;;
  *matmul*failing) exit 1;;
  *matmul*none) echo '[doctest] test cases: 0 | 0 passed';;
esac"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


class Place:
    """A folder with commands, and a pack: the script beside programs."""

    def __init__(self, root, folder):
        self.folder, self.pack, self.commands = folder, folder / "pack", folder / "bin"
        self.report = folder / "report.md"
        self.commands.mkdir()
        for name in COMMANDS:
            (self.commands / name).symlink_to(shutil.which(name))
        write(self.commands / "nvidia-smi", "[ \"$FAULT\" != driver ] || { echo broken; exit 9; }")
        for where in (self.pack, folder / "tree/tools"):
            where.mkdir(parents=True)
            shutil.copy(root / "tools/gpu", where)
        write(self.pack / "keel", KEEL)
        write(self.pack / "keel_tests", TESTS)

    def run(self, *words, script="pack/gpu", fault="no", report=None):
        """Exit code, what was printed, and the report."""
        self.report.unlink(missing_ok=True)
        done = subprocess.run(
            [self.folder / script, *words, "--report", report or self.report], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            env={"PATH": str(self.commands), "FAULT": fault, "TMPDIR": str(self.folder)})
        text = self.report.read_text(encoding="utf-8") if self.report.exists() else ""
        return done.returncode, done.stdout, text


def refusals(place):
    """The faults of the cases in which it must end before the first step."""
    def expect(code, words, *arguments, **options):
        got, said, report = place.run(*arguments, **options)
        if got != code or words not in said or report:
            yield f"{arguments} {options}: expected {code}, '{words}', got {got}, '{said.strip()}'"

    yield from expect(2, "usage", "--peer", "jax")
    yield from expect(7, "no ", "--programs", place.folder / "nothing")
    yield from expect(7, "finds no GPU here: broken", fault="driver")
    yield from expect(7, "cannot use the GPU: keel: error: no GPU can be used", fault="refused")
    yield from expect(4, "cannot be written", report=place.folder / "nothing/report.md")
    write(place.pack / "keel", "echo libcudnn.so.9: cannot open >&2; exit 127")
    yield from expect(7, "does not start: libcudnn.so.9: cannot open")
    write(place.pack / "keel", KEEL)
    (place.commands / "nvidia-smi").rename(place.folder / "nvidia-smi")
    yield from expect(7, "no nvidia-smi")
    (place.folder / "nvidia-smi").rename(place.commands / "nvidia-smi")
    pack = {"script": "tree/tools/gpu"}
    yield from expect(7, "no build/", "--pack", place.folder / "made", **pack)
    write(place.folder / "tree/build/keel", KEEL)
    yield from expect(7, "was built without CUDA", "--pack", place.folder / "made", **pack)


def reports(place):
    """The faults of reports."""
    def expect(code, *words, fault="no", arguments=()):
        got, said, report = place.run(*arguments, fault=fault)
        missing = [word for word in words if word not in report]
        if got != code or missing:
            yield (f"{fault} {arguments}: exit code {got}, the report lacks {missing}\n"
                   f"{said}{report}")

    def titles(*arguments):
        report = place.run(*arguments)[2]
        return [line[3:] for line in report.splitlines() if line.startswith("## ")]

    yield from expect(0, "0 steps failed, 1 were left out", "- left out: compute-sanitizer")
    yield from expect(1, "1 steps failed", "- failed: Products", fault="failing")
    yield from expect(1, "1 steps failed", "- failed: Products", fault="none")
    yield from expect(1, "stopped at its limit of 900 s", fault="stopped")
    yield from expect(1, "- failed: Both trainings gave the same weights", fault="random")
    whole, quick = titles(), titles("--quick")
    if "Norms" not in whole or [title for title in whole if title in quick] != quick:
        yield f"steps: {whole}; with --quick: {quick}"
    write(place.commands / "compute-sanitizer", "exit 0")
    yield from expect(0, "0 steps failed, 0 were left out", *(
        f"## compute-sanitizer, {tool}"
        for tool in ("memcheck", "synccheck", "racecheck", "initcheck")))


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        place = Place(root, pathlib.Path(scratch))
        bad = [*refusals(place), *reports(place)]
    print(*bad, sep="\n", end="\n" if bad else "")
    print(f"check_gpu: tools/gpu with programs that pretend: {len(bad)} faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
