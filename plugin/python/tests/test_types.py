"""Types of keel_norms.torch beside those of torch.nn: with and without autocast, the place of the
cast in RMSNorm, and loss scaling."""
import copy
import itertools
import pathlib
import sys
import unittest
from unittest import mock

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import torch as knn  # noqa: E402
from keel_norms.torch import _autograd, _ops, functional  # noqa: E402

NORMS = {"LayerNorm": ((8,), (4, 6, 8)), "RMSNorm": ((8,), (4, 6, 8)),
         "GroupNorm": ((2, 8), (4, 8, 6)), "BatchNorm1d": ((8,), (4, 8, 6)),
         "InstanceNorm1d": ((8, 1e-5, 0.1, True), (4, 8, 6))}
BFLOAT16, FLOAT32 = torch.bfloat16, torch.float32


def types(library, name, x_type, gain_type, is_autocast):
    """The types of y and of the gradients of x and of the gain."""
    arguments, shape = NORMS[name]
    module = getattr(library, name)(*arguments).to(gain_type)
    x = torch.randn(shape).to(x_type).requires_grad_()
    with torch.autocast("cpu", BFLOAT16, enabled=is_autocast):
        y = module(x)
    y.float().square().sum().backward()
    return y.dtype, x.grad.dtype, module.weight.grad.dtype


class Types(unittest.TestCase):
    def each(self, pairs, check):
        for name in NORMS:
            for x_type, gain_type in pairs:
                for is_autocast in (False, True):
                    with self.subTest(norm=name, x=x_type, gain=gain_type, autocast=is_autocast):
                        check(name, x_type, gain_type, is_autocast)

    def test_those_of_torch_nn_on_cpus(self):
        def check(*case):
            found = types(knn, *case)
            self.assertEqual(found, types(nn, *case))
            self.assertEqual(found, (case[1], case[1], case[2]))
        self.each([(FLOAT32, FLOAT32), (BFLOAT16, FLOAT32), (BFLOAT16, BFLOAT16)], check)

    def test_a_gain_of_a_narrower_type(self):
        """torch.nn refuses it on CPUs, but for RMSNorm."""
        def check(*case):
            self.assertEqual(types(knn, *case), (FLOAT32, FLOAT32, BFLOAT16))
            if case[0] == "RMSNorm":
                self.assertEqual(types(nn, *case), (FLOAT32, FLOAT32, BFLOAT16))
            else:
                with self.assertRaisesRegex(RuntimeError, "mixed dtype"):
                    types(nn, *case)
        self.each([(FLOAT32, BFLOAT16)], check)


# (module, its arguments, shape of x). All norms but weight_norm, which parametrizes a weight.
MODULES = [(name, (8,), (12, 8)) for name in (
    "LayerNorm", "RMSNorm", "AdaNorm", "DetachNorm", "ScaleNorm", "SeeDNorm", "DyT", "Derf",
    "BatchNorm1d", "BatchRenorm1d", "RegularizedBatchNorm", "PNV", "PowerNorm", "MABN",
    "UnifiedNorm")] + [
    ("LayerNorm", (514,), (40, 514)), ("GroupNorm", (2, 8), (4, 8, 5)),
    ("GroupScaling", (2, 8), (12, 8)), ("BatchNorm2d", (8,), (4, 8, 3, 2)),
    ("InstanceNorm1d", (8,), (4, 8, 6))]


class Bfloat16(unittest.TestCase):
    """x and dy of bfloat16 are read in place, with the bits of float32."""

    def test_bits_of_float32(self):
        torch.manual_seed(0)
        for (name, arguments, shape), narrow in itertools.product(MODULES, (False, True)):
            module = getattr(knn, name)(*arguments).to(BFLOAT16 if narrow else FLOAT32)
            wide = copy.deepcopy(module)
            for step in range(4):
                if step == 3:
                    module.eval(), wide.eval()
                x, dy = ((torch.randn(shape) + 3).to(BFLOAT16) for _ in range(2))
                ours, theirs = (x.clone().requires_grad_() for _ in range(2))
                y, expected = module(ours), wide(theirs.float()).to(BFLOAT16)
                y.backward(dy), expected.backward(dy)
                pairs = [(y, expected), (ours.grad, theirs.grad),
                         *zip(module.state_dict().values(), wide.state_dict().values()),
                         *[(p.grad, q.grad) for p, q in zip(module.parameters(), wide.parameters())
                           if p.grad is not None]]
                for got, wanted in pairs:
                    with self.subTest(norm=name, narrow=narrow, step=step):
                        self.assertEqual(got.dtype, wanted.dtype)
                        self.assertTrue(torch.equal(got, wanted))

    def test_no_wide_copy(self):
        """The op itself takes and gives bfloat16, and statistics in float32."""
        x = torch.randn(6, 8).to(BFLOAT16)
        for place in ("cpu", "meta"):
            y, mean, rstd = torch.ops.keel_norms.layer_norm(x.to(place), None, None, "axes=1")
            self.assertEqual((y.dtype, mean.dtype, rstd.dtype), (BFLOAT16, FLOAT32, FLOAT32))
        asked = []
        recipe = _autograd._row_recipe("layer_norm", (("axes", 1),), BFLOAT16, FLOAT32, FLOAT32)
        run = recipe.forward
        with mock.patch.object(_ops, "call", lambda op, tensors, text: (
                asked.append([t.dtype for t in tensors]), (run(*tensors, text)))[1]):
            with torch.no_grad():
                functional.layer_norm(x, 8, torch.ones(8).to(BFLOAT16), torch.zeros(8))
        self.assertEqual(asked, [[BFLOAT16, FLOAT32, FLOAT32]])


def cast_first(x, gain):
    """RMS norm as language models such as Llama compute it."""
    wide = x.float()
    normalized = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
    return gain * normalized.to(x.dtype)


class CastOfRMSNorm(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)
        self.x = torch.randn(256, 64).to(BFLOAT16).requires_grad_()
        self.gain = torch.randn(64).to(BFLOAT16)

    def test_after_the_gain_as_in_torch_nn(self):
        y = functional.rms_norm(self.x, (64,), self.gain, 1e-6)
        self.assertTrue(torch.equal(y, nn.functional.rms_norm(self.x, (64,), self.gain, 1e-6)))
        # The two orders differ, so that the tests tell them apart.
        self.assertGreater(int((y != cast_first(self.x, self.gain)).sum()), y.numel() // 10)

    def test_in_front_of_the_gain(self):
        for offset in (0.0, 1.0):
            norm = knn.RMSNorm(64, 1e-6, offset=offset, cast_first=True, dtype=BFLOAT16)
            norm.load_state_dict({"weight": self.gain})
            y, expected = norm(self.x), cast_first(self.x, norm.weight + offset)
            self.assertTrue(torch.equal(y, expected))
            dy = torch.randn(y.shape).to(BFLOAT16)
            # dx is computed in float32 in another order, which may move a number to the next of
            # bfloat16, 2^-7 of it away; where terms cancel, by float32's roundings of these terms.
            # dgain is the same product and sum of the same numbers.
            got, wanted = (torch.autograd.grad(r, [self.x, norm.weight], dy) for r in (y, expected))
            torch.testing.assert_close(got[0], wanted[0], rtol=2**-7, atol=1e-5)
            self.assertTrue(torch.equal(got[1], wanted[1]))

    def test_y_keeps_its_type_under_a_wide_gain(self):
        y = functional.rms_norm_cast_first(self.x, (64,), self.gain.float(), 1e-6)
        self.assertEqual(y.dtype, BFLOAT16)
        expected = cast_first(self.x, self.gain.float()).to(BFLOAT16)
        self.assertTrue(torch.equal(y, expected))


class LossScaling(unittest.TestCase):
    def test_a_step_that_overflows(self):
        torch.manual_seed(6)
        norm = knn.PowerNorm(6)
        model = nn.Sequential(nn.Linear(4, 6), norm, nn.Linear(6, 1))
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for step in range(6):
            before = {name: value.clone() for name, value in model.state_dict().items()}
            is_bad, scale = step == 3, scaler.get_scale()
            loss = model(torch.randn(16, 4)).square().mean() * (float("inf") if is_bad else 1.0)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            self.assertEqual(scaler.get_scale(), scale / 2 if is_bad else scale)
            for name, value in model.state_dict().items():
                # The forward saw nothing of the overflow: psi2 moves and the batch counts.
                moves = not is_bad or name in ("1.running_psi2", "1.num_batches_tracked")
                with self.subTest(step=step, name=name):
                    self.assertEqual(torch.equal(value, before[name]), not moves)
                    self.assertTrue(bool(torch.isfinite(value).all()))


if __name__ == "__main__":
    unittest.main()
