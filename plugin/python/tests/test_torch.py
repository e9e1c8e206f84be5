"""keel_norms.torch against torch.nn, composed references, and what PyTorch asks of modules."""
import copy
import io
import pathlib
import pickle
import sys
import unittest

import torch
from torch import nn
from torch.library import opcheck
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import KeelError  # noqa: E402
from keel_norms import torch as knn  # noqa: E402
from keel_norms._norms import NORMS  # noqa: E402
from keel_norms.torch import _ops, functional  # noqa: E402

# Module, torch.nn's, arguments, shape of x.
PAIRS = [
    (knn.LayerNorm, nn.LayerNorm, (12,), (5, 7, 12)),
    (knn.LayerNorm, nn.LayerNorm, ((7, 12),), (5, 7, 12)),
    (knn.RMSNorm, nn.RMSNorm, (12,), (5, 7, 12)),
    (knn.GroupNorm, nn.GroupNorm, (3, 12), (4, 12, 6)),
    (knn.GroupNorm, nn.GroupNorm, (3, 12), (4, 12, 3, 5)),
    (knn.InstanceNorm1d, nn.InstanceNorm1d, (12, 1e-5, 0.1, True), (4, 12, 6)),
    (knn.InstanceNorm2d, nn.InstanceNorm2d, (12, 1e-5, 0.1, True), (4, 12, 3, 5)),
    (knn.BatchNorm1d, nn.BatchNorm1d, (12,), (9, 12)),
    (knn.BatchNorm1d, nn.BatchNorm1d, (12,), (9, 12, 5)),
    (knn.BatchNorm1d, nn.BatchNorm1d, (12, 1e-5, None), (9, 12, 5)),
    (knn.BatchNorm1d, nn.BatchNorm1d, (12, 1e-5, 0.1, False), (9, 12)),
    (knn.BatchNorm1d, nn.BatchNorm1d, (12, 1e-5, 0.1, True, False), (9, 12)),
    (knn.BatchNorm2d, nn.BatchNorm2d, (12,), (3, 12, 4, 5)),
]


def drawn(module):
    """Moves the parameters away from 1 and 0."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, 0.5)
    return module


def gradients(y, inputs, dy):
    return torch.autograd.grad(y, inputs, dy, retain_graph=True)


class LikePyTorch(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def pair(self, ours, theirs, arguments, dtype=torch.float32):
        old = drawn(theirs(*arguments)).to(dtype)
        new = ours(*arguments).to(dtype)
        new.load_state_dict(old.state_dict())
        return new, old

    def close(self, got, expected):
        torch.testing.assert_close(got, expected, rtol=2e-5, atol=2e-5)

    def same_step(self, new, old, x, dy):
        y, expected = new(x), old(x)
        self.close(y, expected)
        self.assertEqual(y.dtype, expected.dtype)
        for got, wanted in zip(gradients(y, [x, *new.parameters()], dy),
                               gradients(expected, [x, *old.parameters()], dy)):
            self.close(got, wanted)

    def test_steps_and_evaluation(self):
        for ours, theirs, arguments, shape in PAIRS:
            with self.subTest(ours=ours.__name__, arguments=arguments, shape=shape):
                new, old = self.pair(ours, theirs, arguments)
                for _ in range(3):
                    x = (2 + torch.randn(shape)).requires_grad_()
                    self.same_step(new, old, x, torch.randn(shape))
                for name, buffer in old.named_buffers():
                    self.close(new.get_buffer(name), buffer)
                self.same_step(new.eval(), old.eval(), x, torch.randn(shape))

    def test_strides_of_all_kinds(self):
        for ours, theirs, arguments, shape in PAIRS:
            with self.subTest(ours=ours.__name__, shape=shape):
                new, old = self.pair(ours, theirs, arguments)
                x = torch.randn(*shape, 2)[..., 0].requires_grad_()
                self.same_step(new, old, x, torch.ones(()).expand(shape))
                if len(shape) == 4:
                    x = torch.randn(shape).to(memory_format=torch.channels_last).requires_grad_()
                    self.same_step(new, old, x, torch.randn(shape))

    def test_bfloat16_and_half(self):
        for dtype in (torch.bfloat16, torch.float16):
            for ours, theirs, arguments, shape in PAIRS[:4]:
                with self.subTest(ours=ours.__name__, dtype=dtype):
                    new, old = self.pair(ours, theirs, arguments)
                    x = torch.randn(shape).to(dtype)
                    y = new(x)
                    self.assertEqual(y.dtype, dtype)
                    torch.testing.assert_close(y.float(), old(x.float()), rtol=2**-7, atol=2**-7)

    def test_state_dict_copies_and_pickles(self):
        for ours, theirs, arguments, shape in PAIRS:
            with self.subTest(ours=ours.__name__):
                new, old = self.pair(ours, theirs, arguments)
                old.load_state_dict(new.state_dict(), strict=True)
                file = io.BytesIO()
                torch.save(new.state_dict(), file)
                file.seek(0)
                x = torch.randn(shape)
                expected = copy.deepcopy(new)(x)
                for other in (copy.deepcopy(new), pickle.loads(pickle.dumps(new))):
                    other.load_state_dict(torch.load(file, weights_only=True))
                    file.seek(0)
                    self.assertTrue(torch.equal(other(x), expected))
                self.assertIsInstance(new, theirs)


def power_norm_step(x, dy, state, alpha=0.9, eps=1e-5):
    """One training step of PowerNorm as the release computes it, without gain and warm-up."""
    psi2_b = x.square().mean(0)
    xhat = x / (state["psi2"] + eps).sqrt()
    dx = (dy - state["nu"] * xhat) / (psi2_b + eps).sqrt()
    gamma, lam = xhat.square().mean(0), (dy * xhat).mean(0)
    nu = state["nu"] * (1 - (1 - alpha) * gamma) + (1 - alpha) * lam
    return xhat, dx, {"psi2": alpha * state["psi2"] + (1 - alpha) * psi2_b, "nu": nu}


class OwnNorms(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(2)

    def test_power_norm_over_200_steps(self):
        norm = knn.PowerNorm(6).double()
        state = {"psi2": torch.ones(6).double(), "nu": torch.zeros(6).double()}
        for _ in range(200):
            x = (0.8 * torch.randn(16, 6)).double().requires_grad_()
            dy = torch.randn(16, 6).double()
            y = norm(x)
            (dx,) = gradients(y, [x], dy)
            expected, wanted, state = power_norm_step(x.detach(), dy, state)
            torch.testing.assert_close(y.detach(), expected)
            torch.testing.assert_close(dx, wanted)
            torch.testing.assert_close(norm.running_psi2, state["psi2"])
            torch.testing.assert_close(norm.running_nu, state["nu"])
        self.assertEqual(int(norm.num_batches_tracked), 200)
        norm.eval()
        before = copy.deepcopy(norm.state_dict())
        torch.testing.assert_close(norm(x).detach(), x.detach() / (state["psi2"] + 1e-5).sqrt())
        for name, value in norm.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]))

    def test_exact_gradients(self):
        x = torch.randn(6, 8).double().requires_grad_()
        for norm in (knn.LayerNorm(8), knn.RMSNorm(8, 1e-5), knn.GroupNorm(2, 8), knn.ScaleNorm(8),
                     knn.DyT(8), knn.Derf(8), knn.SeeDNorm(8),
                     knn.GroupScaling(2, 8), knn.BatchNorm1d(8, track_running_stats=False),
                     knn.PNV(8)):
            with self.subTest(norm=type(norm).__name__):
                self.assertTrue(torch.autograd.gradcheck(drawn(norm).double(), (x,)))

    def test_detached_gradients(self):
        x = torch.randn(6, 8).double().requires_grad_()
        dy = torch.randn(6, 8).double()
        mean, var = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
        deviation = (var + 1e-5).sqrt()
        xhat = (x - mean) / deviation
        factor = (1 - 0.1 * xhat).detach()
        cases = [(knn.DetachNorm(8), (x - mean.detach()) / deviation.detach()),
                 (knn.DetachNorm(8, detach_variance=False), (x - mean.detach()) / deviation),
                 (knn.DetachNorm(8, detach_mean=False), (x - mean) / deviation.detach()),
                 (knn.AdaNorm(8), factor * xhat), (knn.LayerNormSimple(8), xhat)]
        for norm, expected in cases:
            with self.subTest(norm=norm):
                torch.testing.assert_close(norm(x), expected)
                torch.testing.assert_close(gradients(norm(x), [x], dy),
                                           gradients(expected, [x], dy))

    def test_masks_leave_padding_out(self):
        x = torch.randn(3, 5, 8)
        mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]]).bool()
        for make in (lambda: knn.PowerNorm(8), lambda: knn.PNV(8), lambda: knn.MABN(8, m=2),
                     lambda: knn.BatchRenorm1d(8)):
            whole, kept = make(), make()
            bad = x.masked_fill(~mask[..., None], float("nan"))
            y = whole(bad, mask)
            with self.subTest(norm=whole):
                torch.testing.assert_close(y[mask], kept(x[mask]))
                self.assertEqual(float(y[~mask].abs().max()), 0)
        norm, reference = knn.BatchNorm1d(5), nn.BatchNorm1d(5)
        y = norm(x.transpose(1, 2)[:, :5], torch.ones(3, 5).bool())
        torch.testing.assert_close(y, reference(x.transpose(1, 2)[:, :5]), rtol=1e-5, atol=1e-5)

    def test_a_step_that_is_not_finite_leaves_the_state(self):
        for norm in (knn.PowerNorm(4), knn.MABN(4, m=2), knn.BatchNorm1d(4), knn.BatchRenorm1d(4),
                     knn.PNV(4), knn.BatchNorm1d(4, momentum=None)):
            norm(torch.randn(3, 4)).sum().backward()
            # PyTorch's own batch norm counts every batch.
            before = {k: v.clone() for k, v in norm.state_dict().items()
                      if "batches" not in k or not isinstance(norm, nn.BatchNorm1d)}
            for bad in ("inf", "nan"):
                x = torch.randn(3, 4)
                x[1, 2] = float(bad)  # one number is enough, and the other channels wait, too
                norm(x.requires_grad_()).sum().backward()
                for name, value in before.items():
                    self.assertTrue(torch.equal(norm.state_dict()[name], value), (norm, name))

    def test_states_move_together_or_not_at_all(self):
        norm = knn.BatchNorm1d(4)
        norm(torch.randn(3, 4) * 1e30)  # a variance beyond float32, and a mean within
        self.assertTrue(torch.equal(norm.running_mean, torch.zeros(4)))
        self.assertTrue(torch.equal(norm.running_var, torch.ones(4)))

    def test_offset_of_rms_norm(self):
        x = torch.randn(3, 8)
        for offset in (1.0, -0.5):
            norm, plain = knn.RMSNorm(8, 1e-6, offset=offset), nn.RMSNorm(8, 1e-6)
            torch.testing.assert_close(norm.weight.detach(), torch.full((8,), 1 - offset))
            torch.testing.assert_close(norm(x), plain(x))
            kept = torch.randn(8)  # what a checkpoint of such a model holds
            norm.load_state_dict({"weight": kept})
            plain.load_state_dict({"weight": offset + kept})
            torch.testing.assert_close(norm(x), plain(x))
            torch.testing.assert_close(gradients(norm(x), [norm.weight], x),
                                       gradients(plain(x), [plain.weight], x))

    def test_any_number_of_threads_gives_the_same_bits(self):
        x = torch.randn(4096, 64, requires_grad=True)
        norm, threads = knn.LayerNorm(64), torch.get_num_threads()
        results = []
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            y = norm(x)
            results.append((y, *gradients(y, [x, *norm.parameters()], x.detach())))
        torch.set_num_threads(threads)
        for other in results[1:]:
            for got, expected in zip(other, results[0]):
                self.assertTrue(torch.equal(got, expected))


class Refusals(unittest.TestCase):
    def test_messages(self):
        x = torch.randn(4, 6)
        for kind, text, call in (
                (TypeError, "expected float32 or float64, got torch.int64",
                 lambda: functional.layer_norm(torch.ones(2, 6).long(), (6,))),
                (ValueError, "x: expected (..., 5), for a normalized_shape of (5,), got (4, 6)",
                 lambda: functional.layer_norm(x, (5,))),
                (KeelError, "groups", lambda: functional.group_norm(x, 4)),
                (ValueError, "mask: expected (4,), a number for each row",
                 lambda: knn.PowerNorm(6)(x, torch.ones(6))),
                (NotImplementedError, "running statistics",
                 lambda: knn.InstanceNorm1d(6, track_running_stats=True)(x[None]))):
            with self.assertRaises(kind) as caught:
                call()
            self.assertIn(text, str(caught.exception))

    def test_a_second_derivative_is_an_error(self):
        x = torch.randn(4, 6, requires_grad=True)
        (dx,) = torch.autograd.grad(knn.LayerNorm(6)(x).square().sum(), x, create_graph=True)
        with self.assertRaises(RuntimeError):
            dx.sum().backward()

    def test_a_checkpoint_is_exact_or_refused(self):
        x = torch.randn(9, 6, requires_grad=True)
        norm, plain = knn.BatchNorm1d(6), knn.BatchNorm1d(6)
        checkpoint(norm, x, use_reentrant=False).sum().backward()
        plain(x)
        self.assertTrue(torch.equal(norm.running_mean, plain.running_mean))
        self.assertEqual(int(norm.num_batches_tracked), 1)
        for module in (knn.PowerNorm(6), knn.MABN(6), knn.BatchRenorm1d(6)):
            with self.assertRaisesRegex(RuntimeError, "outside of the checkpoint"):
                checkpoint(module, x, use_reentrant=False).sum().backward()


class Compiled(unittest.TestCase):
    def test_the_same_as_eager_in_one_graph(self):
        torch.manual_seed(3)
        for make in (lambda: knn.LayerNorm(8), lambda: knn.BatchNorm1d(8), lambda: knn.PowerNorm(8),
                     lambda: knn.PNV(8)):
            eager = make()
            compiled = copy.deepcopy(eager)
            run = torch.compile(compiled, backend="aot_eager", fullgraph=True)
            with self.subTest(norm=eager):
                for _ in range(3):
                    x = torch.randn(6, 8, requires_grad=True)
                    y, expected = run(x), eager(x)
                    self.assertTrue(torch.equal(y, expected))
                    self.assertTrue(torch.equal(*(gradients(r, [x], x.detach())[0]
                                                  for r in (y, expected))))
                for name, value in eager.state_dict().items():
                    self.assertTrue(torch.equal(compiled.state_dict()[name], value), name)

    def test_ops_are_what_the_dispatcher_expects(self):
        arguments = {"group_norm": "groups=2", "group_scaling": "groups=2",
                     "mabn": "m=4", "power_norm": "groups=2"}
        for norm, facts in NORMS.items():
            x = torch.randn(4, 6) if norm != "instance_norm" else torch.randn(2, 4, 6)
            text = arguments.get(norm, "")
            for training in ("true", "false") if facts.states else ("",):
                given = f"{text} training={training}".strip() if training else text
                values = {"x": x, "gain": torch.ones(1 if norm == "scale_norm" else 6),
                          "bias": torch.zeros(6), **first_state(facts, x),
                          **dict.fromkeys(facts.more,
                                          torch.ones(6 if norm == "seed_norm" else 1))}
                names = _ops.OPS[norm].inputs
                inputs = [values.get(name) for name in names]
                with self.subTest(norm=norm, attributes=given):
                    self.check_op(norm, inputs, given)
                    results = dict(zip(facts.outputs, _ops.call(norm, inputs, given)))
                    self.check_backward(norm, {**values, **results, "dy": x}, given)

    def check_backward(self, norm, values, text):
        names, known = _ops.OPS[norm + "_backward"][:2]
        kept = " ".join(p for p in text.split() if p.split("=")[0] in known)
        if "wants_dbias" in known:
            kept = f"{kept} wants_dbias=true".strip()
        inputs = [values.get(name) for name in names]
        inputs = [None if NORMS[norm].lacks(value) else value for value in inputs]
        self.check_op(norm + "_backward", inputs, kept)

    def check_op(self, name, inputs, text):
        """All four checks of opcheck. That of autograd tests nothing unless an input wants a
        gradient. The others do without: the op has no kernel of autograd, so PyTorch would warn."""
        op = getattr(torch.ops.keel_norms, name).default
        opcheck(op, (*inputs, text),
                test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_dynamic"))
        wanting = [value.clone().requires_grad_() if value is not None and
                   value.is_floating_point() else value for value in inputs]
        opcheck(op, (*wanting, text), test_utils="test_autograd_registration")


def first_state(facts, x):
    shapes = {"channels": (x.shape[-1],), "scalar": (), "ring": (4, x.shape[-1])}
    return {name: torch.full(shapes[state.shape], float(state.first)).to(
        torch.int32 if name == "step" else x.dtype) for name, state in facts.states.items()}


class Converted(unittest.TestCase):
    def encoder(self):
        torch.manual_seed(4)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def test_layer_norms_keep_their_parameters(self):
        model = self.encoder()
        x, expected = torch.randn(3, 5, 16), None
        expected, parameters = model(x), set(map(id, model.parameters()))
        knn.convert(model, {nn.LayerNorm: knn.LayerNorm})
        self.assertEqual(sum(isinstance(m, knn.LayerNorm) for m in model.modules()), 4)
        self.assertEqual(set(map(id, model.parameters())), parameters)
        torch.testing.assert_close(model(x), expected, rtol=1e-5, atol=1e-5)

    def test_evaluation_calls_the_new_norms(self):
        for target in (knn.PowerNorm, knn.AdaNorm, knn.DetachNorm):
            model = knn.convert(self.encoder(), {nn.LayerNorm: target}).eval()
            x = torch.randn(3, 5, 16)
            with torch.no_grad():
                fast = model(x)
            torch.testing.assert_close(fast, model(x).detach())

    def test_a_converted_encoder_learns(self):
        for target in (knn.PowerNorm, knn.AdaNorm):
            model = knn.convert(self.encoder(), {nn.LayerNorm: target})
            head = nn.Linear(16, 2)
            optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], 3e-3)
            x = torch.randn(64, 5, 16)
            label = (x[:, 0, 0] > 0).long()
            losses = []
            for _ in range(40):
                loss = nn.functional.cross_entropy(head(model(x).mean(1)), label)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(float(loss))
            self.assertLess(losses[-1], 0.5 * losses[0], target.__name__)


if __name__ == "__main__":
    unittest.main()
