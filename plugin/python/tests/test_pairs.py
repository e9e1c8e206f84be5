"""GatedRMSNorm, QKNorm and AdaLayerNormZero of keel_norms.torch against their formulas in
PyTorch."""
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


def modulated(x, scale, shift, eps=1e-6):
    """The modulated layer norm in float64, by its formula."""
    x, scale, shift = (value.double() for value in (x, scale, shift))
    centred = x - x.mean(-1, keepdim=True)
    normed = centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + eps)
    return torch.stack([row * (1 + factor) + term
                        for row, factor, term in zip(normed, scale, shift)])


def ada_zero(x, c, weight, bias, eps=1e-6):
    """adaLN-Zero's modulated x and its gate in float64, by their formulas."""
    c, size = c.double(), x.shape[-1]
    rows = (c * torch.sigmoid(c)) @ weight.double().T + bias.double()
    shift, scale, gate = rows[:, :size], rows[:, size:2 * size], rows[:, 2 * size:]
    gate = torch.stack([row.expand(x.shape[1:]) for row in gate])
    return modulated(x, scale, shift, eps), gate


def branch(x):
    """What follows a norm, in a residual branch."""
    return x.square() + x.sin()


class Conditions(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(10)
        self.x, self.c = torch.randn(3, 5, 12), torch.randn(3, 7)

    def close(self, got, expected, bound=2e-5):
        torch.testing.assert_close(got, expected, rtol=bound, atol=bound, check_dtype=False)

    def close_gradients(self, got, expected, leaves):
        dy = torch.randn(expected.shape, dtype=expected.dtype)
        for one, other in zip(torch.autograd.grad(got, leaves, dy.to(got.dtype)),
                              torch.autograd.grad(expected, leaves, dy)):
            self.close(one, other)

    def test_the_function(self):
        for shape in ((3, 5, 12), (3, 2, 4, 12), (3, 0, 12), (0, 5, 12)):
            # The variance of the smaller x is like the eps.
            for eps, size in ((1e-3, 1), (1e-6, 1e-3)):
                with self.subTest(shape=shape, eps=eps):
                    x = (size * torch.randn(shape)).requires_grad_()
                    scale, shift = (torch.randn(shape[0], 12, requires_grad=True)
                                    for _ in range(2))
                    options = {"eps": eps} if eps > 1e-6 else {}
                    y = knn.functional.modulated_layer_norm(x, scale, shift, **options)
                    self.assertEqual(y.shape, x.shape)
                    if x.numel():
                        expected = modulated(x, scale, shift, eps)
                        self.close(y, expected)
                        self.close_gradients(size * y, size * expected, [x, scale, shift])
                    else:
                        y.sum().backward()
                        self.assertEqual(float(scale.grad.abs().sum()), 0)

    def test_the_memory_format_is_that_of_x(self):
        x, rows = torch.randn(3, 5, 4, 12), torch.randn(3, 12)
        for given in (x, x.to(memory_format=torch.channels_last)):
            y = knn.functional.modulated_layer_norm(given, rows, rows)
            self.assertEqual(y.stride(), given.stride())

    def test_a_residual_branch(self):
        for shape, options in (((3, 5, 12), {}), ((3, 2, 4, 12), {"eps": 1e-2})):
            for dtype in (torch.float32, torch.float64):
                with self.subTest(shape=shape, dtype=dtype):
                    norm = drawn(knn.AdaLayerNormZero(12, 7, **options, dtype=dtype))
                    x, c = (torch.randn(sizes, dtype=dtype, requires_grad=True)
                            for sizes in (shape, (3, 7)))
                    leaves = [x, c, norm.modulation.weight, norm.modulation.bias]
                    inner, gate = norm(x, c)
                    self.assertEqual((inner.dtype, gate.dtype), (dtype, dtype))
                    self.assertEqual(gate.shape, (3, *(1,) * (x.dim() - 2), 12))
                    wanted_inner, wanted_gate = ada_zero(*leaves, **options)
                    self.close(inner, wanted_inner)
                    self.close(gate.expand(shape), wanted_gate)
                    y = x + gate * branch(inner)
                    expected = x.double() + wanted_gate * branch(wanted_inner)
                    self.close(y, expected, 1e-4 if dtype is torch.float32 else 1e-12)
                    for one, other in zip(torch.autograd.grad(y.square().sum(), leaves),
                                          torch.autograd.grad(expected.square().sum(), leaves)):
                        self.close(one / (1 + other.abs().max()), other / (1 + other.abs().max()))

    def test_gradcheck(self):
        norm = drawn(knn.AdaLayerNormZero(6, 4, dtype=torch.float64))

        def block(x, c, weight, bias):
            parameters = {"modulation.weight": weight, "modulation.bias": bias}
            inner, gate = torch.func.functional_call(norm, parameters, (x, c))
            return x + gate * branch(inner)

        given = [torch.randn(sizes, dtype=torch.float64, requires_grad=True)
                 for sizes in ((2, 3, 6), (2, 4), (18, 4), (18,))]
        self.assertTrue(torch.autograd.gradcheck(block, given))

    def test_it_begins_closed(self):
        norm = knn.AdaLayerNormZero(12, 7)
        self.assertEqual([(name, tuple(value.shape)) for name, value in norm.named_parameters()],
                         [("modulation.weight", (36, 7)), ("modulation.bias", (36,))])
        with torch.device("meta"):
            fresh = knn.AdaLayerNormZero(12, 7)
        fresh = drawn(fresh.to_empty(device="cpu"))
        for module in fresh.modules():  # what FSDP does
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
        for made in (norm, fresh):
            inner, gate = made(self.x, self.c)
            self.assertFalse(bool(gate.any()))
            self.assertTrue(torch.equal(inner, knn.functional.layer_norm(self.x, (12,), eps=1e-6)))
            y = self.x + gate * branch(inner)
            self.assertTrue(torch.equal(y, self.x))
            y.square().sum().backward()
            for value in made.parameters():  # only the gate learns at first
                self.assertFalse(bool(value.grad[:24].any()))
                self.assertTrue(bool(value.grad[24:].all()))

    def test_narrow_types_are_rounded_once(self):
        for dtype, bound in ((torch.bfloat16, 2**-8), (torch.float16, 2**-11)):
            x, scale, shift = (value.to(dtype) for value in (self.x, torch.randn(3, 12),
                                                             torch.randn(3, 12)))
            # Nothing remains of 1 + scale but 1, if it is added in the narrow type.
            for factor in (scale, 2 * scale.sign() * bound / 3):
                y = knn.functional.modulated_layer_norm(x, factor, shift)
                self.assertEqual(y.dtype, dtype)
                self.close(y.double(), modulated(x, factor, shift), bound)
                self.assertTrue(torch.equal(y, knn.functional.modulated_layer_norm(
                    x.float(), factor.float(), shift.float()).to(dtype)))

    def test_narrow_modules_and_mixed_types(self):
        for of_norm in (torch.bfloat16, torch.float32):
            norm = drawn(knn.AdaLayerNormZero(12, 7, dtype=of_norm))
            for of_x, of_c in ((torch.bfloat16, torch.bfloat16), (torch.bfloat16, torch.float32),
                               (torch.float64, torch.float32)):
                with self.subTest(norm=of_norm, x=of_x, c=of_c):
                    x, c = (value.to(dtype, copy=True).requires_grad_()
                            for value, dtype in ((self.x, of_x), (self.c, of_c)))
                    inner, gate = norm(x, c)
                    self.assertEqual((inner.dtype, gate.dtype), (of_x, of_x))
                    wanted = ada_zero(x, c, norm.modulation.weight, norm.modulation.bias)
                    bound = 0.05 if torch.bfloat16 in (of_norm, of_x, of_c) else 2e-5
                    self.close(inner, wanted[0], bound)
                    self.close(gate.expand(x.shape), wanted[1], bound)
                    (x + gate * branch(inner)).sum().backward()
                    self.assertEqual((x.grad.dtype, c.grad.dtype), (of_x, of_c))

    def test_copies_compilation_tracing_and_the_meta_device(self):
        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = drawn(knn.AdaLayerNormZero(12, 7))

            def forward(self, x, c):
                inner, gate = self.norm(x, c)
                return x + gate * branch(inner)

        network = Network()
        expected = network(self.x, self.c)
        run = torch.compile(network, backend="aot_eager", fullgraph=True)
        for other in (copy.deepcopy(network), pickle.loads(pickle.dumps(network.norm)), run,
                      torch.fx.symbolic_trace(network)):
            if isinstance(other, knn.AdaLayerNormZero):
                inner, gate = other(self.x, self.c)
                self.close(self.x + gate * branch(inner), expected)
            else:
                self.close(other(self.x, self.c), expected)
        made = knn.AdaLayerNormZero(12, 7, device="meta")(self.x.to("meta"), self.c.to("meta"))
        self.assertEqual([value.shape for value in made], [self.x.shape, (3, 1, 12)])

    def test_refusals(self):
        x, c, rows = self.x, self.c, torch.randn(3, 12)
        norm, function = knn.AdaLayerNormZero(12, 7), knn.functional.modulated_layer_norm
        for kind, words, call in (
                (KeelError, "^size: expected an integer of 1 or more, got 0",
                 lambda: knn.AdaLayerNormZero(0, 7)),
                (KeelError, "^conditions: expected an integer of 1 or more, got 2.5",
                 lambda: knn.AdaLayerNormZero(12, 2.5)),
                (TypeError, "^AdaLayerNormZero: unknown option 'epz', nearest 'eps'",
                 lambda: knn.AdaLayerNormZero(12, 7, epz=1)),
                (KeelError, r"^\[AdaLayerNormZero\] x: expected \(..., 8\), for a size of \(8,\), "
                 r"got \(3, 5, 12\)", lambda: knn.AdaLayerNormZero(8, 7)(x, c)),
                (KeelError, r"^\[AdaLayerNormZero\] x: expected \(batch, ..., width\), got "
                 r"\(5, 12\)", lambda: norm(x[0], c)),
                (KeelError, r"^\[AdaLayerNormZero\] c: expected \(3, 7\), a row for each sequence "
                 r"of x, got \(2, 7\)", lambda: norm(x, c[:2])),
                (KeelError, r"c: expected \(3, 7\), .* got \(3, 6\)", lambda: norm(x, c[:, :6])),
                (KeelError, r"c: expected \(3, 7\), .* got \(3, 1, 7\)",
                 lambda: norm(x, c[:, None])),
                (TypeError, r"^\[AdaLayerNormZero\] c: expected a tensor, got NoneType",
                 lambda: norm(x, None)),
                (KeelError, r"^\[modulated_layer_norm\] x: expected \(batch, ..., width\), got "
                 r"\(3, 12\)", lambda: function(rows, rows, rows)),
                (KeelError, r"scale: expected \(3, 12\), .* got \(12,\)",
                 lambda: function(x, rows[0], rows)),
                (KeelError, r"shift: expected \(3, 12\), .* got \(3, 5, 12\)",
                 lambda: function(x, rows, x)),
                (TypeError, r"shift: expected a tensor, got int", lambda: function(x, rows, 0))):
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                call()


if __name__ == "__main__":
    unittest.main()
