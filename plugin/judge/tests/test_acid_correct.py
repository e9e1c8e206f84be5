"""The acid test raises no alarm on correct norms; a thorough run makes 10,000 calls."""
import unittest

import settings
import torch

import keel_judge
from correct_norms import NORMS

WANTED = 10_000 if settings.THOROUGH else 0  # calls


class Correct(unittest.TestCase):
    def check(self, number, seed, is_quick):
        norm, options = NORMS[number]
        report = keel_judge.acid(norm, isolate=False, quick=is_quick, seed=seed,
                                 skip=["threads"], **options)
        self.assertTrue(report.ok, f"seed {seed}\n{report.text()}")
        return report.calls

    def test_no_alarm(self):
        """The first of the list in short; with KEEL_THOROUGH all, with ever other numbers."""
        calls, seed = 0, 0
        while True:
            for number in range(len(NORMS) if settings.THOROUGH else 7):
                with self.subTest(norm=str(NORMS[number]), seed=seed):
                    calls += self.check(number, seed, not settings.THOROUGH)
            seed += 1
            if calls >= WANTED:
                break
        print(f"{calls} calls of correct norms")
        self.assertGreater(calls, 500)


if __name__ == "__main__":
    assert torch
    unittest.main()
