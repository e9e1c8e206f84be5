"""Weight normalization: w = g v / |v|, with the length of v over all axes but one."""
from keel_judge.measure import Expected, allow_narrow_steps
from keel_judge.rounding import EPS, TINY, relative_sum_error, sum_error_of


def axes_of(v, dim):
    return [a for a in range(v.dim()) if a != dim % v.dim()]


def forward(call):
    """w and the lengths. A length has half the relative error of its sum of squares, and the
    rounding of the root; squares below the floats vanish."""
    v, g = call["v"], call["g"]
    axes = axes_of(v, call["dim"])
    squares = v.square()
    length = squares.sum(axes, keepdim=True).sqrt()
    lost = v.numel() / max(1, length.numel()) * TINY
    share = relative_sum_error(squares, axes, True) / 2 + 2 * EPS \
        + lost / (2 * length.square()).clamp(min=lost)
    w = v * (g / length)
    results = [Expected(w, w.abs() * (share + 7 * EPS) + TINY),
               Expected(length, length * share + TINY)]
    return allow_narrow_steps(call, [shaped(e, r) for e, r in zip(results, call.results)])


def backward(call):
    """dv = g / |v| (dw - v sum(dw v) / |v|²) and dg = sum(dw v) / |v|, with the saved lengths."""
    dw, v, g = call["grad_w"], call["saved_v"], call["saved_g"]
    length = call["saved_norms"].reshape(g.shape)
    terms = dw * v
    axes = axes_of(v, call["dim"])
    total, off = terms.sum(axes, keepdim=True), sum_error_of(terms, axes, True).largest
    sizes = terms.abs().sum(axes, keepdim=True)
    dg = total / length
    dv = g / length * (dw - v * total / length.square())
    of_dv = (g / length).abs() * (8 * EPS * dw.abs() + v.abs() / length.square()
                                  * (off + 12 * EPS * sizes))
    results = [Expected(dv, of_dv + TINY), Expected(dg, off / length + 6 * EPS * dg.abs() + TINY)]
    return allow_narrow_steps(call, [shaped(e, r) for e, r in zip(results, call.results)])


def shaped(expected, result):
    expected.value = expected.value.reshape(result.got.shape)
    expected.error = expected.error.reshape(result.got.shape)
    return expected


RULES = {"_weight_norm_interface": forward, "_weight_norm_interface_backward": backward}
