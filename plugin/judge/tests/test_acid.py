"""The acid test names remade bugs for the right reason, and has nothing against correct norms."""
import os
import random
import re
import signal
import sys
import unittest

import settings
import torch
import torch.nn.functional as F

import keel_judge
from acid_bugs import BUGS, LAYER, MANNERS


def tried(bug, only, **options):
    """The verdicts of some properties, in this process."""
    random.seed(0)
    options = {"quick": True, "isolate": False, "only": only, **bug.options, **options}
    return keel_judge.acid(bug.kernel, as_=bug.norm, **options)


class Bugs(unittest.TestCase):
    def test_each_is_named_for_its_reason(self):
        """By the property that is about it, in words that say what is wrong."""
        for bug in BUGS:
            with self.subTest(bug.source):
                # Few cases of a quick test might miss what depends on the shape.
                report = tried(bug, [bug.tells], quick=bug.tells not in ("sizes", "forward"))
                verdict = report.verdicts[bug.tells]
                self.assertEqual(verdict.level, bug.level, report.text())
                said = " ".join([verdict.words, *verdict.also])
                self.assertRegex(said, re.compile(bug.words, re.S), report.text())


class Manners(unittest.TestCase):
    """Whatever a callable does, the test goes on and says it in words."""

    def test_each_is_told(self):
        for bug in MANNERS:
            with self.subTest(bug.source):
                report = tried(bug, ["contract"], isolate=True, eps=1e-5,
                               timeout=5.0 if bug.source == "hangs" else 120.0)
                verdict = report.verdicts["contract"]
                self.assertEqual(verdict.level, "FAIL")
                self.assertRegex(verdict.words, bug.words)

    def test_no_third_wait(self):
        """A norm that hangs costs two timeouts, not one a property."""
        hangs = next(bug for bug in MANNERS if bug.source == "hangs")
        names = ["contract", "forward", "dx", "dgain"]
        report = tried(hangs, names, isolate=True, eps=1e-5, timeout=3.0)
        self.assertEqual([v.level for v in report.verdicts.values()],
                         ["FAIL", "FAIL", "not tried", "not tried"])

    def check_end(self, kernel, words):
        report = keel_judge.acid(kernel, as_=LAYER, quick=True, only=["contract", "forward"],
                                 timeout=120.0)
        for verdict in report.verdicts.values():
            self.assertEqual(verdict.level, "FAIL", report.text())
            self.assertRegex(verdict.words, words)

    def test_crash(self):
        self.check_end(lambda x, gain, bias: os.kill(os.getpid(), signal.SIGSEGV),
                       "crashes: the process ends by SIGSEGV")

    def test_end_of_process(self):
        self.check_end(lambda x, gain, bias: os._exit(3), "exit code 3")
        self.check_end(lambda x, gain, bias: sys.exit(3), "raises SystemExit")

    def test_fork(self):
        """The copy of the process must not go on with the test; the norm itself is right."""
        def forks(x, gain, bias):
            if os.fork() == 0:
                os.setsid()
            return F.layer_norm(x, x.shape[-1:], gain, bias)
        report = keel_judge.acid(forks, as_=LAYER, quick=True, only=["contract"], eps=1e-5)
        self.assertEqual(report.verdicts["contract"].level, "limit", report.text())
        self.assertIn("makes other processes", report.verdicts["contract"].words)


if __name__ == "__main__":
    assert settings.ROOT and torch
    unittest.main()
