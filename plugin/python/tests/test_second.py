"""Second derivatives of keel_norms.torch: an error that says so, and never a missing part."""
import pathlib
import sys
import unittest

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import torch as knn  # noqa: E402

SAYS = "has no second derivative"
MAKES = {"LayerNorm": lambda: knn.LayerNorm(6), "AdaNorm": lambda: knn.AdaNorm(6),
         "RMSNorm": lambda: knn.RMSNorm(6), "GroupNorm": lambda: knn.GroupNorm(2, 6),
         "BatchNorm1d": lambda: knn.BatchNorm1d(6), "PowerNorm": lambda: knn.PowerNorm(6),
         "MABN": lambda: knn.MABN(6), "UnifiedNorm": lambda: knn.UnifiedNorm(6),
         "BatchRenorm1d": lambda: knn.BatchRenorm1d(6),
         "LayerNorm of bfloat16": lambda: knn.LayerNorm(6)}


class Second(unittest.TestCase):
    def each(self, check, names=tuple(MAKES)):
        torch.manual_seed(1)
        for name in names:
            x = torch.randn(4, 6)
            x = (x.bfloat16() if "bfloat16" in name else x).requires_grad_()
            with self.subTest(norm=name):
                check(MAKES[name](), x)

    def test_penalties_on_gradients(self):
        """The gradient of a plain sum has no graph of its own; the penalty must not get lost."""
        def check(norm, x):
            for loss in (torch.sum, lambda y: y.square().sum()):
                for training in (True, False):
                    norm.train(training)
                    (dx,) = torch.autograd.grad(loss(norm(x)), x, create_graph=True)
                    with self.assertRaisesRegex(RuntimeError, SAYS):
                        (loss(norm(x)) + dx.square().sum()).backward()
        self.each(check)

    def test_a_penalty_on_the_gradient_of_a_parameter(self):
        norm, x = knn.LayerNorm(6), torch.randn(4, 6, requires_grad=True)
        (dgain,) = torch.autograd.grad(norm(x).sum(), norm.weight, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, SAYS):
            dgain.square().sum().backward()

    def test_a_parametrized_weight(self):
        layer, x = nn.utils.parametrizations.weight_norm(nn.Linear(6, 6)), torch.randn(4, 6)
        norm = knn.LayerNorm(6)
        y = norm(layer(x))
        (dv,) = torch.autograd.grad(y.sum(), layer.parametrizations.weight.original1,
                                    create_graph=True)
        with self.assertRaisesRegex(RuntimeError, SAYS):
            (y.sum() + dv.square().sum()).backward()

    def test_create_graph_alone_gives_the_same_gradients(self):
        def check(norm, x):
            before = {name: b.clone() for name, b in norm.named_buffers()}
            inputs = [x, *norm.parameters()]
            dy = torch.randn(4, 6).to(x.dtype)
            expected = torch.autograd.grad(norm(x), inputs, dy)
            norm.load_state_dict({**norm.state_dict(), **before})
            got = torch.autograd.grad(norm(x), inputs, dy, create_graph=True)
            for g, e in zip(got, expected, strict=True):
                self.assertTrue(torch.equal(g, e))
        self.each(check)

    def test_compiled(self):
        def check(norm, x):
            torch._dynamo.reset()
            run = torch.compile(norm, backend="aot_eager", fullgraph=True)
            with self.assertRaisesRegex(RuntimeError, "double backward|create_graph"):
                (dx,) = torch.autograd.grad(run(x).sum(), x, create_graph=True)
                (run(x).sum() + dx.square().sum()).backward()
        self.each(check, ("LayerNorm", "BatchNorm1d", "PowerNorm"))


class Functions(unittest.TestCase):
    """torch.func, whose gradients are always such that they could be differentiated again. A module
    whose buffers move is refused by it."""

    def test_first_derivatives(self):
        torch.manual_seed(2)
        for norm, reference in ((knn.LayerNorm(6), nn.LayerNorm(6)),
                                (knn.BatchNorm1d(6, track_running_stats=False),
                                 nn.BatchNorm1d(6, track_running_stats=False))):
            x, dy = torch.randn(4, 6), torch.randn(4, 6)
            got = torch.func.grad(lambda x, n=norm: (n(x) * dy).sum())(x)
            expected = torch.func.grad(lambda x, n=reference: (n(x) * dy).sum())(x)
            torch.testing.assert_close(got, expected, rtol=2e-5, atol=2e-5)

    def test_second_derivatives(self):
        x = torch.randn(4, 6)
        for norm in (knn.LayerNorm(6), knn.BatchNorm1d(6, track_running_stats=False),
                     knn.AdaNorm(6), knn.PowerNorm(6).eval()):
            first = torch.func.grad(lambda x, n=norm: n(x).sum())
            with self.subTest(norm=norm), self.assertRaisesRegex(RuntimeError, SAYS):
                torch.func.grad(lambda x, f=first: f(x).square().sum())(x)

    def test_a_state_that_moves_is_refused(self):
        for norm in (knn.BatchNorm1d(6), knn.PowerNorm(6), nn.BatchNorm1d(6)):
            with self.assertRaisesRegex(RuntimeError, "mutate a captured Tensor"):
                torch.func.grad(lambda x, n=norm: n(x).sum())(torch.randn(4, 6))

    def test_vmap_is_an_error(self):
        x = torch.randn(3, 4, 6)
        for norm in (knn.LayerNorm(6), knn.BatchNorm1d(6, track_running_stats=False),
                     knn.PowerNorm(6).eval()):
            with self.subTest(norm=norm), self.assertRaisesRegex(RuntimeError, "vmap"):
                torch.vmap(norm)(x)


if __name__ == "__main__":
    unittest.main()
