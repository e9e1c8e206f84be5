#!/usr/bin/env python3
"""Runs tools/gpu with programs that only pretend: its refusals, its exit codes and its reports.

usage: tests/cuda/check_gpu.py ROOT
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

# All that the script calls, so that a machine's own nvidia-smi, compute-sanitizer and PyTorch are
# not seen.
COMMANDS = ("awk bash cat chmod cmp cp cut date dirname du env git grep ldd ls mkdir mktemp printf "
            "python3 realpath rm sh sleep sort stat strip tail tar timeout touch tr xargs xz"
            ).split()
TIMES = '{"median": 0.001}'
NORMS = ('{"norms": [{"norm": "layernorm", "shape": [8, 8], "forward": {"seconds": %s, "ratio": 0.5'
         '}, "backward": {"seconds": %s, "ratio": 0.25}}, {"norm": "mabn", "shape": [8, 8], '
         '"refusal": "too narrow"}]}') % (TIMES, TIMES)
STEP = ('{"step": %s, "products": %s, "products_flop": 1e9, "optimizer": %s, "profile": '
        '[{"op": "matmul", "node": "fc1", "nanoseconds": 5000}]}') % (TIMES, TIMES, TIMES)
KEEL = f"""case "$1 $FAULT" in
  --version*) exit 0;;
  *refused) [ "$1" != bench ] || {{ echo 'keel: error: no GPU can be used' >&2; exit 7; }};;
  compare*slow) sleep 60;;
  compare*wrong) echo DIVERGES; exit 1;;
  bench*) case "$2" in norms) echo '{NORMS}';; step) echo '{STEP}';; esac;;
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
    """A checkout with commands, and programs that pretend, packed as `prepare` does it."""

    def __init__(self, root, folder):
        self.folder, self.tree, self.commands = folder, folder / "tree", folder / "bin"
        self.commands.mkdir()
        for name in COMMANDS:
            if shutil.which(name):
                (self.commands / name).symlink_to(shutil.which(name))
        write(self.commands / "nvidia-smi", "[ \"$FAULT\" != driver ] || { echo broken; exit 9; }")
        (self.tree / "tools").mkdir(parents=True)
        for name in ("gpu", "gpu_report.py"):
            shutil.copy(root / "tools" / name, self.tree / "tools")
        write(self.tree / "plugin/python/tests/test_cuda.py", "pass")
        (self.tree / ".gpu").mkdir()
        self.pack(KEEL)

    def pack(self, keel):
        """Programs as `prepare` packs them."""
        programs = self.folder / "programs"
        write(programs / "keel", keel)
        write(programs / "keel_tests", TESTS)
        shutil.rmtree(self.folder / "keel-programs", ignore_errors=True)
        subprocess.run(["tar", "-C", programs, "-cJf", self.tree / ".gpu/programs.tar.xz", "."],
                       check=True)

    def run(self, *words, fault="no", seconds=345):
        """Exit code, what was printed, and the report: the page and the JSON."""
        out = self.folder / "report"
        shutil.rmtree(out, ignore_errors=True)
        done = subprocess.run(
            [self.tree / "tools/gpu", *words], text=True, cwd=self.tree, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=False,
            env={"PATH": str(self.commands), "FAULT": fault, "TMPDIR": str(self.folder),
                 "KEEL_GPU_SECONDS": str(seconds)})
        page = out / f"{words[0]}.md" if words else out
        text = page.read_text(encoding="utf-8") if page.is_file() else ""
        return done.returncode, done.stdout, text


def refusals(place):
    """The faults of the cases in which it must end before the first step."""
    out = place.folder / "report"

    def expect(code, words, *arguments, **options):
        got, said, report = place.run(*arguments, **options)
        if got != code or words not in said or report:
            yield f"{arguments} {options}: expected {code}, '{words}', got {got}, '{said.strip()}'"

    yield from expect(2, "usage")
    yield from expect(2, "usage", "--peer")
    yield from expect(7, "finds no GPU here: broken", "check", out, fault="driver")
    yield from expect(7, "cannot use the GPU: keel: error: no GPU", "check", out, fault="refused")
    (place.folder / "file").touch()
    yield from expect(4, "cannot be written", "check", place.folder / "file/report")
    place.pack("echo libcudnn.so.9: cannot open >&2; exit 127")
    yield from expect(7, "does not start: libcudnn.so.9: cannot open", "check", out)
    (place.tree / ".gpu/programs.tar.xz").unlink()
    yield from expect(7, "no build/", "measure", out)
    write(place.tree / "tools/setup", "exit 1")
    yield from expect(1, "tools/setup --gpu --each-isa failed", "prepare")
    write(place.tree / "tools/setup", "exit 0")
    write(place.commands / "ninja", "exit 0")
    yield from expect(7, "no build/./keel", "prepare")
    write(place.tree / "build/keel", KEEL)
    yield from expect(7, "was built without CUDA", "prepare")
    place.pack(KEEL)


def reports(place):
    """The faults of reports."""
    out = place.folder / "report"

    def expect(code, phase, *words, **options):
        got, said, report = place.run(phase, out, **options)
        missing = [word for word in words if word not in report]
        if got != code or missing:
            yield f"{phase} {options}: exit code {got}, the report lacks {missing}\n{said}{report}"

    yield from expect(0, "check", "| left out | 0 | compute-sanitizer, which comes with CUDA |",
                      "| products |", "| the same weights twice: char_lm |")
    yield from expect(1, "check", "## 1: products", fault="failing")
    yield from expect(1, "check", "## no case: products", fault="none")
    yield from expect(1, "check", "## 1: the same weights twice: char_lm", fault="random")
    yield from expect(1, "check", "## 1: keel compare char_lm", "DIVERGES", fault="wrong")
    # A step that ran out of time is named and is no failure.
    yield from expect(0, "check", "| out of time |", "keel compare norm layernorm", fault="slow",
                      seconds=13)
    yield from expect(0, "measure", "| layernorm | 8x8 | 1000.0 | 0.50 | 1000.0 | 0.25 | - |",
                      "too narrow", "step 1.000 ms", "1.0 TFLOP/s", "5.0 us matmul fc1",
                      "| left out | 0 | PyTorch beside keel")
    made = json.loads((out / "measure.json").read_text(encoding="utf-8"))
    if [step["bench"]["step"]["median"] for step in made["steps"]
            if step["title"] == "step char_lm"] != [0.001]:
        yield f"measure.json: {made}"
    write(place.commands / "compute-sanitizer", "exit 0")
    yield from expect(0, "check", *(f"compute-sanitizer, {tool}: cuda once" for tool in (
        "memcheck", "synccheck", "racecheck", "initcheck")))


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
