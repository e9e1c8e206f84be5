"""Names the norm that a program computes, from its numbers."""
from dataclasses import dataclass, field

import torch

from keel_judge.norms import forms
from keel_judge.norms.answer import Answer, named, variant
from keel_judge.norms.gradients import distances, gain_distance, largest
from keel_judge.norms.groupings import expanded, groupings
from keel_judge.norms.states import running
from keel_judge.rounding import EPS, FORMATS

NEAR = 0.05  # of the values: candidates that are farther get no bound
LISTED = 5
LARGEST = 4_000_000  # elements of x


@dataclass
class Problem:
    """The arrays in float64."""

    x: torch.Tensor
    y: torch.Tensor
    own_gain: torch.Tensor | None = None  # as they were given
    own_bias: torch.Tensor | None = None
    dy: torch.Tensor | None = None
    dx: torch.Tensor | None = None
    dgain: torch.Tensor | None = None
    narrow: float = 0.0  # eps of y's type where it has 16 bits
    has_unit_gain: bool = False  # one for each row: of the weights of a unit
    before: dict = field(default_factory=dict)

    @property
    def has_gain(self):
        return self.own_gain is not None

    @property
    def sizes(self):
        """The sizes of the parameters that there are."""
        return [p.numel() for p in (self.own_gain, self.own_bias) if p is not None]

    @property
    def has_parameters(self):
        return bool(self.sizes)

    def gain(self, grouping):
        return expanded(self.own_gain, self.x.shape, 1.0, grouping.by_channel)

    def bias(self, grouping):
        return expanded(self.own_bias, self.x.shape, 0.0, grouping.by_channel)


def wide(array):
    return None if array is None else torch.as_tensor(array).detach().cpu().double()


def problem_of(arrays, before):
    x, y = wide(arrays["x"]), wide(arrays["y"])
    if x.shape != y.shape or x.dim() not in (2, 3, 4):
        raise ValueError(f"x {tuple(x.shape)} and y {tuple(y.shape)}: expected the same shape of "
                         "two, three or four axes")
    if x.numel() > LARGEST:
        raise ValueError(f"x has {x.numel()} elements: give at most {LARGEST}, some rows of a norm "
                         "over rows or some features of one over the batch")
    for name in ("dy", "dx"):
        if arrays.get(name) is not None and arrays[name].shape != x.shape:
            raise ValueError(f"{name} {tuple(arrays[name].shape)}: expected x's shape "
                             f"{tuple(x.shape)}")
    gain, bias, dgain = (wide(arrays.get(name)) for name in ("gain", "bias", "dgain"))
    if gain is None and dgain is not None:  # only a norm with a gain has a gradient of one
        gain = torch.ones_like(dgain)
    eps = FORMATS[torch.as_tensor(arrays["y"]).dtype].eps \
        if torch.as_tensor(arrays["y"]).dtype in FORMATS else EPS
    of_units = gain is not None and gain.dim() == 1 and x.dim() == 2 \
        and gain.shape[0] == x.shape[0] != x.shape[1]
    return Problem(x, y, gain, bias, wide(arrays.get("dy")), wide(arrays.get("dx")),
                   dgain, eps if eps > EPS else 0.0, of_units,
                   {name: wide(value).flatten() for name, value in (before or {}).items()})


def candidates(problem):
    """All forms over all groupings, nearest first, by the root mean square of what is left."""
    size = float(problem.y.square().mean().sqrt()) or 1.0
    found = []
    for grouping in groupings(problem.x.shape, problem.sizes):
        y = grouping.take(problem.y)
        for form in forms.FORMS:
            for candidate in form(problem, grouping):
                left = float((candidate.y - y).square().mean().sqrt()) / size
                found.append((left if left == left else float("inf"), len(found), candidate))
    found.sort()
    return found


def identify(*, x, y, before=None, after=None, **arrays):
    """The norm that made y of x, with its options: an Answer.

    gain, bias: as the program holds them (an offset is found). dy, dx, dgain: gradients. before,
    after: running statistics around a step, by the names running_mean, running_var, running_std,
    psi2. Arrays are tensors or NumPy's."""
    problem = problem_of({"x": x, "y": y, **arrays}, before)
    with torch.no_grad():
        found = candidates(problem)
        chosen = [c for left, _, c in found if left < NEAR] or [found[0][2]]
        for candidate in chosen:
            bound = forms.bound_of(candidate, problem.narrow)
            error = (candidate.grouping.take(problem.y) - candidate.y).abs()
            candidate.distance = largest(error, bound)
        chosen.sort(key=lambda c: c.distance)
        matches = preferred([c for c in chosen if c.distance <= 1])
        for candidate in matches or chosen[:LISTED]:
            add_gradients(candidate, problem)
        if problem.dx is not None:
            matches = by_gradient(matches)
        states = running((matches or chosen)[0], problem.before,
                         {n: wide(v).flatten() for n, v in (after or {}).items()})
        return Answer(matches, chosen[:LISTED], states)


def add_gradients(candidate, problem):
    candidate.gradients = distances(candidate, problem)
    of_gain = gain_distance(candidate, problem)
    if of_gain is not None:
        candidate.gradients["dgain"] = of_gain


def preferred(matches):
    """The candidates that fit, the plainest first: usual eps, inside of the root, biased."""
    def oddness(c):
        return (len(c.options), c.options.get("eps") not in (1e-5, 1e-6), c.distance)
    return sorted(matches, key=oddness)


def by_gradient(matches):
    """Candidates whose gradient fits, too, if there are any."""
    fitting = [c for c in matches if variant(c)]
    return sorted(fitting, key=lambda c: variant(c) != "exact") or matches


__all__ = ["Answer", "identify", "named"]
