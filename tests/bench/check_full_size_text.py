#!/usr/bin/env python3
"""Checks bench/full_size_text.py: its files, and how often words occur in them.

usage: tests/bench/check_full_size_text.py ROOT"""
import collections
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else \
    pathlib.Path(__file__).resolve().parents[2]


class FullSizeText(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def run_script(self, *args):
        return subprocess.run([sys.executable, ROOT / "bench/full_size_text.py", *map(str, args)],
                              capture_output=True, text=True, check=False)

    def written(self, kind, count, name, *args):
        """The lines of each file, as lists of words."""
        folder = pathlib.Path(self.scratch.name) / name
        result = self.run_script(kind, count, folder, *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return {path.name: [line.split() for line in path.read_text("utf-8").splitlines()]
                for path in folder.iterdir()}

    def test_pairs(self):
        files = self.written("pairs", 3000, "a")
        self.assertEqual(sorted(files), [f"{side}-{split}.txt" for side in ("src", "targ")
                                         for split in ("test", "train", "val")])
        source, target = files["src-train.txt"], files["targ-train.txt"]
        self.assertEqual((len(source), len(files["src-val.txt"])), (3000, 20))
        self.assertEqual([len(s) for s in source], [len(t) for t in target])
        lengths = [len(s) for s in source]
        self.assertAlmostEqual(sum(lengths) / 3000, 26, delta=2)
        self.assertTrue(1 <= min(lengths) and 60 < max(lengths) <= 100)
        # One spelling in the other language for each word, and every two neighbours exchanged.
        spelled = {}
        for words, others in zip(source, target):
            for i, word in enumerate(words):
                other = i ^ 1 if i ^ 1 < len(words) else i
                self.assertEqual(spelled.setdefault(word, others[other]), others[other])
        self.assertEqual(len(set(spelled.values())), len(spelled))

    def test_frequencies(self):
        lines = self.written("pairs", 3000, "a")["src-train.txt"]
        counts = collections.Counter(word for line in lines for word in line)
        first, second, tenth = (counts.most_common()[i][1] for i in (0, 1, 9))
        # Zipf's law, in whole ranks: log(1 + 1 / rank) of log(8000) + 1 / 0.6.
        share = first / sum(counts.values())
        self.assertAlmostEqual(share, 0.0651, delta=0.005)
        self.assertAlmostEqual(second / first, 0.585, delta=0.05)
        self.assertAlmostEqual(tenth / first, 0.1375, delta=0.02)

    def test_sentences(self):
        files = self.written("sentences", 2500, "a")
        self.assertEqual(sorted(files), ["test.txt", "train.txt", "valid.txt"])
        train = files["train.txt"]
        self.assertEqual([i for i, words in enumerate(train) if not words], [1000, 2001])
        words = sum(map(len, train))
        self.assertAlmostEqual(words / 2500, 13, delta=1)

    def test_seeds(self):
        first = self.written("pairs", 50, "a")
        self.assertEqual(self.written("pairs", 50, "b"), first)
        self.assertNotEqual(self.written("pairs", 50, "c", "--seed", 1), first)
        self.assertNotEqual(first["src-val.txt"], first["src-test.txt"])

    def test_refusals(self):
        scratch = pathlib.Path(self.scratch.name)
        for args, message in [(("pairs", 2, scratch / "n"), "count: expected 3 or more, got 2"),
                              (("pairs", 3, scratch), "folder: expected a new one"),
                              (("words", 3, scratch / "n"), "invalid choice: 'words'")]:
            result = self.run_script(*args)
            self.assertEqual(result.returncode, 2)
            self.assertIn(message, result.stderr)


if __name__ == "__main__":
    unittest.main()
