#!/usr/bin/env python3
"""Makes the man page and the completion for bash from what the program says of its options.

usage: tools/manual.py KEEL MAN_PAGE COMPLETION"""
import pathlib
import re
import subprocess
import sys

SUBCOMMAND = re.compile(r"^  ([a-z0-9]+) {2,}", re.MULTILINE)
OPTION = re.compile(r"^  (?:-\w,)?(--[a-z0-9-]+)", re.MULTILINE)

COMPLETION = r"""# Completes subcommands, options and files for bash. Made by tools/manual.py.
_keel() {
  local word=${COMP_WORDS[COMP_CWORD]} path= part words
  for part in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $part == -* ]] && break
    case "$path $part" in
%(paths)s
    esac
  done
  case "$path" in
%(words)s
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ $word == -* ]] || COMPREPLY+=($(compgen -f -- "$word"))
}
complete -o filenames -F _keel keel
"""


def said(keel, *words):
    return subprocess.run([keel, *words], capture_output=True, text=True, check=True).stdout


def pages(keel, words=()):
    """Every subcommand, parents first: its words, its help, and the names of those below it."""
    text = said(keel, *words, "--help").replace(f"Usage: {keel}", "Usage: keel")
    below = SUBCOMMAND.findall(text.partition("\nSubcommands:\n")[2].partition("\n\n")[0])
    yield words, text, below
    for name in below:
        yield from pages(keel, (*words, name))


def escaped(text):
    """Text as roff takes it: its own signs are no commands."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in lines)


def man_page(version, found):
    parts = [f'.TH KEEL 1 "" "{version}" "User Commands"', ".SH NAME",
             "keel \\- train and compare networks with every normalization", ".SH DESCRIPTION",
             ".nf", escaped(found[0][1]), ".fi", ".SH SUBCOMMANDS"]
    for words, text, _ in found[1:]:
        parts += [f".SS keel {' '.join(words)}", ".nf", escaped(text), ".fi"]
    return "\n".join(parts) + "\n"


def completion(found):
    paths, words = [], []
    for path, text, below in found:
        name = "".join(f" {word}" for word in path)
        if path:
            paths.append(f'      "{name}") path="{name}" ;;')
        words.append(f'    "{name}") words="{" ".join([*below, *OPTION.findall(text)])}" ;;')
    return COMPLETION % {"paths": "\n".join(paths), "words": "\n".join(words)}


def main():
    keel, page, file = sys.argv[1:4]
    found = list(pages(keel))
    pathlib.Path(page).write_text(man_page(said(keel, "--version").strip(), found),
                                  encoding="utf-8")
    pathlib.Path(file).write_text(completion(found), encoding="utf-8")


if __name__ == "__main__":
    main()
