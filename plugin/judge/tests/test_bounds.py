"""No bound can grow or shrink unnoticed: bounds of norms worked out by hand, element-wise ops by
the numbers of docs/numerics.md, and for every op of ten networks how small a fault its bound shows.

powers.json has those. `python test_bounds.py --write` makes it anew after a rule was changed."""
import json
import pathlib
import sys
import unittest

import settings
import torch

import keel_judge
from honest import MODELS, Step
from keel_judge.call import Call, before_writing, named_arguments, results_of
from keel_judge.measure import rounded_bound
from keel_judge.rounding import EPS
from keel_judge.rules import rule_of

aten = torch.ops.aten
POWERS = pathlib.Path(__file__).with_name("powers.json")
NEAR = 1.2  # a bound by hand, and a rule
GROWN = 1.5  # a recorded power, and the one of now


def bounds(func, *args, returned=None, **options):
    """In units of eps, by result; None where a result has no rule. `returned` stands for what the
    op gives where a CPU does not run it."""
    given = named_arguments(func, args, options)
    before = before_writing(func, given)
    results = results_of(func, given, func(*args, **options) if returned is None else returned)
    expected = rule_of(func)(Call(func, before, results))
    return [None if e is None else (rounded_bound(e, r.got, 4) / EPS).flatten().tolist()
            for e, r in zip(expected, results)]


# Deviation 1 and mean 0: s(x) and s(x^2) are (4 + 2) eps of 4, so that the mean is off by 6 eps and
# the variance by 6 (2 + 1) + 3 = 21; half of that and 3 more, 13.5, for 1 / s.
X, ONES, ZEROS = torch.tensor([[1.0, -1.0, 1.0, -1.0]]), torch.ones(4), torch.zeros(4)
# The bound of y: gain (mean 6 + rstd 13.5 + 2) + 4 |y| with a gain of 2; without a mean, 6 less.
Y, Y_RMS = 2 * (6 + 13.5 + 2) + 4 * 2, 2 * (13.5 + 2) + 4 * 2
# dy = (1, 0, 0, 0): sums of one term among four, 6 eps of it; a quarter of it is a mean.
MEAN_G, SLOPE, SPREAD = (6 + 6) / 4, (6 + 6) / 4, (6 + 4) / 4
DX = 6 + MEAN_G + SLOPE + SPREAD + 6 / 4, MEAN_G + SLOPE + SPREAD + 6 / 4
# The backward of an rms norm has no mean, and no correction of one: 4 / 4 for the spread.
DX_RMS = 6 + SLOPE + 4 / 4 + 6 / 4, SLOPE + 4 / 4 + 6 / 4
DY = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
ONE = torch.ones(1, 1)


def columns(t):
    """The same numbers as a batch of four samples with one feature."""
    return t.reshape(4, 1)


class ByHand(unittest.TestCase):
    def check(self, found, expected):
        for place, units in enumerate(expected):
            for got, wanted in zip(found[place], units, strict=True):
                with self.subTest(result=place):
                    self.assertLess(got, NEAR * wanted + 1e-4)
                    self.assertGreater(got, wanted / NEAR - 1e-4)

    def test_forward(self):
        gain = 2 * ONES
        self.check(bounds(aten.native_layer_norm.default, X, [4], gain, ZEROS, 0.0),
                   [[Y] * 4, [6], [13.5]])
        self.check(bounds(aten.native_group_norm.default, X.reshape(1, 4, 1), gain, ZEROS, 1, 4, 1,
                          1, 0.0), [[Y] * 4, [6], [13.5]])
        self.check(bounds(aten._fused_rms_norm.default, X, [4], gain, 0.0), [[Y_RMS] * 4, [13.5]])
        one = torch.full((1,), 2.0)
        mean, var = torch.zeros(1), torch.ones(1)
        found = bounds(aten.native_batch_norm.default, columns(X), one, torch.zeros(1), mean, var,
                       True, 0.1, 0.0)
        # A tenth of the batch's: 0.6 of the mean; 2.8 of 4/3 of the variance, 4 of the sum.
        self.check(found, [[Y] * 4, [6], [13.5], [0.6], [2.8 + 4 * (0.9 + 0.4 / 3)]])
        # Statistics of a state are read, and off by 1 and 4 roundings.
        found = bounds(aten.native_batch_norm.default, columns(X), one, torch.zeros(1), mean * 0,
                       var * 0 + 1, False, 0.1, 0.0)
        self.check(found[:1], [[2 * (4 + 2) + 4 * 2] * 4])

    def test_backward(self):
        found = bounds(aten.native_layer_norm_backward.default, DY, X, [4], 0 * ONE, ONE, ONES,
                       ZEROS, [True] * 3)
        expected = [[DX[0], *[DX[1]] * 3], [3 + 4, 0, 0, 0], [3, 0, 0, 0]]
        self.check(found, expected)
        found = bounds(aten.native_group_norm_backward.default, DY.reshape(1, 4, 1),
                       X.reshape(1, 4, 1), 0 * ONE, ONE, ONES, 1, 4, 1, 1, [True] * 3)
        self.check(found, expected)
        found = bounds(aten.native_batch_norm_backward.default, columns(DY), columns(X),
                       torch.ones(1), None, None, torch.zeros(1), torch.ones(1), True, 0.0,
                       [True] * 3)
        # The parameters take sums over the four samples.
        self.check(found, [expected[0], [6 + 4], [6]])
        found = bounds(aten._fused_rms_norm_backward.default, DY, X, [4], ONE, ONES, [True] * 2,
                       returned=(X.clone(), ONES.clone()))
        self.check(found, [[DX_RMS[0], *[DX_RMS[1]] * 3], [3 + 4, 0, 0, 0]])

    def test_elementwise(self):
        """Roundings of the result, and absolute ones, at 1 and at -1."""
        tanh, sigmoid = 0.7615942, 0.7310586
        for func, at, units in (
                (aten.exp, 1.0, 2.7182818 * (4 + 2.4)), (aten.log, 2.0, 0.6931472 * 4 + 4),
                (aten.tanh, 1.0, 6 * tanh), (aten.sigmoid, 1.0, 8 * sigmoid),
                (aten.sigmoid, -1.0, (1 - sigmoid) * (8 + 2.4)), (aten.sqrt, 4.0, 2 * 2)):
            with self.subTest(func=str(func), at=at):
                self.check(bounds(func.default, torch.tensor([at])), [[units]])
        a, b = torch.tensor([3.0]), torch.tensor([2.0])
        for func, units in ((aten.add, 5), (aten.sub, 1), (aten.mul, 6), (aten.div, 5 * 1.5)):
            with self.subTest(func=str(func)):
                self.check(bounds(func.Tensor, a, b), [[units]])

    def test_sums(self):
        """k A and two roundings more, of four terms of one sign and of both."""
        x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
        self.check(bounds(aten.sum.dim_IntList, x, [1]), [[(4 + 2) * 10]])
        self.check(bounds(aten.mm.default, x, X.t()), [[(4 + 2) * 10]])

    def test_softmax(self):
        """Four equal logits: exponentials are off by 4, tiles by 8 sqrt(1 + 4 / 16), the sum by
        (4 + 2)."""
        of_sum, log = 4 + 8 * 1.25**0.5 + 6, 1.3862944
        x, y = torch.zeros(1, 4), torch.full((1, 4), 0.25)
        self.check(bounds(aten._softmax.default, x, 1, False), [[0.25 * (4 + 5 + of_sum)] * 4])
        self.check(bounds(aten._log_softmax.default, x, 1, False),
                   [[of_sum + (8 + 2 + 2) * log] * 4])
        self.check(bounds(aten.logsumexp.default, x, [1]), [[of_sum + (8 + 2) * log]])
        self.check(bounds(aten._softmax_backward_data.default, DY, y, 1, torch.float32),
                   [[0.25 * (1.5 + 4 * 1.25), *[0.25 * (1.5 + 4 * 0.25)] * 3]])
        of_exp = 0.25 * (6 + 2.4 * log)
        self.check(bounds(aten._log_softmax_backward_data.default, DY, y.log(), 1, torch.float32),
                   [[0.25 * 6 + of_exp + 2, *[0.25 * 6 + of_exp] * 3]])

    def test_losses(self):
        """Roundings of each term; of a mean of four (4 + 2) of the sum and two of itself, too."""
        x, t = torch.tensor([3.0, 0.5]), torch.tensor([1.0, 0.25])
        for func, more, units in ((aten.mse_loss, (), (4 * 4, 4 * 0.0625)),
                                  (aten.l1_loss, (), (2 * 2, 2 * 0.25)),
                                  (aten.smooth_l1_loss, (1.0,), (6 * 1.5, 6 * 0.03125)),
                                  (aten.huber_loss, (1.0,), (6 * 1.5, 6 * 0.03125)),
                                  (aten.mse_loss_backward, (), (6 * 4, 6 * 0.5)),
                                  (aten.smooth_l1_loss_backward, (1.0,), (8, 8 * 0.25)),
                                  (aten.huber_loss_backward, (1.0,), (8, 8 * 0.25))):
            given = (torch.ones(2), x, t) if "backward" in str(func) else (x, t)
            with self.subTest(func=str(func)):
                self.check(bounds(func.default, *given, 0, *more), [units])
        x, t = torch.full((4,), 3.0), torch.ones(4)
        for func, more, term, units in ((aten.mse_loss, (), 4, 4),
                                        (aten.huber_loss, (1.0,), 1.5, 6)):
            with self.subTest(func=str(func)):
                total = 4 * term * (6 + units)
                self.check(bounds(func.default, x, t, 2, *more), [[total]])
                self.check(bounds(func.default, x, t, 1, *more), [[total / 4 + 2 * term]])

    def test_optimizers(self):
        """Numbers of 1, constants of 1/2. Adam: (1/2) m is off by 1, (1 - 1/2) g by 1.5, their sum
        by 1 more, and by 3 of its terms' halves as m + (1 - 1/2) (g - m); g^2 by 1, its half by 2.
        SGD: g + p / 2 by 2.5, once it is multiplied by 5.5, u by 1 + 5.5 + 2 of it."""
        def ones():
            return [torch.ones(1)]
        found = bounds(aten._fused_adam_.default, ones(), ones(), ones(), ones(), [], ones(),
                       lr=0.5, beta1=0.5, beta2=0.5, weight_decay=0.0, eps=0.0, amsgrad=False,
                       maximize=False)
        self.check(found[2:], [[1 + 1.5 + 1 + 3], [1 + 2 + 1 + 3]])
        found = bounds(aten._fused_sgd_.default, ones(), ones(), ones(), weight_decay=0.5,
                       momentum=0.5, lr=0.5, dampening=0.0, nesterov=False, maximize=False,
                       is_first_step=False)
        self.check([found[0], found[2]], [[0.5 * 2 + 0.5 * 8.5 + 1], [8.5]])
        found = bounds(aten._fused_adagrad_.default, ones(), ones(), ones(), ones(), lr=0.5,
                       lr_decay=0.0, weight_decay=0.0, eps=0.0, maximize=False)
        self.check(found[2:], [[1 + 2]])


def powers():
    """By op, the widest bound of ten networks as a share of the values, in eps."""
    found = {}
    for name in MODELS:
        step = Step(name)
        with keel_judge.judge(step.model, norms=False) as report:
            step()
        for row in report.rows.values():
            if 0 < row.power < 1:
                found[row.op] = max(found.get(row.op, 0), row.power / EPS)
    return {op: float(f"{power:.3g}") for op, power in sorted(found.items())}


class Recorded(unittest.TestCase):
    def test_powers(self):
        """A fault that was seen when the powers were recorded is seen today."""
        recorded, now = json.loads(POWERS.read_text(encoding="utf-8")), powers()
        common = recorded.keys() & now.keys()
        self.assertGreater(len(common), 0.8 * len(recorded))
        for op in sorted(common):
            with self.subTest(op=op):
                self.assertLess(now[op], GROWN * recorded[op])
                self.assertGreater(now[op], recorded[op] / GROWN)


if __name__ == "__main__":
    if "--write" in sys.argv:
        POWERS.write_text(json.dumps(powers(), indent=1) + "\n", encoding="utf-8")
    else:
        assert settings.ROOT
        unittest.main()
