"""A convolution by Winograd's tiles, made here in float32: it is right, if perhaps suspect."""
import unittest

import settings
import torch

from keel_judge.call import Call, Result, named_arguments
from keel_judge.measure import measure
from keel_judge.rules import rule_of

# F(4, 3) of Lavin and Gray 2016: four places of three weights from six inputs.
DATA = torch.tensor([[4., 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
                     [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]])
FILTER = torch.tensor([[1 / 4, 0, 0], [-1 / 6] * 3, [-1 / 6, 1 / 6, -1 / 6],
                       [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]])
RESULT = torch.tensor([[1., 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0],
                       [0, 1, -1, 8, -8, 1]])


def one_tile(x, weight):
    """The 4 by 4 places of each filter, with one running sum over the channels."""
    data, filters = DATA @ x @ DATA.T, FILTER @ weight @ FILTER.T
    total = torch.zeros(len(weight), 6, 6)
    for channel in range(len(x)):
        total = total + filters[:, channel] * data[channel]
    return RESULT @ total @ RESULT.T


def judged(x, weight, got):
    func = torch.ops.aten.convolution.default
    given = named_arguments(func, (x[None], weight, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
                            {})
    result = Result("output 0", got[None])
    (expected,) = rule_of(func)(Call(func, given, [result]))
    return measure(result.got, expected, 4)


class Tiles(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)

    def cases(self):
        """Random numbers, a pixel that is large beside the others, and channels whose signs make
        the running sum as large as it can be before it goes back."""
        for channels in (3, 64, 512):
            x, weight = torch.randn(channels, 6, 6), torch.randn(2, channels, 3, 3)
            yield x, weight
            large = x.clone()
            large[0, 5, 5] = 1e5
            yield large, weight
            signs = torch.ones(channels, 1, 1)
            signs[channels // 2:] = -1
            yield signs * (1 + torch.rand(channels, 6, 6)), 1 + torch.rand(2, channels, 3, 3)

    def test_honest_tiles_are_within_the_bound(self):
        for x, weight in self.cases():
            measured = judged(x, weight, one_tile(x, weight))
            self.assertLess(float(measured.share.max()), 0.1)

    def test_an_error_of_one_element_alone_is_named(self):
        """It is within the bound of tiles, which would have spread it, so that four of the same
        size are suspect only."""
        x, weight = torch.randn(64, 6, 6), torch.randn(16, 64, 3, 3)
        for count, named in ((1, 1), (4, 0)):
            got = one_tile(x, weight)
            got.view(-1)[got.abs().flatten().topk(count).indices] *= 1.001
            measured = judged(x, weight, got)
            self.assertEqual(int(measured.wrong.sum()), named)
            self.assertEqual(measured.suspicion, "" if named else "beyond the usual error of sums")

    def test_a_wrong_element_is_named_or_suspect(self):
        for x, weight in self.cases():
            got = one_tile(x, weight)
            place = got.abs().argmax()
            got.view(-1)[place] *= 1.01
            measured = judged(x, weight, got)
            self.assertTrue(bool(measured.wrong.any()) or measured.suspicion)


if __name__ == "__main__":
    assert settings.ROOT
    unittest.main()
