"""keel_norms.torch with parameters in shards, by fully_shard over gloo: as one process trains."""
import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fsdp_worker as worker  # noqa: E402
from test_sync import run_processes  # noqa: E402


class Sharded(unittest.TestCase):
    def test_training_is_that_of_one_process(self):
        world = 3
        ranks = run_processes(world, worker.__file__)
        # The shards are what the test is about: the last process has nothing of one parameter.
        self.assertIn((0,), ranks[-1]["shards"].values())
        plain = worker.network()
        losses = worker.train(plain, slice(None), 4 * world, 1)
        for step in range(worker.STEPS):
            self.assertAlmostEqual(sum(rank["losses"][step] for rank in ranks), losses[step], 4)
        for rank in ranks:
            for name, wanted in plain.state_dict().items():
                # nu is in units of the sum of the processes' losses.
                got = rank["state"][name] / (world if "running_nu" in name else 1)
                torch.testing.assert_close(got.to(wanted.dtype), wanted, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
