"""Batches of any size in one graph: torch.compile with dynamic shapes, and torch.export."""
import copy
import pathlib
import sys
import unittest

import torch
from torch._dynamo.testing import CompileCounterWithBackend

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import torch as knn  # noqa: E402

NORMS = (lambda: knn.LayerNorm(8), lambda: knn.BatchNorm1d(8), lambda: knn.PowerNorm(8))
SIZES = (6, 3, 17, 10)


class Dynamic(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)

    def test_one_graph_trains_with_every_batch(self):
        for make in NORMS:
            eager = make()
            compiled = copy.deepcopy(eager)
            counter = CompileCounterWithBackend("aot_eager")
            run = torch.compile(compiled, backend=counter, dynamic=True, fullgraph=True)
            with self.subTest(norm=eager):
                counts = []
                for rows in SIZES:
                    self.same_step(run, eager, torch.randn(rows, 8, requires_grad=True))
                    self.same(compiled.state_dict().values(), eager.state_dict().values())
                    counts.append(counter.frame_count)
                # The first call may hand its graph over twice; no later one compiles again.
                self.assertEqual(counts, len(SIZES) * counts[:1])

    def same_step(self, run, eager, x):
        dy = torch.randn(x.shape)
        y, expected = run(x), eager(x)
        self.same([y, *torch.autograd.grad(y, [x], dy)],
                  [expected, *torch.autograd.grad(expected, [x], dy)])

    def same(self, got, expected):
        for value, wanted in zip(got, expected, strict=True):
            self.assertTrue(torch.equal(value, wanted))

    def test_an_exported_evaluation_takes_every_batch(self):
        rows = torch.export.Dim("rows", min=2)
        for make in NORMS:
            norm = make()
            norm(torch.randn(6, 8)).square().sum().backward()  # moves the state
            norm.eval()
            program = torch.export.export(norm, (torch.randn(6, 8),), dynamic_shapes=({0: rows},))
            with self.subTest(norm=norm):
                for size in SIZES:
                    x = torch.randn(size, 8)
                    self.same([program.module()(x)], [norm(x)])


if __name__ == "__main__":
    unittest.main()
