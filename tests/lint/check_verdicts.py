"""Keeps the claims of studies where tests can try them on synthetic numbers: in the verdicts."""
import re

import tree

# How a claim is added to a study's result.
JUDGES = re.compile(r"\.(at_most|above|near|not_judged|above_on_average)\(|\.checks\b")
ALLOWED = re.compile(r"studies/(verdicts_\w+|study)\.(cpp|h)$")


def check(root):
    for path in tree.files(root):
        if not path.startswith("studies/") or tree.suffix(path) not in tree.CPP \
                or ALLOWED.search(path):
            continue
        for number, line in enumerate((root / path).read_text().split("\n"), 1):
            if JUDGES.search(line):
                yield f"{path}:{number}: a claim is judged here, not in studies/verdicts_*.cpp"


if __name__ == "__main__":
    tree.main(check)
