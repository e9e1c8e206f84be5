"""Backwards of norms: dx = rstd (g - mean(g) - xhat mean(g xhat)) element by element, with mean and
rstd as they were saved (docs/numerics.md, Results of any program)."""
import torch

from keel_judge.measure import Expected
from keel_judge.rounding import EPS, TINY, relative_sum_error, sum_error
from keel_judge.rules.norms import Channels, Rows


class Backward:
    """One norm's backward: x, dy and gain as (groups, elements), mean and rstd of groups."""

    def __init__(self, tensors, mean, rstd):
        self.x, self.dy, self.gain = tensors
        self.mean, self.rstd = mean.reshape(-1, 1), rstd.reshape(-1, 1)
        self.is_centred = True
        self.xhat = (self.x - self.mean) * self.rstd
        self.unit = (self.x.abs() + self.mean.abs()) * self.rstd.abs()

    def dx(self, eps=EPS):
        """The value and its bound; `eps` is that of the type of the kernel's sums and numbers."""
        g, n = self.dy * self.gain, self.x.shape[1]
        products = g * self.xhat
        mean_g = g.mean(1, keepdim=True) if self.is_centred else torch.zeros_like(g[:, :1])
        value = self.rstd * (g - mean_g - self.xhat * products.mean(1, keepdim=True))
        p, of_g = (relative_sum_error(t, 1, True, eps) for t in (products, g))
        h = torch.maximum(of_g, relative_sum_error(g * self.x, 1, True, eps)) \
            if self.is_centred else 0
        sizes = g.abs().mean(1, keepdim=True) if self.is_centred else 0
        product = products.abs().mean(1, keepdim=True)
        spread = (h + 4 * eps) * (g.abs() * self.unit).sum(1, keepdim=True) / n
        error = 6 * eps * g.abs() + (of_g + 6 * eps) * sizes \
            + self.xhat.abs() * ((p + 6 * eps) * product + spread) \
            + 6 * eps * self.unit * (product + spread)
        return value, self.rstd.abs() * error + TINY

    def of_gain(self, collect, eps=EPS):
        """dgain and dbias; `collect` sums over everything that shares a parameter."""
        terms, count = self.dy * self.xhat, collect(torch.ones_like(self.dy))
        e = sum_error(count, collect(terms.abs()), collect(terms.square()), collect(terms), eps)
        more = 4 * eps * collect(self.dy.abs() * self.unit) + TINY
        b = sum_error(count, collect(self.dy.abs()), collect(self.dy.square()), collect(self.dy),
                      eps)
        return [Expected(collect(terms), e.largest + more, e.usual + more),
                Expected(collect(self.dy), b.largest + TINY, b.usual + TINY)]

    def all_three(self, back, collect, narrow):
        value, error = self.dx()
        results = [Expected(back(value), back(error)), *self.of_gain(collect)]
        if narrow:
            loose = [Expected(value, back(self.dx(narrow)[1])), *self.of_gain(collect, narrow)]
            for result, wide in zip(results, loose):
                result.wider["sums in 16 bits"] = wide.error
        return results


def results_of(call, view, backward, collect):
    all_three = backward.all_three(view.back, collect, call.narrow_eps())
    wanted = call["output_mask"]
    return [e for e, w in zip(all_three, wanted) if w][:len(call.results)]


def gain_of(call, name, like, view):
    return view.expand(call[name]) if call.has(name) else torch.ones_like(like)


def layer_norm(call):
    rows = Rows(call)
    x, dy = rows.take(call["input"]), rows.take(call["grad_out"])
    backward = Backward((x, dy, gain_of(call, "weight", x, rows)), call["mean"], call["rstd"])
    shape = call["normalized_shape"]
    return results_of(call, rows, backward, lambda t: t.sum(0).reshape(shape))


def rms_norm(call):
    rows = Rows(call)
    x, dy = rows.take(call["input"]), rows.take(call["grad_out"])
    rstd = call["rstd"]
    backward = Backward((x, dy, gain_of(call, "weight", x, rows)), torch.zeros_like(rstd), rstd)
    backward.is_centred = False
    shape = call["normalized_shape"]
    return results_of(call, rows, backward, lambda t: t.sum(0).reshape(shape))


def group_norm(call):
    x = call["input"]
    if x.numel() == 0:  # no sample: the gradients of parameters are 0
        return [Expected(torch.zeros(r.got.shape), is_exact=True) for r in call.results]
    view = Channels(x.shape, call["group"])
    tensors = view.take(x), view.take(call["grad_out"])
    backward = Backward((*tensors, gain_of(call, "weight", tensors[0], view)), call["mean"],
                        call["rstd"])

    def collect(t):
        return t.reshape(x.shape[0], x.shape[1], -1).sum((0, 2))
    return results_of(call, view, backward, collect)


def batch_norm(call):
    """Training uses the saved statistics; otherwise the state is a constant."""
    x = call["input"]
    view = Channels(x.shape)
    dy = call["grad_out"] if call.has("grad_out") else call["grad_output"]
    tensors = view.take(x), view.take(dy)
    gain = gain_of(call, "weight", tensors[0], view)
    trains = call["train"] if call.has("train") else True
    mean = call["save_mean"] if trains else call["running_mean"]
    rstd = call_rstd(call, trains)
    backward = Backward((*tensors, gain), mean, rstd)
    if trains:
        return results_of(call, view, backward, lambda t: t.sum(1))
    value = backward.dy * backward.gain * backward.rstd
    all_three = [Expected(view.back(value), view.back(8 * EPS * value.abs() + TINY)),
                 *backward.of_gain(lambda t: t.sum(1))]
    return [e for e, w in zip(all_three, call["output_mask"]) if w]


def call_rstd(call, trains):
    if trains:
        return call["save_invstd"] if call.has("save_invstd") else call["save_var"]
    return (call["running_var"] + call["eps"]).rsqrt()


RULES = {"native_layer_norm_backward": layer_norm, "_fused_rms_norm_backward": rms_norm,
         "native_group_norm_backward": group_norm, "native_batch_norm_backward": batch_norm,
         "batch_norm_backward": batch_norm}
