"""GatedRMSNorm and QKNorm of keel_norms.torch against their formulas in PyTorch."""
import copy
import pathlib
import pickle
import sys
import unittest

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import KeelError  # noqa: E402
from keel_norms import torch as knn  # noqa: E402


def rms(x, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


def gated(x, z, weight, *, gate="silu", norm_first=True, groups=1, eps=1e-5):
    """The gated norm as language models compute it, in float32."""
    x, factor = x.float(), {"silu": nn.functional.silu, "sigmoid": torch.sigmoid}[gate](z.float())
    x = x if norm_first else x * factor
    y = rms(x.unflatten(-1, (groups, -1)), eps).flatten(-2) * weight.float()
    return y * factor if norm_first else y


def drawn(module):
    for parameter in module.parameters():
        nn.init.normal_(parameter, 0.5)
    return module


class Gated(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(8)

    def close(self, got, expected, bound=2e-5):
        torch.testing.assert_close(got, expected, rtol=bound, atol=bound, check_dtype=False)

    def each(self):
        for gate in ("silu", "sigmoid"):
            for norm_first in (True, False):
                for groups in (1, 3):
                    options = dict(gate=gate, norm_first=norm_first, groups=groups, eps=1e-3)
                    with self.subTest(**options):
                        yield options

    def test_values_and_gradients(self):
        for options in self.each():
            module = drawn(knn.GatedRMSNorm(12, **options))
            given = [torch.randn(5, 7, 12, requires_grad=True) for _ in range(2)]
            y, expected = module(*given), gated(*given, module.weight, **options)
            self.close(y, expected)
            dy, leaves = torch.randn(y.shape), [*given, module.weight]
            for got, wanted in zip(torch.autograd.grad(y, leaves, dy),
                                   torch.autograd.grad(expected, leaves, dy)):
                self.close(got, wanted)

    def test_narrow_types_are_rounded_once(self):
        for options in self.each():
            x, z = (torch.randn(40, 12).bfloat16() for _ in range(2))
            module = drawn(knn.GatedRMSNorm(12, **options, dtype=torch.bfloat16))
            y = module(x, z)
            self.assertEqual(y.dtype, torch.bfloat16)
            self.close(y.float(), gated(x, z, module.weight, **options), 2**-8)

    def test_copies_compilation_and_the_meta_device(self):
        module = drawn(knn.GatedRMSNorm(12, groups=2))
        x, z = torch.randn(2, 5, 12)
        run = torch.compile(module, backend="aot_eager", fullgraph=True)
        for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), run):
            self.close(other(x, z), module(x, z))
        self.assertEqual(knn.GatedRMSNorm(12, device="meta")(x.to("meta"), z.to("meta")).shape,
                         x.shape)

    def test_a_traced_network_calls_it(self):
        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = knn.GatedRMSNorm(12)

            def forward(self, x):
                return self.norm(x, x + 1)

        network, x = Network(), torch.randn(5, 12)
        self.close(torch.fx.symbolic_trace(network)(x), network(x))

    def test_refusals(self):
        x = torch.randn(5, 12)
        for kind, words, call in (
                (ValueError, "gate: expected silu or sigmoid, got 'relu'",
                 lambda: knn.GatedRMSNorm(12, gate="relu")),
                (ValueError, "a multiple of groups, 5, got 12",
                 lambda: knn.GatedRMSNorm(12, groups=5)),
                (TypeError, "unknown option 'epz', nearest 'eps'",
                 lambda: knn.GatedRMSNorm(12, epz=1)),
                (KeelError, r"z: expected \(5, 12\), as x has, got \(12,\)",
                 lambda: knn.GatedRMSNorm(12)(x, x[0])),
                (KeelError, r"x: expected \(..., 8\)", lambda: knn.GatedRMSNorm(8)(x, x)),
                (KeelError, "groups: expected a divisor of 12, got 5",
                 lambda: knn.functional.gated_rms_norm(x, x, groups=5)),
                (KeelError, "gate: expected silu or sigmoid",
                 lambda: knn.functional.gated_rms_norm(x, x, gate="relu"))):
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                call()


class QueriesAndKeys(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(9)
        # A batch of 2, 4 heads of q and 2 of k, of 8.
        self.q, self.k = torch.randn(2, 5, 4, 8), torch.randn(2, 5, 2, 8)

    def close(self, got, expected):
        for one, other in zip(got, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=2e-5, atol=2e-5)

    def test_of_each_head(self):
        norm = drawn(knn.QKNorm(8))
        self.assertEqual(list(norm.state_dict()), ["q_norm.weight", "k_norm.weight"])
        for q, k in ((self.q, self.k), (self.q.transpose(1, 2), self.k.transpose(1, 2))):
            self.close(norm(q, k), (rms(q, 1e-6) * norm.q_norm.weight,
                                    rms(k, 1e-6) * norm.k_norm.weight))

    def test_of_the_projection(self):
        q, k = self.q.flatten(2), self.k.flatten(2)
        norm = drawn(knn.QKNorm(8, heads=(4, 2), across="projection", eps=1e-3))
        self.close(norm(q, k), (rms(q, 1e-3) * norm.q_norm.weight,
                                rms(k, 1e-3) * norm.k_norm.weight))
        self.assertEqual(knn.QKNorm(8, heads=4, across="projection")(q, q)[1].shape, q.shape)

    def test_lengths(self):
        norm = knn.QKNorm(8, kind="l2")
        self.assertEqual(list(norm.parameters()), [])
        q, k = self.q.clone().requires_grad_(), self.k.clone()
        k[0, 0, 0] = 0
        self.close(norm(q, k), [nn.functional.normalize(x, dim=-1, eps=1e-6) for x in (q, k)])
        norm(q, k)[0].square().sum().backward()
        torch.testing.assert_close(q.grad, torch.zeros_like(q), rtol=0, atol=1e-5)

    def test_types_copies_and_compilation(self):
        for kind in ("rms", "l2"):
            norm = knn.QKNorm(8, kind=kind)
            run = torch.compile(norm, backend="aot_eager", fullgraph=True)
            self.close(run(self.q, self.k), norm(self.q, self.k))
            self.close(copy.deepcopy(norm)(self.q, self.k), norm(self.q, self.k))
            for result in norm(self.q.bfloat16(), self.k.bfloat16()):
                self.assertEqual(result.dtype, torch.bfloat16)

    def test_refusals(self):
        for kind, words, call in (
                (ValueError, "kind: expected rms or l2, got 'layer'",
                 lambda: knn.QKNorm(8, kind="layer")),
                (ValueError, "across: expected head or projection",
                 lambda: knn.QKNorm(8, across="row")),
                (ValueError, "heads: expected those of q and k, got None",
                 lambda: knn.QKNorm(8, across="projection")),
                (ValueError, "heads: expected none, where heads are normalized, got 4",
                 lambda: knn.QKNorm(8, heads=4)),
                (ValueError, "heads: expected a number or a pair",
                 lambda: knn.QKNorm(8, heads=(1, 2, 3), across="projection")),
                (ValueError, "heads: expected an integer of 1 or more, got 0",
                 lambda: knn.QKNorm(8, heads=0, across="projection")),
                (KeelError, r"x: expected \(..., 9\)", lambda: knn.QKNorm(9)(self.q, self.k)),
                (KeelError, r"x: expected \(..., 9\)",
                 lambda: knn.QKNorm(9, kind="l2")(self.q, self.k))):
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                call()


if __name__ == "__main__":
    unittest.main()
