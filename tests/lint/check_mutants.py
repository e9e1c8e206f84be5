"""Holds the lists of tools/mutate to the code: every mutant can be planted, every norm has some."""
import mutant_list
import tree

NORMS = "src/ops/norm/norms.txt"
BACKENDS = ("reference", "onednn")
LEAST = 3  # mutants of a norm in the kernels of a backend


def check_planting(root, mutants):
    for mutant in mutants:
        file = root / mutant.file
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        if problem := mutant.problem(text):
            yield f"{mutant.place}: {problem}"


def check_norms(root, mutants):
    if not (root / NORMS).is_file():
        return
    for number, line in enumerate(tree.lines(root, NORMS), 1):
        kernels = [f"backends/{b}/kernels/norm/{line.split()[0]}.cpp" for b in BACKENDS]
        counts = {file: sum(mutant.file == file for mutant in mutants) for file in kernels}
        if min(counts.values()) < LEAST:
            found = ", ".join(f"{count} of {file}" for file, count in counts.items())
            yield f"{NORMS}:{number}: expected at least {LEAST} mutants of each kernel, got {found}"


def check(root):
    entries = list(mutant_list.read_all(root))
    mutants = [entry for entry in entries if isinstance(entry, mutant_list.Mutant)]
    yield from (entry for entry in entries if isinstance(entry, str))
    yield from check_planting(root, mutants)
    yield from check_norms(root, mutants)


if __name__ == "__main__":
    tree.main(check)
