"""keel_norms.torch.weight_norm beside torch.nn.utils.parametrizations.weight_norm."""
import copy
import io
import pathlib
import sys
import unittest
import warnings

import torch
from torch import nn
from torch.library import opcheck
from torch.nn.utils import parametrizations, parametrize

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import KeelError  # noqa: E402
from keel_norms import torch as knn  # noqa: E402
from keel_norms.torch import _ops, functional  # noqa: E402

# How a layer is made, the parameter, the axes of its units, and the shape of x.
LAYERS = {
    "Linear": (lambda: nn.Linear(7, 5), "weight", (0, 1, None), (3, 7)),
    "bias of Linear": (lambda: nn.Linear(7, 5), "bias", (0, None), (3, 7)),
    "Conv2d": (lambda: nn.Conv2d(4, 6, 3), "weight", (0, 1, 2, 3, None), (2, 4, 5, 6)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 6, 3), "weight", (0, 1, 2), (2, 4, 5)),
}
OLD = parametrizations._WeightNorm
# One rounding of float32 is 6e-8 of a weight; a sum of 54 squares and two products make few more.
CLOSE = {"rtol": 2e-6, "atol": 2e-6}


def cases():
    for layer, (make, name, dims, shape) in LAYERS.items():
        for dim in dims:
            yield layer, make, name, dim, shape


def pair(make, name, dim):
    """The same layer with keel's weight norm and with PyTorch's, whose lengths are not those of the
    directions."""
    torch.manual_seed(1)
    ours = make()
    theirs = copy.deepcopy(ours)
    knn.weight_norm(ours, name, dim)
    parametrizations.weight_norm(theirs, name, dim)
    with torch.no_grad():
        for layer in (ours, theirs):
            generator = torch.Generator().manual_seed(2)
            for parameter in layer.parametrizations[name].parameters():
                parameter.mul_(0.5 + torch.rand(parameter.shape, generator=generator))
    return ours, theirs


def step(run, layer, shape, seed=3):
    """y and the gradients of x and of all parameters."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator).to(next(layer.parameters()).dtype)
    y = run(x.requires_grad_())
    dy = torch.randn(y.shape, generator=generator).to(y.dtype)
    return [y.detach(), *torch.autograd.grad(y, [x, *layer.parameters()], dy)]


class LikePyTorch(unittest.TestCase):
    def each(self, check):
        for layer, make, name, dim, shape in cases():
            with self.subTest(layer=layer, dim=dim):
                check(*pair(make, name, dim), name, shape)

    def close(self, got, expected, **bounds):
        for g, e in zip(got, expected, strict=True):
            self.assertEqual((g.shape, g.dtype), (e.shape, e.dtype))
            torch.testing.assert_close(g, e, **(bounds or CLOSE))

    def same(self, got, expected):
        for g, e in zip(got, expected, strict=True):
            self.assertTrue(torch.equal(g, e))

    def test_values_and_gradients(self):
        def check(ours, theirs, name, shape):
            self.assertIs(type(ours.parametrizations[name][0]), knn.WeightNorm)
            self.close(step(ours, ours, shape), step(theirs, theirs, shape), rtol=1e-5, atol=1e-5)
            self.close([getattr(ours, name)], [getattr(theirs, name)])
        self.each(check)

    def test_states_are_exchanged(self):
        def check(ours, theirs, name, _):
            self.assertEqual([(key, value.shape) for key, value in ours.state_dict().items()],
                             [(key, value.shape) for key, value in theirs.state_dict().items()])
            with torch.no_grad():
                for parameter in theirs.parameters():
                    parameter.add_(0.25)
            ours.load_state_dict(theirs.state_dict(), strict=True)
            self.close([getattr(ours, name)], [getattr(theirs, name)])
            with torch.no_grad():
                for parameter in ours.parameters():
                    parameter.mul_(1.5)
            theirs.load_state_dict(ours.state_dict(), strict=True)
            self.close([getattr(ours, name)], [getattr(theirs, name)])
        self.each(check)

    def test_old_names_are_read(self):
        with warnings.catch_warnings():  # the older weight norm is deprecated
            warnings.simplefilter("ignore", FutureWarning)
            old = torch.nn.utils.weight_norm(nn.Linear(7, 5))
        model = nn.Sequential(knn.weight_norm(nn.Linear(7, 5)))
        model.load_state_dict({f"0.{key}": value for key, value in old.state_dict().items()})
        x = torch.randn(3, 7)
        self.close([model(x)], [old(x)], rtol=1e-5, atol=1e-5)

    def test_a_weight_becomes_its_direction(self):
        """Registering, and assigning a weight, keep the weight but for a rounding."""
        def check(ours, theirs, name, _):
            weight = torch.randn(getattr(ours, name).shape)
            for layer in (ours, theirs):
                setattr(layer, name, weight)
            self.close([getattr(ours, name)], [weight])
            self.same(ours.parametrizations[name].parameters(),
                      theirs.parametrizations[name].parameters())
            parametrize.remove_parametrizations(ours, name)
            self.close([getattr(ours, name)], [weight])
            self.assertIs(type(getattr(ours, name)), nn.Parameter)
        self.each(check)

    def test_a_converted_model(self):
        def check(ours, theirs, name, shape):
            expected, parameters = step(ours, ours, shape), list(theirs.parameters())
            knn.convert(theirs, {OLD: knn.WeightNorm})
            for got, wanted in zip(theirs.parameters(), parameters, strict=True):
                self.assertIs(got, wanted)
            self.same(step(theirs, theirs, shape), expected)
        self.each(check)

    def test_bfloat16(self):
        """Computed in float32 and rounded once."""
        def check(ours, _, name, shape):
            narrow = ours.bfloat16()
            wide = copy.deepcopy(narrow).float()
            w = getattr(narrow, name)
            self.assertEqual(w.dtype, torch.bfloat16)
            self.same([w], [getattr(wide, name).bfloat16()])
            for gradient in step(narrow, narrow, shape):
                self.assertEqual(gradient.dtype, torch.bfloat16)
        self.each(check)


class OfModules(unittest.TestCase):
    """PyTorch's demands on every module."""

    same, each = LikePyTorch.same, LikePyTorch.each

    def test_copies_and_files(self):
        def check(ours, theirs, name, shape):
            expected = step(ours, ours, shape)
            file = io.BytesIO()
            torch.save(ours.state_dict(), file)
            file.seek(0)
            fresh = copy.deepcopy(ours)
            with torch.no_grad():
                for parameter in fresh.parameters():
                    parameter.zero_()
            fresh.load_state_dict(torch.load(file, weights_only=True))
            for other in (copy.deepcopy(ours), fresh):
                self.same(step(other, other, shape), expected)
        self.each(check)

    def test_compiled_in_one_graph(self):
        def check(ours, theirs, name, shape):
            torch._dynamo.reset()
            run = torch.compile(ours, backend="aot_eager", fullgraph=True)
            self.same(step(run, ours, shape), step(ours, ours, shape))
        self.each(check)

    def test_cached_for_two_uses(self):
        ours, _ = pair(*LAYERS["Linear"][:2], 0)
        x = torch.randn(3, 7)
        with parametrize.cached():
            self.assertIs(ours.weight, ours.weight)
            ours(x).sum().backward()
        self.assertIsNotNone(ours.parametrizations.weight.original0.grad)

    def test_the_meta_device(self):
        with torch.device("meta"):
            layer = knn.weight_norm(nn.Conv2d(4, 6, 3), dim=1)
            self.assertEqual(layer(torch.empty(2, 4, 5, 5)).shape, (2, 6, 3, 3))

    def test_two_in_a_network_train(self):
        torch.manual_seed(4)
        model = nn.Sequential(knn.weight_norm(nn.Linear(6, 8)), nn.Tanh(),
                              knn.weight_norm(nn.Linear(8, 1), dim=None))
        x = torch.randn(64, 6)
        target, optimizer = x[:, :1] * x[:, 1:2], torch.optim.Adam(model.parameters(), 2e-2)
        losses = []
        for _ in range(100):
            loss = (model(x) - target).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        self.assertLess(losses[-1], 0.3 * losses[0])


class Function(unittest.TestCase):
    def test_exact_gradients(self):
        torch.manual_seed(5)
        for shape, dims in (((4, 3), (0, 1, None)), ((3, 2, 4), (0, 1, 2, -1)), ((5,), (0, -1))):
            for dim in dims:
                for eps in (0.0, 0.5):
                    v = torch.randn(shape).double().requires_grad_()
                    g = torch.norm_except_dim(v, 2, -1 if dim is None else dim).detach()
                    g = (g + 0.3).requires_grad_()
                    with self.subTest(shape=shape, dim=dim, eps=eps):
                        self.assertTrue(torch.autograd.gradcheck(
                            lambda v, g, dim=dim, eps=eps: functional.weight_norm(
                                v, g, dim, eps=eps),
                            (v, g)))

    def test_eps(self):
        """It keeps the units whose direction is 0, and a weight keeps its value."""
        v, g = torch.zeros(2, 3), torch.ones(2, 1)
        self.assertTrue(bool(functional.weight_norm(v, g).isnan().all()))
        self.assertTrue(bool((functional.weight_norm(v, g, eps=1e-6) == 0).all()))
        layer = nn.Linear(3, 2)
        weight = layer.weight.detach().clone()
        torch.testing.assert_close(knn.weight_norm(layer, eps=0.5).weight.detach(), weight)

    def test_strides_and_one_of_the_gradients(self):
        v = torch.randn(6, 4, 2)[..., 0].t()  # (4, 6)
        g = torch.rand(4, 1, requires_grad=True)
        w, expected = functional.weight_norm(v, g), torch._weight_norm(v, g, 0)
        torch.testing.assert_close(w, expected, **CLOSE)
        dw = torch.ones(()).expand(4, 6)
        torch.testing.assert_close(torch.autograd.grad(w, g, dw),
                                   torch.autograd.grad(expected, g, dw), rtol=1e-5, atol=1e-5)

    def test_refusals(self):
        v, g = torch.randn(4, 6), torch.ones(4, 1)
        for kind, text, call in (
                (ValueError, "dim: expected an axis of (4, 6), -1 or None, got 2",
                 lambda: functional.weight_norm(v, g, 2)),
                (KeelError, "g: expected (6), got (4)", lambda: functional.weight_norm(v, g, 1)),
                (TypeError, "v: expected float32 or float64, got torch.int64",
                 lambda: functional.weight_norm(v.long(), g))):
            with self.assertRaises(kind) as caught:
                call()
            self.assertIn(text, str(caught.exception))

    def test_a_second_derivative_is_an_error(self):
        v, g = torch.randn(4, 6, requires_grad=True), torch.ones(4, 1)
        (dv,) = torch.autograd.grad(functional.weight_norm(v, g).square().sum(), v,
                                    create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "weight_norm.* has no second derivative"):
            dv.square().sum().backward()

    def test_torch_func(self):
        v, g, dw = torch.randn(4, 6), torch.rand(4, 1), torch.randn(4, 6)
        got, expected = (torch.func.grad(lambda v, f=f: (f(v) * dw).sum())(v) for f in (
            lambda v: functional.weight_norm(v, g), lambda v: torch._weight_norm(v, g, 0)))
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)

    def test_ops_are_what_the_dispatcher_expects(self):
        v, dw = torch.randn(4, 6), torch.randn(4, 6)
        for text, units in (("", 4), ("by_column=true eps=0.1", 6)):
            g = torch.rand(units)
            _, rstd = _ops.call("weight_norm", [v, g], text)
            for op, inputs in (("weight_norm", [v, g]),
                               ("weight_norm_backward", [v, g, rstd, dw])):
                with self.subTest(op=op, attributes=text):
                    opcheck(_ops.OVERLOADS[op], (*inputs, text), test_utils=(
                        "test_schema", "test_faketensor", "test_aot_dispatch_dynamic"))
                    opcheck(_ops.OVERLOADS[op], (*[t.clone().requires_grad_() for t in inputs],
                                                 text), test_utils="test_autograd_registration")


if __name__ == "__main__":
    unittest.main()
