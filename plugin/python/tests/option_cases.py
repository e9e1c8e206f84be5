"""Every option of every norm, from the library's own table, set away from its default: for NumPy,
PyTorch and JAX. What an option changes is asked of keel_norms.numpy."""
import re

import numpy as np

from keel_norms import numpy as kn
from keel_norms._library import KeelError, ops
from keel_norms._norms import NORMS

# Options that others need to show.
BASES = {"power_norm": {"groups": 2},
         "mabn": {"m": 2, "warmup": 0, "clip_after": 0, "clip": 1.05},
         "unified_norm": {"m": 2, "warmup": 0, "clip_after": 0, "clip": 1.05},
         "batch_renorm": {"r_start": 0, "r_end": 8, "d_start": 0, "d_end": 8}}
SHAPES = {"group_norm": (5, 6), "instance_norm": (3, 4, 6)}
MASK = np.array([1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0], np.uint8)
STEPS = 4


def values(norm, option, now):
    """Values of an option that are not `now`: words are those that keel says it expects."""
    if isinstance(now, bool):
        return [not now]
    try:
        return [value for value in (2, 0.5, 3, 0, 1.3, 9.0, 6, 4) if value != float(now)]
    except ValueError:
        try:
            run(norm, {option: "?"})
        except KeelError as error:
            words = re.search(r"expected (.*), got", str(error))[1].split(" or ")
            return [word for word in words if word != now]
        raise


def inputs(norm, attributes):
    """Yields for each step x, the gain, the bias and the further parameters that the norm takes,
    and dy."""
    random = np.random.default_rng(4)
    x = random.standard_normal(SHAPES.get(norm, (3, 4, 6)))
    if norm == "weight_norm":
        units = 6 if attributes.get("by_column") else 12
        yield x.reshape(12, 6), [random.standard_normal(units)], random.standard_normal((12, 6))
        return
    sizes = {"scale_norm": (1,)}.get(norm, x.shape[-int(attributes.get("axes", 1)):])
    names = [name for name in ("gain", "bias") if name in ops()[norm].inputs]
    affine = [random.standard_normal(sizes) for _ in names]
    affine += [random.standard_normal(sizes if norm == "seed_norm" else 1)
               for _ in NORMS[norm].more]
    for step in range(STEPS if NORMS[norm].is_column else 1):
        rows = x * (1 + 0.2 * step) + 0.4 * step + 0.1 * random.standard_normal(x.shape)
        rows = rows.reshape(12, 6) if NORMS[norm].is_column else rows
        if norm == "unified_norm" and step == STEPS - 1:
            rows = 9 * rows  # an outlier
        yield rows, affine, random.standard_normal(rows.shape)


def run(norm, attributes):
    """By keel_norms.numpy: y, the gradients and the states of each step."""
    found, state, more = [], None, {}
    if norm in NORMS and NORMS[norm].states:
        state = kn.first_state(norm, 6, attributes.get("m"), np.float64)
    for x, affine, dy in inputs(norm, attributes):
        if state is not None:
            more = {"state": state, "mask": MASK}
        step = getattr(kn, norm)(x, *affine, **attributes, **more)
        back = step.backward(dy)
        if norm == "weight_norm":
            return [step.w, *back]
        state = back.next_state or None
        found += [step.y, *gradients(norm, back), *((state or {}).values())]
    return found


def gradients(norm, back):
    """The gradients of x and of the parameters that were given, by keel_norms.numpy."""
    names = ("dx", "dgain", "dbias", *("d" + name for name in NORMS[norm].more))
    return [value for name in names if (value := getattr(back, name)) is not None]


def differ(one, two):
    return len(one) != len(two) or any(not np.array_equal(a, b) for a, b in zip(one, two))


def cases():
    """(norm, option, attributes, results) for every option, with a value by which the results
    are not those of the default; None where there is none."""
    for norm in (*NORMS, "weight_norm"):
        defaults, base = ops()[norm].defaults, BASES.get(norm, {})
        plain = run(norm, base)
        for option, text in defaults.items():
            now = base.get(option, {"true": True, "false": False}.get(text, text))
            yield norm, option, *changed(norm, option, {**base}, (now, plain))


def changed(norm, option, base, before):
    now, plain = before
    for value in values(norm, option, now):
        attributes = {**base, option: value}
        try:
            results = run(norm, attributes)
        except KeelError:
            continue
        if differ(plain, results):
            return attributes, results
    return None, None
