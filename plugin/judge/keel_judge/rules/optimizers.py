"""Fused optimizers, evaluated on numbers with errors (docs/numerics.md, Optimizers)."""
import torch

from keel_judge.call import Refused
from keel_judge.measure import Expected
from keel_judge.rounding import EPS, TINY, Number, constant, exact


def gradient(call, number, decay, parameter):
    """g, of the sign and scale of the step, with weight decay that is not decoupled."""
    g = exact(call["grads"][number] * (-1 if call["maximize"] else 1))
    if call.has("grad_scale"):
        g = g / exact(call["grad_scale"])
    return g + constant(decay) * exact(parameter) if decay else g


def blend(share, former, new):
    """former + (1 - share) (new - former), with 1 - share from a float."""
    weight = Number(torch.tensor(1 - share), EPS)
    result = constant(share) * former + weight * new
    size = abs(new.value) + new.error + abs(former.value)
    result.error = result.error + (1 - share) * EPS * 3 * size
    return result


def unbias(beta, step):
    """1 - beta^t, with the power in float32."""
    c = 1 - beta**step
    return Number(torch.tensor(c), EPS * (c + (step + 2) * abs(1 - c)))


def adam_step(call, number, decoupled):
    rate, decay = float(call["lr"]), call["weight_decay"]
    p = call["self"][number]
    g = gradient(call, number, 0 if decoupled else decay, p)
    step = float(call["state_steps"][number])
    m = blend(call["beta1"], exact(call["exp_avgs"][number]), g)
    v = blend(call["beta2"], exact(call["exp_avg_sqs"][number]), g * g)
    c1, c2 = unbias(call["beta1"], step), unbias(call["beta2"], step)
    kept = exact(p)
    if decoupled:
        kept = kept * (exact(1.0) - constant(rate) * constant(decay))
    change = constant(rate) / c1 * m / (v.sqrt() / c2.sqrt() + constant(call["eps"]))
    return {"self": kept - change, "exp_avgs": m, "exp_avg_sqs": v}


def adam(decoupled):
    def rule(call):
        if call["amsgrad"]:
            raise Refused("amsgrad in a fused optimizer")
        if call.has("found_inf") and float(call["found_inf"]):
            return [exactly(call, r) for r in call.results]
        steps = [adam_step(call, n, decoupled) for n in range(len(call["self"]))]
        return [part(call, r, steps) for r in call.results]
    return rule


def part(call, result, steps):
    """The Expected for one written tensor, "exp_avgs[3]" for example."""
    name, _, number = result.name.rstrip("]").partition("[")
    number = int(number or 0)
    if name in steps[number]:
        return Expected(steps[number][name].value, steps[number][name].error)
    return scaled_gradient(call, number) if name == "grads" else None


def scaled_gradient(call, number):
    """Gradients are written where a scale is taken out of them."""
    g = call["grads"][number]
    if call.has("grad_scale"):
        g = g / call["grad_scale"]
    return Expected(g, 3 * EPS * g.abs())


def exactly(call, result):
    name, _, number = result.name.rstrip("]").partition("[")
    value = call[name][int(number)] if number else call[name]
    return Expected(value, 0.0, is_exact=True)


def sgd_step(call, number):
    p = call["self"][number]
    g = gradient(call, number, call["weight_decay"], p)
    result = {}
    if call["momentum"]:
        former = call["momentum_buffer_list"][number]
        u = g if call["is_first_step"] else constant(call["momentum"]) * exact(former) \
            + constant(1 - call["dampening"]) * g
        result["momentum_buffer_list"] = u
        g = g + constant(call["momentum"]) * u if call["nesterov"] else u
    result["self"] = exact(p) - constant(float(call["lr"])) * g
    return result


def sgd(call):
    steps = [sgd_step(call, n) for n in range(len(call["self"]))]
    return [part(call, r, steps) for r in call.results]


def adagrad_step(call, number):
    p, step = call["self"][number], float(call["state_steps"][number])
    g = gradient(call, number, call["weight_decay"], p)
    total = exact(call["state_sums"][number]) + g * g
    rate = constant(float(call["lr"])) / (exact(1.0) + constant((step - 1) * call["lr_decay"]))
    return {"self": exact(p) - rate * g / (total.sqrt() + constant(call["eps"])),
            "state_sums": total}


def adagrad(call):
    steps = [adagrad_step(call, n) for n in range(len(call["self"]))]
    return [part(call, r, steps) for r in call.results]


def unscale(call):
    """Gradients times the inverse of the loss's scale, and whether one is not finite."""
    results = []
    for result in call.results:
        name, _, number = result.name.rstrip("]").partition("[")
        if name == "found_inf":
            bad = any(not bool(g.isfinite().all()) for g in call["self"])
            value = torch.maximum(call["found_inf"], torch.tensor(float(bad)))
            results.append(Expected(value, is_exact=True))
        else:
            y = call["self"][int(number)] * call["inv_scale"]
            results.append(Expected(y, EPS * y.abs() + TINY))
    return results


RULES = {"_amp_foreach_non_finite_check_and_unscale": unscale, "_fused_adam": adam(False),
         "_fused_adamw": adam(True), "_fused_sgd": sgd, "_fused_adagrad": adagrad}
