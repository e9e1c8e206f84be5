"""keel_norms.torch over several processes by gloo: as one process with the whole batch."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import sync_worker as worker  # noqa: E402
from sync_worker import CASES, SPLITS, STEPS, knn  # noqa: E402


def run_processes(world, script=worker.__file__):
    """The results of each rank."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        started = [subprocess.Popen([sys.executable, script, str(rank), str(world),
                                     folder], env=environment) for rank in range(world)]
        try:
            codes = [process.wait(timeout=300) for process in started]
        finally:  # one that waits for another that failed would stay
            for process in started:
                process.kill()
                process.wait()
        if any(codes):
            raise RuntimeError(f"{script}: processes ended with {codes}")
        return [torch.load(pathlib.Path(folder) / f"rank{rank}", weights_only=False)
                for rank in range(world)]


class Synced(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = {world: run_processes(world) for world in SPLITS}

    def close(self, got, expected):
        """Sums in another order: within a few roundings of float32."""
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)

    def each(self):
        for world, splits in SPLITS.items():
            for split in splits:
                for name in CASES:
                    yield name, split, [rank["shards"][name, split] for rank in self.found[world]]

    def test_steps_are_those_of_one_process(self):
        for name, split, ranks in self.each():
            with self.subTest(name=name, split=split):
                self.like_one_process(name, split, ranks)

    def test_a_group_of_some_processes(self):
        ranks = [self.found[3][rank]["group"] for rank in worker.GROUP]
        for name in CASES:
            with self.subTest(name=name):
                self.like_one_process(name, worker.GROUP_SPLIT, [found[name] for found in ranks])

    def like_one_process(self, name, split, ranks):
        norm = worker.drawn(CASES[name][0]())
        for step in range(STEPS):
            expected = worker.step_of(norm, *worker.batch(name, step, sum(split)))
            shards = [found[step] for found, _ in ranks]
            for place, wanted in enumerate(expected):
                parts = [shard[place] for shard in shards]
                # y and dx are cut by rows; gradients of parameters are sums.
                self.close(torch.cat(parts) if place < 2 else sum(parts), wanted)
        for _, buffers in ranks:
            for key, wanted in norm.state_dict().items():
                self.close(buffers[key], wanted)

    def test_all_ranks_have_the_same_bits(self):
        for name, split, ranks in self.each():
            for _, buffers in ranks[1:]:
                for key, wanted in ranks[0][1].items():
                    self.assertTrue(torch.equal(buffers[key], wanted), (name, split, key))

    def test_two_forwards_per_backward_under_ddp(self):
        for world, ranks in self.found.items():
            plain = worker.network(False)
            for number in range(2):
                plain.zero_grad()
                gradients, buffers = worker.two_forwards(plain, *worker.data(4 * world))
                for rank in ranks:
                    for broadcast, found in rank["ddp"].items():
                        with self.subTest(world=world, step=number, broadcast=broadcast):
                            for got, wanted in zip(found[number][0], gradients):
                                torch.testing.assert_close(world * got, wanted, rtol=1e-4,
                                                           atol=1e-4)
                            for key, wanted in buffers.items():
                                self.close(found[number][1][key], wanted)
                            counts = [int(value) for key, value in found[number][1].items()
                                      if "tracked" in key]
                            self.assertEqual(counts, [2 * (number + 1)] * 2)

    def test_converted_networks(self):
        for world, ranks in self.found.items():
            for rank in ranks:
                self.assertEqual(rank["converted"][0], "SyncBatchNorm")
            y = torch.cat([rank["converted"][1] for rank in ranks])
            self.close(y, worker.to_convert()(worker.data(4 * world)[0]).detach())


class Alone(unittest.TestCase):
    def test_without_processes_they_are_the_plain_norms(self):
        for name, (plain, synced, _, _) in CASES.items():
            x, dy, mask = worker.batch(name, 0, 5)
            with self.subTest(name=name):
                for got, wanted in zip(worker.step_of(worker.drawn(synced()), x, dy, mask),
                                       worker.step_of(worker.drawn(plain()), x, dy, mask)):
                    torch.testing.assert_close(got, wanted, rtol=1e-6, atol=1e-6)

    def test_groups_of_images_are_refused(self):
        for norm in (knn.PowerNorm(8, heads=2), knn.SyncPowerNorm(8, heads=2)):
            with self.assertRaisesRegex(ValueError, "x: expected .* with (groups|heads)"):
                norm(torch.randn(2, 8, 3, 8))

    def test_five_axes(self):
        x = torch.randn(2, 3, 4, 2, 2)
        torch.testing.assert_close(knn.SyncBatchNorm(3)(x), torch.nn.BatchNorm3d(3)(x),
                                   rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
