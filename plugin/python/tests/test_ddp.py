"""Norms with a state under DistributedDataParallel with no_sync: several micro-batches for one
exchange of gradients, over gloo. What is expected is computed in one process."""
import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import ddp_worker as worker  # noqa: E402
from test_sync import run_processes  # noqa: E402

WORLD = 2


def alone(broadcast):
    """Norms that know nothing of other processes. Each process is a network of its own, which sees
    its own micro-batches. The processes meet in the mean of their gradients and, with `broadcast`,
    in the buffers, which are those of the first at the begin of a step."""
    models = [worker.network(False) for _ in range(WORLD)]
    found = [[] for _ in models]
    for step in range(worker.STEPS):
        starts = {name: buffer.clone() for name, buffer in models[0].named_buffers()}
        for rank, model in enumerate(models):
            if broadcast:
                model.load_state_dict(starts, strict=False)
            model.zero_grad()
            for part in range(worker.PARTS):
                x, target = worker.part_of(step, part, WORLD)
                own = worker.own_rows(rank)
                worker.loss_of(model, x[own], target[own]).backward()
        for parameters in zip(*(model.parameters() for model in models)):
            mean = sum(p.grad for p in parameters) / WORLD
            for parameter in parameters:
                parameter.grad = mean.clone()
        for rank, model in enumerate(models):
            worker.descend(model)
            found[rank].append(worker.seen(model))
    return found


def together():
    """One network that sees all rows of every micro-batch."""
    model, found = worker.network(False), []
    for step in range(worker.STEPS):
        model.zero_grad()
        for part in range(worker.PARTS):
            worker.loss_of(model, *worker.part_of(step, part, WORLD)).backward()
        worker.descend(model)
        found.append(worker.seen(model))
    return found


class NoSync(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ranks = run_processes(WORLD, worker.__file__)

    def like(self, found, expected, nu=1):
        """`nu` is the factor between the units of running_nu."""
        for (gradients, state), (wanted, wanted_state) in zip(found, expected, strict=True):
            # Sums of the same numbers in another order, through three linear layers.
            for got, value in zip(gradients, wanted, strict=True):
                torch.testing.assert_close(got, value, rtol=1e-4, atol=1e-5)
            self.assertEqual(state.keys(), wanted_state.keys())
            for name, value in wanted_state.items():
                scale = nu if "running_nu" in name else 1
                torch.testing.assert_close(state[name], (scale * value).to(value.dtype), rtol=1e-4,
                                           atol=1e-5, msg=lambda m, name=name: f"{name}: {m}")

    def test_each_process_keeps_the_state_of_its_own_rows(self):
        for broadcast in (False, True):
            expected = alone(broadcast)
            for rank, found in enumerate(self.ranks):
                with self.subTest(broadcast=broadcast, rank=rank):
                    self.like(found[False, broadcast], expected[rank])

    def test_states_of_processes_differ_unless_they_are_synced(self):
        for is_synced in (False, True):
            for broadcast in (False, True):
                first, second = (found[is_synced, broadcast][-1][1] for found in self.ranks)
                for name, value in first.items():
                    is_same = is_synced or "running" not in name
                    with self.subTest(name=name, is_synced=is_synced, broadcast=broadcast):
                        self.assertEqual(torch.equal(second[name], value), is_same)

    def test_every_micro_batch_moves_the_state_once(self):
        for found in self.ranks:
            for _, steps in found.items():
                for number, (_, state) in enumerate(steps, 1):
                    counts = [int(v) for name, v in state.items() if "tracked" in name]
                    self.assertEqual(counts, 2 * [number * worker.PARTS])

    def test_sync_norms_are_as_one_process_with_all_rows(self):
        expected = together()
        for broadcast in (False, True):
            for rank, found in enumerate(self.ranks):
                with self.subTest(broadcast=broadcast, rank=rank):
                    # A process's loss is the mean over its rows, so the sum of losses, whose units
                    # nu has, is that of the mean over all rows times the processes.
                    self.like(found[True, broadcast], expected, nu=WORLD)


if __name__ == "__main__":
    unittest.main()
