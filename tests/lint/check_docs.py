"""Holds the documentation to the tree: links, anchors and paths lead somewhere, and commands name
subcommands, options, keys and recipes that there are. docs/cli.md is the list of options; this
script holds it to program/, and tests/docs/check_program.py to what the program says itself."""
import functools
import glob
import os
import pathlib
import re
import shlex

import tree

CLI = "docs/cli.md"
KEYS = "docs/keys.md"
PAGE = re.compile(r"(README|CONTRIBUTING|docs/.*|bench/README)\.md$")
TOP = ("src", "backends", "frontend", "models", "studies", "bench", "include", "program", "plugin",
       "examples", "tests", "tools", "docs", ".ci")
SCRIPTS = ("tools/", "bench/", ".ci/")

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
HEADING = re.compile(r"(#+) +(.*?) *$")
REPOSITORY_PATH = re.compile(rf"({'|'.join(map(re.escape, TOP))})/[\w./*{{}},<>-]*$")
# Words that stand for a name: FILE, NAME_test.cpp, <task>, X.
PLACEHOLDER = re.compile(r"<|(?<![A-Za-z])X(?![A-Za-z])|[A-Z]{4,}(?!.*\.md$)|\.\.\.")
OPTION_ROW = re.compile(r"\| *`(--[a-z0-9-]+)")
SHARED = "Shared:"
KEY_ROW = re.compile(r"\| *`((?:model|train|data)\.\w+)`")
DECLARED = re.compile(r'(?:add_option|add_flag|add_choice|add_size)\(\s*(?:\*?\w+,\s*)?'
                      r'"(--[a-z0-9-]+)"')
EVERYWHERE = {"--help", "-h"}


class Page:
    """A page's lines in their parts: headings, prose with inline code, and blocks of code."""

    def __init__(self, root, path):
        self.path = path
        self.headings, self.prose, self.code = [], [], []  # of (line number, text)
        fenced = quiet = listed = False
        after_blank = True
        for number, line in enumerate(tree.lines(root, path), 1):
            if line.lstrip().startswith("```"):
                # A block in another language than the shell's is no list of commands.
                fenced, quiet = not fenced, line.strip()[3:] not in ("", "sh", "console")
            elif fenced:
                self.code += [] if quiet else [(number, line)]
            elif line.startswith("    ") and not listed and (after_blank or self.in_code(number)):
                self.code.append((number, line))
            elif heading := HEADING.match(line):
                self.headings.append((number, heading[2], len(heading[1])))
                listed = False
            else:
                self.prose.append((number, line))
                listed = bool(re.match(r"\s*([-*]|\d+\.) ", line)) or (listed and line[:1] in " ")
            after_blank = not line.strip()

    def in_code(self, number):
        return bool(self.code) and self.code[-1][0] == number - 1

    def anchors(self):
        """The anchors of the headings; a second one of a name has -1 after it."""
        seen, result = {}, set()
        for _, text, _ in self.headings:
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            count = seen[slug] = seen.get(slug, -1) + 1
            result.add(slug if count == 0 else f"{slug}-{count}")
        return result


class Tree:
    """The names that pages may mention."""

    def __init__(self, root):
        self.root, self.files = root, tree.files(root)
        self.folders = {str(parent) for path in self.files
                        for parent in pathlib.PurePath(path).parents}
        self.pages = {path: Page(root, path) for path in self.files if PAGE.match(path)}
        self.options = read_options(self.pages[CLI]) if CLI in self.pages else {}
        self.keys = {key for _, line in self.pages[KEYS].prose for key in KEY_ROW.findall(line)
                     } if KEYS in self.pages else set()
        self.recipes = {pathlib.PurePath(path).stem for path in self.files
                        if path.startswith("models/") and path.endswith(".toml")} | {"short"}

    def holds(self, path):
        return path in self.folders or (self.root / path).is_file()

    @functools.lru_cache(maxsize=None)
    def text_of(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace")


def read_options(page):
    """The options of each subcommand, "bench step" for example, of the tables of docs/cli.md."""
    options, chosen, shared = {}, None, False
    for number, text, *rest in sorted([*page.headings, *page.prose]):
        if rest:
            chosen = text[5:] if text.startswith("keel ") else None
            if chosen:
                options[chosen] = set(EVERYWHERE)
        elif chosen:
            shared = text.startswith(SHARED) or (shared and bool(text.strip()))
            options[chosen].update(OPTION_ROW.findall(text),
                                   re.findall(r"`(--[a-z0-9-]+)`", text) if shared else [])
    return options


def link_problem(known, page, target):
    """Why a link leads nowhere, or None."""
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    place = os.path.normpath(os.path.join(os.path.dirname(page.path), path)) if path else page.path
    if not known.holds(place):
        return f"a link to {target}, and {place} is not there"
    if anchor and place in known.pages and anchor not in known.pages[place].anchors():
        return f"a link to {target}, and {place} has no such heading"
    return None


def expand(path):
    """`a/{b,c}.h` as the shell has it."""
    braces = re.search(r"\{([^{}]*,[^{}]*)\}", path)
    if not braces:
        return [path]
    return [each for part in braces[1].split(",")
            for each in expand(path[:braces.start()] + part + path[braces.end():])]


def path_problem(known, text):
    """Why inline code that looks like a path of the repository is none, or None."""
    if not REPOSITORY_PATH.match(text) or PLACEHOLDER.search(text):
        return None
    for path in expand(text):
        found = glob.glob(str(known.root / path)) if "*" in path else known.holds(path.rstrip("/"))
        if not found:
            return f"{path} is not there"
    return None


def commands(text):
    """The words of each command in a line of shell: those of pipes and lists one by one."""
    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words = []
    for word in [*lexer, "|"]:
        if word and set(word) <= set("|&;()"):
            yield words
            words = []
        elif words or not re.match(r"[A-Z_]+=", word):  # not a variable of the environment
            words.append(word)


def option_names(words):
    return [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]


def keel_problem(known, words):
    """The part of `keel WORDS` that the program would not take, or None."""
    names = [word for word in words if re.match(r"[a-z]\w*$", word)]
    here = next((path for path in (" ".join(words[:n]) for n in (3, 2, 1))
                 if path in known.options), None)
    if here is None:
        return f"keel {words[0]}: no such subcommand" if names[:1] == words[:1] else None
    for option in option_names(words):
        if option not in known.options[here]:
            return f"keel {here} has no option {option}"
    for option, value in zip(words, words[1:]):
        key = value.partition("=")[0]
        if option == "--set" and re.match(r"[a-z]+\.[a-z]", key) and key not in known.keys:
            return f"no key is called {key}"
        if option == "--recipe" and re.match(r"[a-z]\w*$", value) and value not in known.recipes:
            return f"no recipe is called {value}"
    return None


def tool_problem(known, words):
    """The words that a script of tools/ would not take, by its text, or None."""
    if not known.holds(words[0]):
        return None if PLACEHOLDER.search(words[0]) else f"{words[0]} is not there"
    return next((f"{words[0]} has no option {option}" for option in option_names(words[1:])
                 if words[0] in known.files and option not in known.text_of(words[0])
                 and option not in EVERYWHERE), None)


def command_problem(known, text):
    try:
        found = list(commands(text))
    except ValueError as error:
        return f"not a command: {error}"
    for words in found:
        problem = None
        if len(words) > 1 and words[0] in ("keel", "build/keel"):
            problem = keel_problem(known, words[1:])
        elif words and words[0].startswith(SCRIPTS):
            problem = tool_problem(known, words)
        if problem:
            return problem
    return None


def blocks(code):
    """Lines of code with those that go on after a backslash joined to the first."""
    joined = []
    for number, line in code:
        if joined and joined[-1][1].endswith("\\"):
            joined[-1] = (joined[-1][0], joined[-1][1][:-1] + " " + line.strip())
        else:
            joined.append((number, line.strip()))
    return [(number, line) for number, line in joined
            if re.search(r"(^|[|(;&] *|[A-Z]=\S* )((build/)?keel|tools/\w|bench/\w)", line)]


def check_page(known, page):
    for number, line in page.prose:
        for target in LINK.findall(CODE.sub("", line)):
            yield number, link_problem(known, page, target)
        for code in CODE.findall(line):
            starts = code.split(" ")[0]
            is_command = " " in code and (starts in ("keel", "build/keel")
                                          or starts.startswith(SCRIPTS))
            check_code = command_problem if is_command else path_problem
            yield number, check_code(known, code)
    for number, line in blocks(page.code):
        yield number, command_problem(known, line)


def check_list(known):
    """Options that program/ declares and docs/cli.md lacks, and the other way round."""
    sources = [path for path in known.files if re.match(r"program/\w+\.cpp$", path)]
    declared = {option for path in sources for option in DECLARED.findall(known.text_of(path))}
    listed = set().union(*known.options.values()) - EVERYWHERE - {"--version"}
    for option in sorted(declared - listed):
        yield f"{CLI}:1: the program has {option}, and this page has not"
    for option in sorted(listed - declared):
        yield f"{CLI}:1: the program has no option {option}"


def check(root):
    known = Tree(root)
    for page in known.pages.values():
        yield from (f"{page.path}:{number}: {problem}"
                    for number, problem in check_page(known, page) if problem)
    if known.options:
        yield from check_list(known)


if __name__ == "__main__":
    tree.main(check)
