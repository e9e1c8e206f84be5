"""Holds a ratio in bench/results to the quotient of the columns beside it: "A / keel" to "A" over
"keel, in turns". A row whose ratio was made of other times misleads its reader."""
import re

import tree

OURS = "keel, in turns"
NUMBER = re.compile(r"[\d,]*\d(?:\.\d+)?")


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def number(cell):
    """The first number of a cell, and half of its last digit."""
    text = NUMBER.search(cell).group().replace(",", "")
    return float(text), 0.5 * 10.0 ** -len(text.partition(".")[2])


def check_row(head, row):
    ratio_at = head.index(f"{head[head.index(OURS) - 1]} / keel")
    (theirs, a), (ours, b), (ratio, c) = (number(row[i]) for i in (
        head.index(OURS) - 1, head.index(OURS), ratio_at))
    least, most = (theirs - a) / (ours + b) - c, (theirs + a) / (ours - b) + c
    if not least <= ratio <= most:
        yield f"the ratio {ratio} is not {theirs} over {ours}"


def check(root):
    for path in tree.files(root):
        if not re.fullmatch(r"bench/results/[^/]+\.md", path):
            continue
        head = []
        for number_of_line, line in enumerate((root / path).read_text().split("\n"), 1):
            if not line.startswith("|"):
                head = []
            elif OURS in cells_of(line):
                head = cells_of(line)
            elif head and not line.startswith("|-"):
                for problem in check_row(head, cells_of(line)):
                    yield f"{path}:{number_of_line}: {problem}"


if __name__ == "__main__":
    tree.main(check)
