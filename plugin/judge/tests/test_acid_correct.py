"""The acid test raises no alarm on correct norms; a thorough run makes 10,000 calls."""
import itertools
import sys
import unittest

import settings
import torch

import keel_judge
from correct_norms import NORMS

WANTED = 10_000  # calls of the long version
MANY = ("forward", "dx", "dgain", "dbias", "means", "special rows")  # with ever other numbers


class Correct(unittest.TestCase):
    def calls_of(self, number, seed, only=None):
        norm, options = NORMS[number]
        report = keel_judge.acid(norm, isolate=False, quick=True, seed=seed, only=only,
                                 skip=["threads"], **options)
        with self.subTest(norm=str(NORMS[number]), seed=seed):
            self.assertTrue(report.ok, report.text())
        return report.calls

    def test_no_alarm(self):
        """Every property of the first of the list; with KEEL_THOROUGH of all, and then those that
        compare numbers, until the calls are made."""
        numbers = range(len(NORMS) if settings.THOROUGH else 7)
        calls = sum(self.calls_of(number, 0) for number in numbers)
        for seed in itertools.count(1):
            if calls >= WANTED or not settings.THOROUGH:
                break
            calls += sum(self.calls_of(number, seed, MANY) for number in numbers)
            print(f"{calls} calls of correct norms", file=sys.stderr, flush=True)
        self.assertGreater(calls, WANTED - 1 if settings.THOROUGH else 500)


if __name__ == "__main__":
    assert torch
    unittest.main()
