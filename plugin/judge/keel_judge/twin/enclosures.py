"""Numbers of a whole graph: where exact arithmetic leads from its inputs, and how far from there
any kernels may be. A node's distance is what the rule of its op says, and what the op makes of the
distances of its inputs (carried.py)."""
from dataclasses import dataclass

import torch
from torch.utils import _pytree as pytree

from keel_judge.call import Call, Refused, Result, name_of, named_arguments, tensors_in
from keel_judge.measure import Expected, with_rounding
from keel_judge.rounding import EPS, TINY
from keel_judge.rules import chance, rule_of
from keel_judge.twin.carried import CARRIED, monotone

# A rule's error is at most this share of the sizes of its inputs (of sums up to 2^22 terms), which
# a program has at a distance from the exact ones.
SLACK = 2.0**-10
CHANCE = frozenset(chance.RULES)


@dataclass
class Enclosed:
    """A tensor in float64, how far the program's may be from it, and the program's type. Of a
    truth value `distance` says where it may be the other one; whole numbers are exact."""

    value: torch.Tensor
    distance: torch.Tensor | float
    dtype: torch.dtype

    @staticmethod
    def of(tensor):
        """The program's own numbers, which have no distance."""
        value = tensor.detach().cpu()
        value = value.double() if value.is_floating_point() else value.clone()
        return Enclosed(value, 0.0, tensor.dtype)

    def is_exact(self):
        return not bool(torch.as_tensor(self.distance != 0).any())

    def typed(self):
        return self.value.to(self.dtype)

    def spread(self, like):
        """The distance in the shape of another tensor."""
        return torch.as_tensor(self.distance, dtype=torch.float64).expand_as(like)


@dataclass
class Unknown:
    """A result that has no bound, and why."""

    reason: str


def is_view(func):
    return any(r.alias_info is not None and not r.alias_info.is_write
               for r in func._schema.returns)


def is_move(func):
    return is_view(func) or name_of(func) == "_unsafe_view"


def where(given):
    """A choice: where it may be the other one, the difference counts, too."""
    choice, a, b = (given[n] for n in ("condition", "self", "other"))
    value = torch.where(choice.value, a.value, b.value)
    distance = torch.where(choice.value, a.spread(value), b.spread(value))
    other = (a.value - b.value).abs() + torch.maximum(a.spread(value), b.spread(value))
    return Enclosed(value, torch.where(torch.as_tensor(choice.distance != 0), other, distance),
                    a.dtype)


def converted(given, dtype):
    """Another type: from truth values with their doubts, to 16 bits with its rounding."""
    if dtype == torch.float64:
        raise Refused("float64: the judge has no wider type")
    if not dtype.is_floating_point:
        if given.dtype.is_floating_point and not given.is_exact():
            raise Refused("a whole number of what is rounded")
        return Enclosed(given.value.to(dtype), given.distance, dtype)
    value = given.value.double()
    distance = given.spread(value)
    if not given.dtype.is_floating_point:
        distance = distance + EPS * value.abs()
    if dtype.itemsize < given.dtype.itemsize or not given.dtype.is_floating_point:
        distance = with_rounding(Expected(value), distance, value.to(dtype), given.dtype.itemsize)
    return Enclosed(value, distance, dtype)


CONVERSIONS = ("_to_copy", "convert_element_type")
RESHAPES = ("view", "_unsafe_view")  # strides are not those of the program
LOGIC = ("logical_not", "logical_and", "logical_or", "bitwise_not", "bitwise_and", "bitwise_or")


def fused(call):
    """a b + c, rounded once or twice."""
    value = call.run()[0]
    return [Expected(value, EPS * ((call["a"] * call["b"]).abs() + 2 * value.abs()) + TINY)]


def erf(call):
    """Compiled kernels approximate erf with an absolute error (Abramowitz and Stegun, 7.1.26), as
    those of gelu do: to 12 eps of 1."""
    value = call.run()[0]
    return [Expected(value, 12 * EPS + 0 * value)]


OWN_RULES = {"prims::fma": fused, "aten::erf": erf}


def rule_in(func):
    """The rule of an op as compiled graphs have it."""
    return OWN_RULES.get(func._schema.name) or rule_of(func)


def check_known(func):
    """Refuses, before it runs, an op whose results are not those of its inputs, or unknown."""
    name = name_of(func)
    if name == "as_strided":
        raise Refused("as_strided: the judge has other strides")
    if name in CHANCE or name.startswith(("rand", "inductor_")):
        raise Refused(f"random numbers of {name}")
    if rule_in(func) is None and not is_move(func) and name != "iota" and name not in CONVERSIONS:
        raise Refused(f"no rule for {name}")


def enclose(func, args, kwargs, dtypes, memory=float("inf")):
    """The results of an op in the structure in which it returns them. `dtypes` are those of the
    program's results. Raises Refused where there is no bound."""
    check_known(func)
    if name_of(func) in RESHAPES and "size" in [a.name for a in func._schema.arguments]:
        func = torch.ops.aten.reshape.default
    given = named_arguments(func, args, kwargs)
    leaves = [v for v in pytree.tree_leaves(given) if isinstance(v, Enclosed)]
    if name_of(func) in CONVERSIONS:
        return converted(leaves[0], dtypes[0])
    call = Call(func, pytree.tree_map_only(Enclosed, Enclosed.typed, given), [], memory,
                pytree.tree_map_only(Enclosed, lambda e: e.value, given))
    doubts = [v for v in leaves if v.dtype == torch.bool and not v.is_exact()]
    if doubts:
        return of_doubts(call, given, doubts)
    returned = call.returned(call.wide)
    values = tensors_in(returned)
    call.results = [Result(f"output {n}", v.to(t)) for n, (v, t) in enumerate(zip(values, dtypes))]
    carried = carried_distances(call, given, values)
    found = iter(list(with_own_errors(call, values, carried)))
    return pytree.tree_map_only(torch.Tensor, lambda t: next(found), returned)


def of_doubts(call, given, doubts):
    """An op on truth values that rounding may decide."""
    if call.name == "where" and all(isinstance(given[n], Enclosed)
                                    for n in ("condition", "self", "other")):
        return where(given)
    if call.name in LOGIC or is_move(call.func):
        value = call.run()[0]
        doubt = torch.zeros_like(value)
        for each in doubts:
            moved = call.run_on(call.wide | {"self": each.distance})[0] \
                if is_move(call.func) else each.distance
            doubt = doubt | moved
        return Enclosed(value, doubt, torch.bool)
    raise Refused(f"{call.name} of a comparison that rounding decides")


def carried_distances(call, given, values):
    """What the distances of the inputs make of the results, 0 if there are none."""
    if all(v.is_exact() for v in pytree.tree_leaves(given) if isinstance(v, Enclosed)):
        return [0.0] * len(values)
    function = CARRIED.get(call.name) or (monotone if is_move(call.func) else None)
    if function is None:
        raise Refused(f"no bound is carried through {call.name}")

    def distance(value):
        if isinstance(value, (list, tuple)):
            return [distance(v) for v in value]
        has_one = isinstance(value, Enclosed) and value.dtype.is_floating_point
        return value.spread(value.value) if has_one else None
    return function(call, {name: distance(v) for name, v in given.items()}, values)


def with_own_errors(call, values, carried):
    """Adds what the rule of the op says."""
    rule = rule_in(call.func)
    moves = [Expected(v, is_exact=True) for v in values]
    expected = rule(call) if rule else moves
    widest = max((t.dtype.itemsize for t in call.floats()), default=4)
    for value, wanted, more, result in zip(values, expected, carried, call.results):
        dtype = result.got.dtype
        if wanted is None or more is None:
            yield Unknown(f"a result of {call.name} without a bound")
        elif not dtype.is_floating_point:
            yield whole(call, value, (wanted, more), dtype)
        else:
            distance = torch.as_tensor(more, dtype=torch.float64).expand_as(value)
            if not (wanted.is_exact and dtype.itemsize >= widest):
                distance = torch.as_tensor(wanted.error) + distance * (1 + SLACK)
                distance = with_rounding(wanted, distance, result.got, widest)
            yield Enclosed(value, distance, dtype)


def whole(call, value, judged, dtype):
    """Truth values with what rounding or ties may decide; whole numbers where no float is asked."""
    wanted, more = judged
    if dtype != torch.bool:
        return Unknown(f"whole numbers of {call.name}") if call.floats() else \
            Enclosed(value, 0.0, dtype)
    doubt = torch.as_tensor(more).bool() | torch.zeros_like(value)
    return Enclosed(value, doubt if wanted.right is None else doubt | wanted.right, dtype)
