"""The numbers and shapes that a norm is tried on, sampled from a seed."""
import zlib
from dataclasses import dataclass

import torch

# Kinds of data; `level` is the exponent of a power of two where a kind takes one.
PLAIN = ("normal", "shifted", "scaled", "ramp", "sparse", "two values")
SPECIAL = ("constant rows", "nearly constant", "one huge element", "zeros", "subnormal",
           "alternating signs")


@dataclass(frozen=True)
class Case:
    """One call to make: all that decides it, besides the seed."""

    shape: tuple
    data: str = "normal"
    level: int = 0
    how: str = ""  # what a property does with it
    gradient: str = "normal"
    only: str = ""  # "y": no backward

    def text(self):
        kind = f"{self.data} 2^{self.level}" if self.level else self.data
        return f"{list(self.shape)}, {kind}" + (f", {self.how}" if self.how else "")


@dataclass
class Arrays:
    """The inputs of a call; parameters that a norm does not have are None."""

    x: torch.Tensor
    gain: torch.Tensor | None = None
    bias: torch.Tensor | None = None
    dy: torch.Tensor | None = None

    def items(self):
        return [(n, t) for n, t in vars(self).items() if t is not None]


def generator_of(*words):
    """The generator of a case: the same for the same seed, property and number."""
    return torch.Generator().manual_seed(zlib.crc32("/".join(map(str, words)).encode()))


def per_row(t):
    return t.reshape(-1, t.shape[-1]) if t.dim() > 1 else t.reshape(1, -1)


def values(case, random, dtype):
    """x of a case, rounded to its type."""
    x = torch.randn(case.shape, generator=random, dtype=torch.float64)
    if x.numel():
        x = SHAPES_OF_DATA[case.data](x, case.level, random)
    largest = torch.finfo(dtype).max
    return x.clamp(-largest, largest).to(dtype)


def shifted(x, level, random):
    """Every row with a mean and a deviation of its own."""
    rows = per_row(x)
    size = 2.0 ** torch.randint(-4, 5, (len(rows), 1), generator=random).double()
    mean = torch.randn(len(rows), 1, generator=random, dtype=torch.float64)
    return ((rows + 2 * mean) * size).reshape(x.shape)


def ramp(x, level, random):
    steps = torch.linspace(-1, 2, x.shape[-1], dtype=torch.float64)
    return steps.expand(x.shape) + 0.01 * x


def sparse(x, level, random):
    return torch.where(torch.rand(x.shape, generator=random) < 0.8, 0.0, x)


def constant(x, level, random):
    rows = per_row(x)
    return (rows[:, :1] * 2.0 ** (level or 3)).expand(rows.shape).reshape(x.shape).clone()


def nearly_constant(x, level, random):
    return constant(x, level, random) * (1 + 2.0**-20 * (x > 1))


def one_huge(x, level, random):
    rows = per_row(x).clone()
    places = torch.randint(0, rows.shape[1], (len(rows),), generator=random)
    rows[torch.arange(len(rows)), places] = 2.0 ** (level or 20)
    return rows.reshape(x.shape)


def zeros(x, level, random):
    """Whole rows of zeros, some of them negative, beside rows that are not."""
    rows = torch.where(per_row(x) > 0, 0.0, -0.0)
    rows[1::3] = per_row(x)[1::3]
    return rows.reshape(x.shape)


SHAPES_OF_DATA = {
    "normal": lambda x, level, random: x,
    "shifted": shifted,
    "scaled": lambda x, level, random: x * 2.0 ** (level or 3),
    "mean": lambda x, level, random: x + 2.0**level,
    "ramp": ramp, "sparse": sparse,
    "two values": lambda x, level, random: (x > 0).double() * 3 - 1,
    "constant rows": constant, "nearly constant": nearly_constant, "one huge element": one_huge,
    "zeros": zeros,
    "subnormal": lambda x, level, random: x * 2.0**-130,
    "alternating signs": lambda x, level, random: torch.where(
        torch.arange(x.shape[-1]) % 2 == 0, x.abs() + 4, -x.abs() - 4),
}


def arrays_of(case, test, name, number):
    """All that a call of a case is given."""
    random = generator_of(test.seed, name, number)
    x = values(case, random, test.dtype)
    width = case.shape[-1] if test.claim.of_rows else case.shape[1]

    def parameter(centre, spread):
        value = centre + spread * torch.randn(width, generator=random, dtype=torch.float64)
        return value.to(test.parameter_dtype)
    gain = parameter(1 - test.claim.offset, 0.5) if test.has_gain else None
    bias = parameter(0, 1) if test.has_bias else None
    dy = torch.randn(case.shape, generator=random, dtype=torch.float64)
    if case.gradient == "constant":
        dy = torch.ones(case.shape, dtype=torch.float64)
    elif case.gradient == "of few rows":
        dy = dy * (torch.rand(case.shape[:1] + (1,) * (dy.dim() - 1), generator=random) < 0.3)
    return Arrays(x, gain, bias, dy.to(test.dtype))


ROW_SHAPES = ((5, 64), (4, 33), (3, 1000), (1, 17), (2, 3, 40), (33, 7), (64, 128), (2, 4099),
              (7, 1), (3, 2), (130, 24), (9, 769), (6, 256), (17, 31), (2, 2, 2, 12), (12, 1025))
CHANNEL_SHAPES = ((4, 6, 5), (3, 8, 7, 7), (2, 4, 33), (5, 12, 3, 2), (6, 2, 9), (2, 8, 16, 16),
                  (3, 6, 1000), (2, 4, 4, 5), (8, 6, 2, 3), (2, 64, 3, 3), (7, 8, 17), (2, 10, 31))
PAIR_SHAPES = ((5, 6), (33, 8), (4, 64), (128, 12))


def shapes_of(test):
    """Shapes that the norm takes, small ones and odd ones."""
    claim, binding = test.claim, test.binding
    if claim.of_rows:
        shapes = ROW_SHAPES
        if binding.width:
            shapes = tuple(dict.fromkeys((*s[:-1], binding.width) for s in shapes))
    else:
        shapes = CHANNEL_SHAPES + (PAIR_SHAPES if claim.extent == "batch" else ())
        if binding.width:
            shapes = tuple(dict.fromkeys((s[0], binding.width, *s[2:]) for s in shapes))
        if claim.extent == "group":
            shapes = tuple(s for s in shapes if s[1] % claim.groups == 0)
    if binding.shape:
        return tuple(binding.shape for _ in range(4))
    return tuple(s for s in shapes if not binding.dims or len(s) in binding.dims)
