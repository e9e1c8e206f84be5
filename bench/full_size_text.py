#!/usr/bin/env python3
"""Writes synthetic text of the size of WMT14 En-De or of BookCorpus, to measure how keel reads it.

    python3 bench/full_size_text.py pairs 4500000 DIR       # src-train.txt, targ-train.txt, ...
    python3 bench/full_size_text.py sentences 74000000 DIR  # train.txt, valid.txt, test.txt

The number of a word falls as 1 / rank among the 8,000 most frequent ones and faster beyond, as in
texts, so that a longer text has more different words: 4,500,000 pairs have 1.7 million a side. A
target sentence is its source with every two neighbours exchanged and every word spelled in the
other language. A number of lines and a seed always give the same files. DIR is a new folder.
"""
import argparse
import math
import pathlib
import random

COMMON = 8000  # words whose frequencies are those of Zipf
# Of WMT14 and of BookCorpus: the exponent of frequencies beyond the common words, the mean and the
# largest number of words of a sentence.
PAIRS, SENTENCES = (1.6, 26, 100), (2.0, 13, 40)
PASSAGE = 1000  # sentences
SMALL_SPLIT = 20
CONSONANTS = "bdfgklmnprstvz"


class Spelling(dict):
    """A word of its own for each rank; frequent words are short."""

    def __init__(self, language):
        vowels = "aeiou" if language == "source" else "\u00e4aeiou\u00f6"
        self.parts = [c + v if language == "source" else v + c for c in CONSONANTS for v in vowels]

    def __missing__(self, rank):
        parts, left = self.parts, rank
        word = parts[left % len(parts)]
        while left >= len(parts):
            left = left // len(parts) - 1
            word += parts[left % len(parts)]
        self[rank] = word
        return word


class Text:
    """Sentences as ranks of words, from 1 on."""

    def __init__(self, exponent, mean, longest, seed):
        self.power, self.mean, self.longest = -1 / (exponent - 1), mean, longest
        self.common, self.rare = math.log(COMMON), 1 / (exponent - 1)
        self.random = random.Random(seed).random

    def rank(self):
        place = self.random() * (self.common + self.rare)
        if place < self.common:
            return int(math.exp(place))
        return int(COMMON * (1 - (place - self.common) / self.rare) ** self.power)

    def sentence(self):
        share = self.random() + self.random()  # its square has a tail of long sentences
        length = 1 + int((self.mean - 1) * share * share * 6 / 7)
        return [self.rank() for _ in range(min(length, self.longest))]


def swapped(ranks):
    """Every two neighbours exchanged."""
    other = ranks[:]
    even = len(ranks) // 2 * 2
    other[0:even:2], other[1:even:2] = ranks[1:even:2], ranks[0:even:2]
    return other


def write_pairs(folder, splits):
    source, target = Spelling("source"), Spelling("target")
    for split, count, seed in splits:
        text = Text(*PAIRS, seed)
        with open(folder / f"src-{split}.txt", "w", encoding="utf-8") as source_file, \
                open(folder / f"targ-{split}.txt", "w", encoding="utf-8") as target_file:
            for _ in range(count):
                ranks = text.sentence()
                source_file.write(" ".join([source[r] for r in ranks]) + "\n")
                target_file.write(" ".join([target[r] for r in swapped(ranks)]) + "\n")


def write_sentences(folder, splits):
    words = Spelling("source")
    for split, count, seed in splits:
        text = Text(*SENTENCES, seed)
        name = {"val": "valid"}.get(split, split)
        with open(folder / f"{name}.txt", "w", encoding="utf-8") as file:
            for i in range(count):
                file.write(" ".join([words[r] for r in text.sentence()]) + "\n")
                if (i + 1) % PASSAGE == 0:
                    file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["pairs", "sentences"])
    parser.add_argument("count", type=int, help="training lines")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.count < 3:
        parser.error(f"count: expected 3 or more, got {args.count}")
    try:
        args.folder.mkdir()
    except OSError as error:
        parser.error(f"folder: expected a new one: {error}")
    write = write_pairs if args.kind == "pairs" else write_sentences
    small = min(SMALL_SPLIT, args.count)
    write(args.folder, [("train", args.count, 3 * args.seed), ("val", small, 3 * args.seed + 1),
                        ("test", small, 3 * args.seed + 2)])


if __name__ == "__main__":
    main()
