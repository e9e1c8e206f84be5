"""Holds comments of headers to plain English: no "behind" for after, and no sentence that begins
with What, Of, Those, Whoever or Whatever and has no main verb."""
import collections
import re
import sys

import tree

FOLDERS = ("src", "backends", "frontend", "models", "studies", "bench", "program")
HEADERS = {".h", ".cuh"}

BEHIND = re.compile(r"\bbehind\b", re.IGNORECASE)
IDIOMS = re.compile(r"\b(left|leaves?|falls?|lags?) behind\b|\bbehind the host\b|"
                    r"\bbehind (an|the|one) (\w+ )?interface\b", re.IGNORECASE)

# How many finite verbs a sentence must have that begins so: the clause of "What ..." has one too.
OPENERS = {"What": 2, "Whatever": 2, "Whoever": 2, "Those": 1, "Of": 1}

VERBS = frozenset("""
is are was were am has have had does do did can could may might must shall should will would cannot
gets goes gives takes makes keeps holds lies lie stands stand comes come becomes become begins begin
ends end starts start stays stay remains remain returns return throws throw reads read writes write
calls runs uses needs wants knows know says say finds counts adds sums joins draws computes changes
depends depend differs differ belongs belong follows follow means mean shows tells fits fit fills
fill allocates copies contains consists exists exist appears happens allows lets leaves leave sees
see serves share shares stores loads costs moves merges builds prints parses names sorts sets sends
wait waits waits works work lets puts appends asks maps marks picks chooses converts checks refuses
fails fail lives live passes pass applies apply states covers replaces resets turns tries equals
gave got went took made kept held lay stood came became began ended stayed returned wrote ran found
added read left said drew changed
""".split())

WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"`(])")
QUOTED = re.compile(r"\"[^\"]*\"|'[^' ]*'|`[^`]*`|\([^()]*\)")


def blocks(lines):
    """Yields (number of the first line, text) of each comment that stands on lines of its own."""
    start, words = 0, []
    for number, line in enumerate([*lines, ""], 1):
        text = line.strip()
        prose = text[2:].strip() if text.startswith("//") else ""
        if prose and not words:
            start = number
        if prose:
            words.append(prose)
        elif words:
            yield start, words
            words = []


def lacks_verb(sentence):
    """Whether a sentence that begins like a clause has no main verb."""
    if not sentence.endswith("."):
        return False
    words = WORD.findall(QUOTED.sub(" ", sentence))
    needed = OPENERS.get(words[0], 0) if words and sentence.startswith(words[0]) else 0
    return sum(word.lower() in VERBS for word in words) < needed


def sentences(start, lines):
    """Yields (line number, sentence) of a comment; a sentence may go over several lines."""
    text, places = " ".join(lines), []
    for offset, line in enumerate(lines):
        places += [start + offset] * (len(line) + 1)
    begin = 0
    for match in [*SENTENCE_END.finditer(text), None]:
        end = match.start() if match else len(text)
        yield places[begin], text[begin:end]
        begin = match.end() if match else end


def check_file(root, path):
    lines = tree.lines(root, path)
    for number, line in enumerate(lines, 1):
        comment = line.partition("//")[2]
        if BEHIND.search(QUOTED.sub(" ", IDIOMS.sub(" ", comment))):
            yield f'{path}:{number}: "behind": say after, or what stands there'
    for start, words in blocks(lines):
        for number, sentence in sentences(start, words):
            if lacks_verb(sentence):
                yield f"{path}:{number}: no main verb: {sentence[:60]}"


def check(root):
    counts = collections.Counter()
    for path in tree.files(root):
        folder = path.partition("/")[0]
        if folder in FOLDERS and tree.suffix(path) in HEADERS:
            for problem in check_file(root, path):
                counts[folder] += 1
                yield problem
    if sum(counts.values()) > 1:
        print(", ".join(f"{folder} {counts[folder]}" for folder in FOLDERS), file=sys.stderr)


if __name__ == "__main__":
    tree.main(check)
