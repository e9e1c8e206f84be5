"""Names the pattern in which wrong elements lie, which often names the cause."""
import torch


def index_of(place, shape):
    """The index of the element with this number."""
    index = []
    for size in reversed(shape):
        index.append(place % size)
        place //= size
    return tuple(reversed(index))


def pattern_of(wrong):
    """A few words for where the true elements of a mask lie."""
    count, total = int(wrong.sum()), wrong.numel()
    if count == total:
        return "all elements"
    if count == 1:
        return "one element"
    return whole_slice(wrong) or tail(wrong) or stride(wrong) or block(wrong) or "scattered"


def whole_slice(wrong):
    """Whole rows, columns or channels."""
    if wrong.dim() < 2:
        return ""
    for axis in range(wrong.dim()):
        moved = wrong.movedim(axis, 0).flatten(1)
        whole, some = moved.all(1), moved.any(1)
        if bool((whole == some).all()) and bool(some.any()) and not bool(some.all()):
            places = whole.nonzero().flatten().tolist()
            return f"all of index {shown(places)} of axis {axis}"
    return ""


def shown(places):
    if len(places) == 1:
        return str(places[0])
    steps = {b - a for a, b in zip(places, places[1:])}
    if len(steps) == 1 and len(places) > 2:
        step = f" in steps of {steps.pop()}"
        return f"{places[0]} to {places[-1]}" + ("" if step.endswith(" 1") else step)
    listed = ", ".join(map(str, places[:4]))
    return listed + (", ..." if len(places) > 4 else "")


def tail(wrong):
    """The last elements of an axis, and nothing else: what a kernel's remainder loop would do."""
    for axis in range(wrong.dim()):
        some = wrong.movedim(axis, 0).flatten(1).any(1) if wrong.dim() > 1 else wrong
        first = int(some.float().argmax())
        if bool(some[first:].all()) and 0 < first and len(some) - first < len(some) / 2:
            return f"a tail: the last {len(some) - first} of {len(some)} along axis {axis}"
    return ""


def stride(wrong):
    places = wrong.flatten().nonzero().flatten()
    steps = torch.unique(places[1:] - places[:-1])
    if len(steps) == 1 and int(steps[0]) > 1 and len(places) > 2:
        return f"every {int(steps[0])}th element from {int(places[0])}"
    return ""


def block(wrong):
    places = wrong.nonzero()
    low, high = places.min(0).values, places.max(0).values
    inside = int((high - low + 1).prod())
    if inside == len(places) and inside < wrong.numel():
        return "a block: " + " × ".join(f"{a}..{b}" for a, b in zip(low.tolist(), high.tolist()))
    return ""
