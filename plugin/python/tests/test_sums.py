"""A residual sum and the norm of it in keel_norms.torch: the bits of the two ops apart."""
import copy
import pathlib
import sys
import unittest

import torch
from torch.library import opcheck

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import KeelError  # noqa: E402
from keel_norms._norms import SUMS  # noqa: E402
from keel_norms.torch import _ops, functional  # noqa: E402

# The function, the norm's function, and whether it has a bias.
PAIRS = {"add_layer_norm": (functional.add_layer_norm, functional.layer_norm, True),
         "add_rms_norm": (functional.add_rms_norm, functional.rms_norm, False)}


def inputs(has_bias, dtype=torch.float32, shape=(5, 7, 12), gain_dtype=None):
    """x, residual, and the parameters that the norm has."""
    sizes = [shape, shape, shape[-1:], *([shape[-1:]] if has_bias else [])]
    dtypes = [dtype, dtype, *[gain_dtype or dtype] * 2]
    return [torch.randn(size).to(kind).requires_grad_() for size, kind in zip(sizes, dtypes)]


def apart(norm, x, residual, *affine, **options):
    total = x + residual
    return norm(total, x.shape[-1:], *affine, **options), total


def gradients(results, given, dy, dsum):
    """Those of the results that have a gradient in `dy` and `dsum`."""
    pairs = [(r, d) for r, d in zip(results, (dy, dsum)) if d is not None]
    return torch.autograd.grad([r for r, _ in pairs], given, [d for _, d in pairs],
                               allow_unused=True)


class Sums(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)

    def same(self, got, expected):
        for one, other in zip(got, expected, strict=True):
            self.assertEqual(one is None, other is None)
            if one is not None:
                self.assertEqual((one.dtype, one.shape), (other.dtype, other.shape))
                self.assertTrue(torch.equal(one, other))

    def check(self, name, given, run=None, *, is_compiled=False, **options):
        both, norm, _ = PAIRS[name]
        x, residual, *affine = given
        shape = x.shape[-1:]
        results = (run or both)(x, residual, shape, *affine, **options)
        expected = apart(norm, *given, **options)
        self.same(results, expected)
        dy, dsum = torch.randn(x.shape).to(x.dtype), torch.randn(x.shape).to(x.dtype)
        # A compiled backward has zeros where nothing depends on a result.
        for of in ((dy, dsum), (dy, None), *([] if is_compiled else [(None, dsum)])):
            fresh = (run or both)(x, residual, shape, *affine, **options)
            self.same(gradients(fresh, given, *of),
                      gradients(apart(norm, *given, **options), given, *of))

    def test_the_bits_of_the_two_ops(self):
        for name, (_, _, has_bias) in PAIRS.items():
            for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
                for shape in ((5, 7, 12), (40, 300), (1, 12), (0, 12)):
                    with self.subTest(norm=name, dtype=dtype, shape=shape):
                        self.check(name, inputs(has_bias, dtype, shape))
            self.check(name, inputs(has_bias, torch.bfloat16, gain_dtype=torch.float32))

    def test_options(self):
        self.check("add_layer_norm", inputs(True), eps=0.5, unbiased=True, eps_outside=True)
        self.check("add_rms_norm", inputs(False), eps=0.5, offset=1.0)

    def test_strides_and_memory_formats(self):
        x = torch.randn(4, 6, 3, 5).to(memory_format=torch.channels_last).requires_grad_()
        spread = torch.randn(4, 6, 3, 5, 2)[..., 0].requires_grad_()
        self.check("add_layer_norm", [x, spread, torch.randn(5).requires_grad_(),
                                      torch.randn(5).requires_grad_()])
        for result in functional.add_layer_norm(x, spread, 5):
            self.assertTrue(result.is_contiguous(memory_format=torch.channels_last))

    def test_inputs_that_want_no_gradient(self):
        given = inputs(True)
        for place in range(4):
            some = [t if i == place else t.detach() for i, t in enumerate(given)]
            y, total = functional.add_layer_norm(*some[:2], 12, *some[2:])
            (y.sum() + (total.square().sum() if place < 2 else 0)).backward()
            self.assertEqual([t.grad is not None for t in some], [i == place for i in range(4)])
        with torch.no_grad():
            self.same(functional.add_layer_norm(*given[:2], 12, *given[2:]),
                      apart(functional.layer_norm, *given))

    def test_a_residual_stream(self):
        """The sum goes on into the next one, as in a Transformer."""
        x, *branches = (torch.randn(6, 8, dtype=torch.float64, requires_grad=True)
                        for _ in range(4))

        def network(x, *branches):
            for branch in branches:
                y, x = functional.add_rms_norm(branch * x.tanh(), x, 8, eps=1e-5)
            return y * x

        self.assertTrue(torch.autograd.gradcheck(network, (x, *branches)))

    def test_compiled_in_one_graph(self):
        for name, (both, _, has_bias) in PAIRS.items():
            for dtype in (torch.float32, torch.bfloat16):
                torch._dynamo.reset()
                with self.subTest(norm=name, dtype=dtype):
                    self.check(name, inputs(has_bias, dtype),
                               torch.compile(both, backend="aot_eager", fullgraph=True),
                               is_compiled=True, eps=1e-5)

    def test_ops_are_what_the_dispatcher_expects(self):
        for norm, facts in SUMS.items():
            given = torch.randn(4, 6), torch.randn(4, 6), torch.ones(6), torch.zeros(6)
            values = {**dict(zip(facts.outputs, _ops.call(norm, given, ""))), "gain": torch.ones(6),
                      "dy": torch.randn(4, 6), "dsum": torch.randn(4, 6)}
            backward = [values[name] for name in _ops.OPS[norm + "_backward"].inputs]
            for op, tensors, text in ((norm, given, ""),
                                      (norm + "_backward", backward, "wants_dbias=true"),
                                      (norm + "_backward", [*backward[:-1], None], "")):
                opcheck(getattr(torch.ops.keel_norms, op).default, (*tensors, text),
                        test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_dynamic"))

    def test_transforms_and_the_meta_device(self):
        given = [t.detach() for t in inputs(True)]

        def loss(x, both):
            y, total = (both(x, given[1], 12, *given[2:]) if both else
                        apart(functional.layer_norm, x, *given[1:]))
            return (y * total).sum()

        got, expected = (torch.func.grad(lambda x, b=b: loss(x, b))(given[0])
                         for b in (functional.add_layer_norm, None))
        torch.testing.assert_close(got, expected)
        for result in functional.add_layer_norm(*[t.to("meta") for t in given[:2]], 12):
            self.assertEqual((result.shape, result.device.type), (given[0].shape, "meta"))

    def test_a_second_derivative_is_an_error(self):
        for dtype in (torch.float32, torch.bfloat16):
            x, residual, *affine = inputs(True, dtype)
            y, total = functional.add_layer_norm(x, residual, 12, *affine)
            (dx,) = torch.autograd.grad(y.sum() + total.sum(), x, create_graph=True)
            with self.assertRaisesRegex(RuntimeError, "has no second derivative"):
                dx.square().sum().backward()

    def test_any_number_of_threads_gives_the_same_bits(self):
        given, threads = inputs(True, shape=(4096, 64)), torch.get_num_threads()
        found = []
        for count in (1, 3):
            torch.set_num_threads(count)
            results = functional.add_layer_norm(*given[:2], 64, *given[2:])
            found.append([*results, *gradients(results, given, *copy.deepcopy(
                [r.detach() for r in results]))])
        torch.set_num_threads(threads)
        self.same(*found)

    def test_refusals(self):
        x, gain = torch.randn(4, 6), torch.ones(6)
        for kind, words, call in (
                (KeelError, r"\[add_layer_norm\] residual: expected \(4, 6\) of torch.float32, as "
                 r"x is, got \(6,\)", lambda f: f.add_layer_norm(x, x[0], 6)),
                (KeelError, "got .* of torch.float64", lambda f: f.add_rms_norm(x, x.double(), 6)),
                (TypeError, "residual: expected a tensor, got NoneType",
                 lambda f: f.add_rms_norm(x, None, 6)),
                (TypeError, "weight: expected a tensor, got float",
                 lambda f: f.add_rms_norm(x, x, 6, 1.0)),
                (KeelError, r"weight: expected \(6\), got \(5\)",
                 lambda f: f.add_layer_norm(x, x, 6, gain[:5])),
                (KeelError, "on one device, got cpu and meta",
                 lambda f: f.add_layer_norm(x, x.to("meta"), 6)),
                (KeelError, r"for a normalized_shape of \(5,\)",
                 lambda f: f.add_layer_norm(x, x, 5))):
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                call(functional)


if __name__ == "__main__":
    unittest.main()
