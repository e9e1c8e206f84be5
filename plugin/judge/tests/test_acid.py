"""The acid test names remade bugs for the right reason, and has nothing against correct norms."""
import os
import random
import re
import signal
import sys
import unittest
from unittest import mock

import settings
import torch
import torch.nn.functional as F

import keel_judge
import state_bugs
from acid_bugs import BUGS, LAYER, MANNERS, Bug
from keel_judge.acid_test import runner


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


    def test_rows_of_equal_numbers_are_judged(self):
        verdict = tried(Bug("", state_bugs.equal_rows, LAYER, "", ""), ["special rows"]) \
            .verdicts["special rows"]
        self.assertEqual(verdict.level, "FAIL")
        self.assertRegex(verdict.words, "^y.*at (constant rows|zeros)")

    def test_statistics_saved_in_16_bits_are_named(self):
        bug = Bug("", state_bugs.narrow_statistics_saved, LAYER, "", "")
        verdict = tried(bug, ["means"], dtype="bf16").verdicts["means"]
        self.assertEqual(verdict.level, "FAIL")
        self.assertIn("with mean and 1/s as 16 bits hold them",
                      " ".join([verdict.words, *verdict.also]))

    def test_masks(self):
        """Of norms over the batch that take one, and of rows that it leaves out."""
        for kernel, level, words in (
                (state_bugs.masked_batch, "pass", ""),
                (state_bugs.multiplied_mask, "limit", "NaN in a row that the mask leaves out"),
                (state_bugs.mask_after, "FAIL", "of rows that the mask keeps: y"),
                (state_bugs.mask_without_state, "FAIL", "running_mean and running_var: not of"),
                (state_bugs.batch, "not tried", "takes no mask")):
            with self.subTest(kernel.__name__):
                bug = Bug("", kernel, "batchnorm", "", "")
                verdict = tried(bug, ["masks"]).verdicts["masks"]
                said = " ".join([verdict.words, *verdict.also])
                self.assertEqual(verdict.level, level, said)
                self.assertIn(words, said)


class Manners(unittest.TestCase):
    """Whatever a callable does, the test goes on and says it in words."""

    def test_each_is_told(self):
        for bug in MANNERS:
            with self.subTest(bug.source):
                report = tried(bug, ["contract"], isolate=True, eps=1e-5,
                               timeout=1.0 if bug.source == "hangs" else 120.0)
                verdict = report.verdicts["contract"]
                self.assertEqual(verdict.level, "FAIL")
                self.assertRegex(verdict.words, bug.words)

    def test_no_third_wait(self):
        """A norm that hangs costs two timeouts, not one a property."""
        hangs = next(bug for bug in MANNERS if bug.source == "hangs")
        names = ["contract", "forward", "dx", "dgain"]
        report = tried(hangs, names, isolate=True, eps=1e-5, timeout=0.5)
        self.assertEqual([v.level for v in report.verdicts.values()],
                         ["FAIL", "FAIL", "not tried", "not tried"])

    @mock.patch.object(runner, "WALL", 300)
    def test_time_is_processor_time(self):
        """One that works without end is stopped; one that waits for others is not."""
        for kernel, level, words in ((state_bugs.spins, "FAIL", "after 1 s of processor time"),
                                     (state_bugs.sleeps, "pass", "")):
            report = keel_judge.acid(kernel, as_=LAYER, quick=True, only=["contract"], timeout=1.0,
                                     only_case=0, backward="none")
            verdict = report.verdicts["contract"]
            self.assertEqual(verdict.level, level, report.text())
            self.assertIn(words, verdict.words)

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
