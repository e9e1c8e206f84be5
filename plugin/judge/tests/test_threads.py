"""Ops of other threads are counted and said, and do not mix with those that are judged."""
import concurrent.futures
import threading
import unittest

import settings
import torch
from torch import nn

import keel_judge


class Worker(threading.Thread):
    """A class of its own, as programs have them."""

    def __init__(self, work):
        super().__init__()
        self.work = work

    def run(self):
        self.work()


def run_in(kind, work):
    if kind == "pool":
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda _: work(), range(2)))
    thread = threading.Thread(target=work) if kind == "thread" else Worker(work)
    thread.start()
    thread.join()


class Threads(unittest.TestCase):
    def test_counted(self):
        model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.randn(2, 4)
        for kind, count in (("thread", 1), ("class", 1), ("pool", 2)):
            with self.subTest(kind=kind):
                with keel_judge.judge(model) as report:
                    run_in(kind, lambda: model(x))
                    model(x)
                reason = "ran in another thread"
                self.assertEqual(dict(report.not_judged), {("addmm", reason): count,
                                                           ("relu", reason): count})
                self.assertEqual((report.judged, report.strangers), (2, 0))
                self.assertIn(f"not judged: addmm, {count} times: {reason}", report.text())
                self.assertIn(f"{2 * count} not judged", report.summary())

    def test_options(self):
        """Ops that nobody wanted judged are not missed."""
        x = torch.randn(2, 4)
        for options in ({"ops": ("*norm*",)}, {"rank": 3}):
            with keel_judge.judge(**options) as report:
                run_in("thread", lambda: x @ x.t())
            self.assertEqual(report.missing(), 0)

    def test_places(self):
        """A module that another thread is in is not where this one is."""
        inside, done = threading.Event(), threading.Event()

        class Waits(nn.Module):
            def forward(self, x):
                inside.set()
                done.wait(60)
                return x

        model, one = nn.ModuleDict({"waits": Waits(), "here": nn.Linear(1, 1)}), torch.ones(1)
        with keel_judge.judge(model) as report:
            thread = threading.Thread(target=lambda: model["waits"](one))
            thread.start()
            inside.wait(60)
            model["here"](one)
            one.mul(2)
            done.set()
            thread.join()
        self.assertEqual({row.module for row in report.rows.values() if row.op == "mul"}, {""})
        self.assertEqual({row.module for row in report.rows.values() if row.op != "mul"}, {"here"})

    def test_older_threads(self):
        """They are no judge's, but their modules are seen."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(int).result()
            layer = nn.Linear(4, 4)
            with keel_judge.judge() as report:
                pool.submit(lambda: layer(torch.ones(1, 4))).result()
        self.assertEqual(report.strangers, 1)
        self.assertIn("ops of 1 threads that had begun before the judge", report.text())
        self.assertFalse(report.is_complete())

    def test_afterwards(self):
        """Threads start as before, and one that lives on is not counted any more."""
        start, go = threading.Thread.start, threading.Event()
        with keel_judge.judge() as report:
            thread = threading.Thread(target=lambda: (go.wait(60), torch.ones(2) + 1))
            thread.start()
        go.set()
        thread.join()
        self.assertIs(threading.Thread.start, start)
        self.assertEqual(report.missing(), 0)


if __name__ == "__main__":
    assert settings.ROOT
    unittest.main()
