"""Holds the lists of tools/mutate, and that of tests/ptx/plant.py, to the code: every mutant can be
planted and has tests, every norm has mutants, every CUDA source with kernels has faults."""
import fnmatch
import pathlib
import re
import sys

import mutant_list
import tree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ptx"))
sys.dont_write_bytecode = True
import plant  # noqa: E402

NORMS = "src/ops/norm/norms.txt"
BACKENDS = ("reference", "onednn")
LEAST = 3  # mutants of a norm in the code of a backend
TEST_CASE = re.compile(r'TEST_CASE(?:_TEMPLATE)?\("([^"]+)"')


def check_planting(root, mutants):
    for mutant in mutants:
        file = root / mutant.file
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        if problem := mutant.problem(text):
            yield f"{mutant.place}: {problem}"


def test_cases(root):
    for path in tree.files(root):
        if path.startswith("tests/") and tree.suffix(path) == ".cpp":
            yield from TEST_CASE.findall((root / path).read_text(encoding="utf-8"))


def check_tests(root, mutants):
    names, seen = list(test_cases(root)), set()
    for mutant in mutants:
        for pattern in set(mutant.tests.split(",")) - seen:
            seen.add(pattern)
            if not fnmatch.filter(names, pattern):
                yield f"{mutant.place}: no test case is called {pattern}"


def check_norms(root, mutants):
    if not (root / NORMS).is_file():
        return
    for number, line in enumerate(tree.lines(root, NORMS), 1):
        norm = line.split()[0]
        counts = {backend: sum(mutant.file.startswith(f"backends/{backend}/") and
                               mutant.place.startswith(f"tests/mutants/{norm}.txt:")
                               for mutant in mutants) for backend in BACKENDS}
        if min(counts.values()) < LEAST:
            found = ", ".join(f"{count} in {backend}" for backend, count in counts.items())
            yield f"{NORMS}:{number}: expected at least {LEAST} mutants of {norm}, got {found}"


FAULTS = "tests/ptx/faults.txt"


def check_faults(root):
    if not (root / FAULTS).is_file():
        return
    faults = list(plant.read_list((root / FAULTS).read_text(encoding="utf-8")))
    names = list(test_cases(root))
    for fault in faults:
        file = root / plant.KERNELS / fault.file
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        if (count := text.count(fault.find)) != 1:
            yield f"{FAULTS}:{fault.number}: occurs {count} times in {fault.file}, expected once"
        for pattern in fault.tests.split(","):
            if not fnmatch.filter(names, pattern):
                yield f"{FAULTS}:{fault.number}: no test case is called {pattern}"
    sources = {fault.source for fault in faults}
    for path in tree.files(root):
        source = path.removeprefix(plant.KERNELS + "/").removesuffix(".cu")
        if path == f"{plant.KERNELS}/{source}.cu" and source not in sources:
            if "launch(" in (root / path).read_text(encoding="utf-8"):
                yield f"{path}: expected faults of it in {FAULTS}, got none"


def check(root):
    entries = list(mutant_list.read_all(root))
    mutants = [entry for entry in entries if isinstance(entry, mutant_list.Mutant)]
    yield from (entry for entry in entries if isinstance(entry, str))
    yield from check_planting(root, mutants)
    yield from check_tests(root, mutants)
    yield from check_norms(root, mutants)
    yield from check_faults(root)


if __name__ == "__main__":
    tree.main(check)
