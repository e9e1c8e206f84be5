"""Errors of rounding: formats, sums, and numbers that carry their errors.

The formulas are those of docs/numerics.md (Results of any program) on float64 tensors."""
from dataclasses import dataclass
from typing import NamedTuple

import torch

EPS = 2.0**-24  # half the distance from 1 to the next float32: kernels compute in float32
TINY = 2.0**-126  # smaller numbers may become 0


class Format(NamedTuple):
    """A floating type: its unit roundoff, what it may lose near 0, and its largest number."""

    eps: float
    tiny: float
    largest: float


FORMATS = {
    torch.float32: Format(EPS, TINY, torch.finfo(torch.float32).max),
    torch.bfloat16: Format(2.0**-8, TINY, torch.finfo(torch.bfloat16).max),
    torch.float16: Format(2.0**-11, 2.0**-25, torch.finfo(torch.float16).max),
}


class SumError(NamedTuple):
    """Errors of a sum: the largest that an order of additions explains, the usual one, and the
    deviation of a single result."""

    largest: torch.Tensor
    usual: torch.Tensor
    deviation: torch.Tensor


def sum_error(count, sizes, squares, total, eps=EPS):
    """The errors of sums of `count` terms with these sums of sizes and of squares: T and W there.

    Terms of random signs keep their sum within 4 of its deviations; what is beyond that is a
    trend, along which running sums and their roundings grow."""
    count = torch.as_tensor(count, dtype=torch.float64)
    root, length = count.sqrt(), squares.sqrt()
    # In place, because new memory for every step takes most of the time.
    drift = total.abs().sub_(4 * length).clamp_(min=0).mul_(count / 2)
    most, ends = count * sizes, (2 * eps * sizes).add_(count * TINY)
    largest, usual = (torch.minimum(most, (8 * root * t).add_(drift)).mul_(eps).add_(ends)
                      for t in (sizes, length))
    deviation = torch.minimum(most.div_(8), root * length).mul_(eps).add_(ends.div_(8))
    return SumError(largest, usual, deviation)


def sum_error_of(terms, dim, keepdim=False, eps=EPS):
    """sum_error of the sums of `terms` over `dim`."""
    count = terms.numel() / max(1, terms.sum(dim).numel())
    return sum_error(count, terms.abs().sum(dim, keepdim=keepdim),
                     terms.square().sum(dim, keepdim=keepdim), terms.sum(dim, keepdim=keepdim), eps)


def relative_sum_error(terms, dim, keepdim=False, eps=EPS):
    """T of a sum, relative to the sum of the sizes of its terms; 0 where all are 0."""
    sizes = terms.abs().sum(dim, keepdim=keepdim)
    largest = sum_error_of(terms, dim, keepdim, eps).largest
    return torch.where(sizes > 0, largest / sizes, torch.zeros_like(sizes))


@dataclass
class Number:
    """A value, and the largest distance of a kernel's number from it (Higham 2002, section 3.3)."""

    value: torch.Tensor
    error: torch.Tensor | float = 0.0

    def rounded(self, roundings=1):
        size = abs(self.value) + self.error
        return Number(self.value, self.error + roundings * EPS * size + TINY)

    def __add__(self, other):
        return Number(self.value + other.value, self.error + other.error).rounded()

    def __sub__(self, other):
        return Number(self.value - other.value, self.error + other.error).rounded()

    def __mul__(self, other):
        size = abs(other.value) + other.error
        return Number(self.value * other.value,
                      self.error * size + abs(self.value) * other.error).rounded()

    def __truediv__(self, other):
        """By an approximate inverse: 5 roundings. An interval that holds 0 has no bound."""
        least = abs(other.value) - other.error
        quotient = self.value / other.value
        moved = (self.error + abs(quotient) * other.error) / least
        known = torch.as_tensor((least > 0) | (torch.as_tensor(other.error) == 0))
        infinite = torch.full_like(torch.as_tensor(quotient, dtype=torch.float64), torch.inf)
        return Number(quotient, torch.where(known, moved, infinite)).rounded(5)

    def sqrt(self):
        value = torch.as_tensor(self.value, dtype=torch.float64)
        root = value.clamp(min=0).sqrt()
        low = root - (value - self.error).clamp(min=0).sqrt()
        high = (value + self.error).clamp(min=0).sqrt() - root
        return Number(root, torch.maximum(low, high)).rounded(2)


def constant(value):
    """A number of the program that float32 may not hold."""
    return Number(torch.as_tensor(value, dtype=torch.float64)).rounded()


def exact(value):
    return Number(torch.as_tensor(value, dtype=torch.float64))
