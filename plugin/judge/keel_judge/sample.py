"""The choice of steps and ops, where not all are judged."""
import math
import random
import time

LEAST_SHARE = 0.1  # of the ops of a step that is sampled: letting an op pass costs time, too


class Budget:
    """Says from the times of earlier steps whether another one may be judged. `cost` is the time
    that judging may add, as a share of the time of the steps. The first step may compile or set up
    more than others, so only what judging took of it is counted. Steps have other ops in the
    sample, so a further one is taken to need as much as the longest so far."""

    def __init__(self, cost):
        self.cost, self.began, self.first, self.longest = cost, None, 0.0, 0.0
        self.counts, self.seconds = [0, 0], [0.0, 0.0]  # of steps without and with judging

    def affords(self, was_judged, seconds):
        """`seconds`: what judging took so far."""
        before, self.began = self.began, time.perf_counter()
        if before is None:
            self.first = seconds
            return False
        took = self.began - before
        self.counts[was_judged] += 1
        self.seconds[was_judged] += took
        if was_judged:
            self.longest = max(self.longest, took)
        if not self.counts[0]:
            return False
        plain = self.seconds[0] / self.counts[0]
        added = self.first + self.seconds[1] - self.counts[1] * plain
        further = max(self.first, self.longest - plain)
        return added + further <= self.cost * plain * sum(self.counts)


class Sample:
    """Which ops are judged. A share below LEAST_SHARE is that of the first step, in case it is the
    only one; after it whole steps are left out, without the mode, and LEAST_SHARE of the ops are
    taken in the others. With a cost the times of the steps say which ones."""

    def __init__(self, options):
        self.random, self.of_all = random.Random(options.seed), options.share
        self.budget = None if math.isinf(options.cost) else Budget(options.cost)
        if self.budget:
            self.of_all = min(self.of_all, LEAST_SHARE)
        self.of_step, self.takes_step = self.of_all, True

    def next_step(self, seconds=0.0):
        self.of_step = max(self.of_all, LEAST_SHARE)
        if self.budget:
            self.takes_step = self.budget.affords(self.takes_step, seconds)
        else:
            self.takes_step = self.of_all >= self.of_step or (
                self.random.random() < self.of_all / self.of_step)

    def leaves_out(self):
        return self.of_step < 1 and self.random.random() >= self.of_step
