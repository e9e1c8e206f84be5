"""Reads tests/mutants/*.txt, the errors that tools/mutate plants.

    # a comment
    file backends/reference/kernels/norm/layer_norm.cpp
    tests layer_norm*
    sign: dx adds the mean of g
    - rstd[row] * (g.array() - g.mean()
    + rstd[row] * (g.array() + g.mean()

`file` holds for the mutants below it, and so does `tests`: a pattern of doctest, or several with
commas between, of the test cases that must fail. In NAME.txt it is NAME* unless told. A mutant is
its kind and what it does, then what it looks for, which occurs in the file once, and what it puts
in its place; a lone + puts nothing there."""
import dataclasses

FOLDER = "tests/mutants"
KINDS = ("sign", "term", "count", "axis", "detach", "order", "swap", "eps", "mean", "mask", "flag")


@dataclasses.dataclass
class Mutant:
    """One planted error; `place` is where the list has it."""
    place: str
    kind: str
    what: str
    file: str
    tests: str
    find: str = ""
    replacement: str = ""

    @property
    def backend(self):
        """The one under test. The reference is judged only by the oracles."""
        return "reference" if self.file.startswith("backends/reference/") else "onednn"

    def problem(self, text):
        """The reason why it cannot be planted into a file that holds `text`, or None."""
        if self.find == self.replacement:
            return "changes nothing"
        count = text.count(self.find)
        return None if count == 1 else f"stale: occurs {count} times in {self.file}: {self.find}"


def read_list(name, lines):
    """Yields the mutants of one list, and "place: message" for a line that is none of its forms."""
    file, tests, mutant = None, f"{name}*", None
    for number, line in enumerate(lines, 1):
        word, _, rest = line.partition(" ")
        if not line or word == "#":
            continue
        if word == "file":
            file = rest
        elif word == "tests":
            tests = rest
        elif word == "-" and mutant:
            mutant.find = rest
        elif word == "+" and mutant and mutant.find:
            mutant.replacement = rest
            yield mutant
            mutant = None
        elif word[:-1] in KINDS and word.endswith(":") and file and not mutant:
            mutant = Mutant(f"{FOLDER}/{name}.txt:{number}", word[:-1], rest, file, tests)
        else:
            yield f"{FOLDER}/{name}.txt:{number}: expected file, tests, a kind, or - and + after" \
                  f" that, got {line}"
    if mutant:
        yield f"{mutant.place}: expected - and + after it, got the end of the file"


def read_all(root):
    """All mutants below root and the complaints about lines, in the order of the lists."""
    for path in sorted((root / FOLDER).glob("*.txt")):
        yield from read_list(path.stem, path.read_text(encoding="utf-8").splitlines())
