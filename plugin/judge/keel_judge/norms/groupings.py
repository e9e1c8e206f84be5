"""Over which numbers a norm takes its statistics: x as (groups, elements of a group)."""
import math

import torch


class Grouping:
    """`reduced` are the axes that share statistics; `split` cuts an axis into parts first."""

    by_channel = False  # x (samples, channels, steps), as PyTorch's GroupNorm takes it

    def __init__(self, name, shape, reduced, split=None):
        self.name, self.shape = name, tuple(shape)
        self.parts = split[1] if split else 1
        self.cut = list(shape)
        if split:
            axis, parts = split
            self.cut[axis:axis + 1] = [parts, shape[axis] // parts]
        self.reduced = sorted(reduced)
        self.kept = [a for a in range(len(self.cut)) if a not in self.reduced]
        self.order = self.kept + self.reduced
        self.count = math.prod(self.cut[a] for a in self.kept)

    def take(self, t):
        return t.reshape(self.cut).permute(self.order).reshape(self.count, -1)

    def back(self, t):
        moved = t.reshape([self.cut[a] for a in self.order])
        return moved.permute([self.order.index(a) for a in range(len(self.order))]) \
            .reshape(self.shape)


def divisors(size):
    return [k for k in range(2, size) if size % k == 0]


def groupings(shape, parameters=()):
    """All that are known for such an array and parameters of these sizes, the common ones first."""
    if len(shape) == 4:
        return image_groupings(shape, parameters)
    are_of_channels = len(shape) == 3 and all(size == shape[1] for size in parameters)
    if are_of_channels and parameters and shape[1] != shape[2]:
        return channel_groupings(shape, True)
    last = len(shape) - 1
    result = [Grouping("row", shape, [last]), Grouping("batch", shape, range(last))]
    if len(shape) == 3:
        result += [Grouping("sequence", shape, [1]), Grouping("step", shape, [0])]
    result += [Grouping("group", shape, [last + 1], (last, k)) for k in divisors(shape[last])]
    return result + (channel_groupings(shape, bool(parameters)) if are_of_channels else [])


def channel_groupings(shape, has_parameters):
    """Groupings of (samples, channels, steps). Without parameters an instance norm of these is a
    norm of rows."""
    result = [Grouping("one group", shape, [1, 2]), Grouping("batch", shape, [0, 2])]
    result += [Grouping("group", shape, [2, 3], (1, k)) for k in divisors(shape[1])]
    result += [Grouping("sequence", shape, [2])] if has_parameters else []
    for grouping in result:
        grouping.by_channel = True
    return result


def image_groupings(shape, parameters):
    """A gain and a bias per channel make one group of what is a row otherwise."""
    area = shape[2] * shape[3]
    is_group = area > 1 and parameters and all(size == shape[1] for size in parameters)
    result = [Grouping("one group" if is_group else "row", shape, [1, 2, 3]),
              Grouping("batch", shape, [0, 2, 3]), Grouping("sequence", shape, [2, 3])]
    result += [Grouping("place", shape, [1])] if area > 1 else []
    return result + [Grouping("group", shape, [2, 3, 4], (1, k)) for k in divisors(shape[1])]


def expanded(parameter, shape, default, by_channel=False):
    """A gain or bias of features, of a whole row, of units, or one number, as large as x."""
    if parameter is None:
        return torch.full(shape, default, dtype=torch.float64)
    p = parameter
    if p.numel() == 1:
        return p.reshape(()).expand(shape)
    if len(shape) == 4 and p.dim() == 1:
        return p.reshape(1, -1, 1, 1).expand(shape)
    if len(shape) == 3 and (by_channel or p.numel() == shape[1] != shape[2]):
        return p.reshape(1, -1, 1).expand(shape)
    if len(shape) == 2 and p.dim() == 1 and p.shape[0] == shape[0] != shape[1]:
        return p.reshape(-1, 1).expand(shape)
    return p.expand(shape)
