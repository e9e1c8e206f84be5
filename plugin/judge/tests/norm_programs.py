"""The norms as a program of float32 would have them, with gradients by autograd: what `identify`
is tried on. `detach` marks what a norm holds constant."""
import torch
import torch.nn.functional as F

WIDTH, ROWS = 24, 40


def detached(mean, scale):
    def norm(x, p):
        mu = x.mean(1, keepdim=True)
        s = (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        return (x - (mu.detach() if mean else mu)) / (s.detach() if scale else s)
    return norm


def adanorm(x, p):
    xhat = F.layer_norm(x, (WIDTH,))
    return (2 * (1 - 0.1 * xhat)).detach() * xhat


def uncentred(x, axes, eps):
    return x * (x.square().mean(axes, keepdim=True) + eps).rsqrt()


def group_scaling(x, p):
    return uncentred(x.reshape(len(x), 4, -1), 2, 1e-5).reshape(x.shape)


def batch_renorm(x, p):
    sd = (x.var(0, unbiased=False) + 1e-5).sqrt()
    r = (sd / p["running_std"]).clamp(1 / 3, 3).detach()
    d = ((x.mean(0) - p["running_mean"]) / p["running_std"]).clamp(-5, 5).detach()
    return p["gain"] * ((x - x.mean(0)) / sd * r + d) + p["bias"]


class PowerNorm(torch.autograd.Function):
    """The paper's algorithm 2: dx from nu, a state of the backward."""

    @staticmethod
    def forward(x, gain, bias, psi2, nu):
        return gain * x * (psi2 + 1e-5).rsqrt() + bias

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        x, gain, bias, psi2, nu = ctx.saved_tensors
        r = (psi2 + 1e-5).rsqrt()
        return r * (gain * dy - nu * x * r), (dy * x * r).sum(0), dy.sum(0), None, None


def evaluated(x, p):
    return F.batch_norm(x, p["running_mean"], p["running_var"], p["gain"], p["bias"])


# name: (function of x and p, shape, which parameters, names that are the same function).
TWO, THREE, FOUR, CHANNELS = (ROWS, WIDTH), (8, 5, WIDTH), (4, WIDTH, 3, 5), (5, WIDTH, 9)
BOTH = ("gain", "bias")
PROGRAMS = {
    "layernorm": (lambda x, p: F.layer_norm(x, (WIDTH,), p["gain"], p["bias"]), TWO, BOTH, ()),
    "layernorm_simple": (lambda x, p: F.layer_norm(x, (WIDTH,)), TWO, (), ()),
    "detachnorm": (detached(True, True), TWO, (), ()),
    "detachmean": (detached(True, False), TWO, (), ()),
    "detachvariance": (detached(False, True), TWO, (), ()),
    "adanorm": (adanorm, TWO, (), ()),
    "rmsnorm": (lambda x, p: F.rms_norm(x, (WIDTH,), p["gain"], 1e-6), TWO, ("gain",), ()),
    "rmsnorm with bias": (lambda x, p: uncentred(x, 1, 1e-5) * p["gain"] + p["bias"], TWO, BOTH,
                          ()),
    "layerscaling": (lambda x, p: uncentred(x, 1, 1e-5), TWO, (), ("rmsnorm",)),
    "scalenorm": (lambda x, p: p["one"] * x / x.norm(dim=1, keepdim=True).clamp(min=1e-5), TWO,
                  ("one",), ()),
    "groupscaling": (group_scaling, TWO, (), ()),
    "groupnorm": (lambda x, p: F.group_norm(x, 4, p["gain"], p["bias"]), TWO, BOTH, ()),
    "groupnorm of images": (lambda x, p: F.group_norm(x, 4, p["gain"], p["bias"]), FOUR, BOTH, ()),
    "groupnorm of one group": (lambda x, p: F.group_norm(x, 1, p["gain"], p["bias"]), FOUR, BOTH,
                               ()),
    "groupnorm of all channels but two": (lambda x, p: F.group_norm(x, 12, p["gain"]), FOUR,
                                          ("gain",), ()),
    "groupnorm with channels on axis 1": (lambda x, p: F.group_norm(x, 8, p["gain"], p["bias"]),
                                          CHANNELS, BOTH, ()),
    "groupnorm of one group with channels on axis 1": (
        lambda x, p: F.group_norm(x, 1, p["gain"], p["bias"]), CHANNELS, BOTH, ()),
    "layernorm in a pixel": (lambda x, p: F.layer_norm(
        x.permute(0, 2, 3, 1), (WIDTH,), p["gain"], p["bias"]).permute(0, 3, 1, 2), FOUR, BOTH, ()),
    "instancenorm with channels on axis 1": (
        lambda x, p: F.instance_norm(x, weight=p["gain"], bias=p["bias"]), CHANNELS, BOTH, ()),
    "batchnorm with channels on axis 1": (
        lambda x, p: F.batch_norm(x, None, None, p["gain"], p["bias"], True), CHANNELS, BOTH, ()),
    "instancenorm": (lambda x, p: F.instance_norm(x, weight=p["gain"], bias=p["bias"]), FOUR, BOTH,
                     ()),
    "instancenorm of tokens": (lambda x, p: F.instance_norm(x.transpose(1, 2)).transpose(1, 2),
                               THREE, (), ()),
    "batchnorm": (lambda x, p: F.batch_norm(x, None, None, p["gain"], p["bias"], True), TWO, BOTH,
                  ()),
    "batchnorm of images": (lambda x, p: F.batch_norm(x, None, None, p["gain"], p["bias"], True),
                            FOUR, BOTH, ()),
    "batchnorm in evaluation": (evaluated, TWO, BOTH, ()),
    "recurrentbatchnorm": (lambda x, p: F.batch_norm(x.reshape(8, -1), None, None, None, None,
                                                     True).reshape(x.shape), THREE, (), ()),
    "sequencebatchnorm": (lambda x, p: F.batch_norm(x.reshape(40, -1), None, None, p["gain"],
                                                    p["bias"], True).reshape(x.shape), THREE, BOTH,
                          ("batchnorm",)),
    "batchrenorm": (batch_renorm, TWO, BOTH, ()),
    "pn_v": (lambda x, p: uncentred(x, 0, 1e-5) * p["gain"] + p["bias"], TWO, BOTH, ()),
    "mabn": (lambda x, p: uncentred(x, 0, 1e-5) * p["gain"] + p["bias"], TWO, BOTH, ("pn_v",)),
    "powernorm": (lambda x, p: PowerNorm.apply(x, p["gain"], p["bias"], p["psi2"], p["nu"]), TWO,
                  BOTH, ()),
    "weightnorm": (lambda x, p: p["units"].unsqueeze(1) * x / x.norm(dim=1, keepdim=True), TWO,
                   ("units",), ()),
    "none": (lambda x, p: x * 1, TWO, (), ()),
    "dynamic tanh": (lambda x, p: p["gain"] * torch.tanh(0.5 * x) + p["bias"], TWO, BOTH, ()),
}
STATES = {"batchnorm in evaluation": ("running_mean", "running_var"),
          "batchrenorm": ("running_mean", "running_std"), "powernorm": ("psi2", "nu")}


def parameters(seed):
    draw = torch.Generator().manual_seed(seed)
    p = {"gain": torch.rand(WIDTH, generator=draw) + 0.5,
         "bias": torch.randn(WIDTH, generator=draw), "one": torch.tensor([2.0]),
         "units": torch.rand(ROWS, generator=draw) + 0.5,
         "running_mean": torch.randn(WIDTH, generator=draw) * 0.1,
         "running_var": torch.rand(WIDTH, generator=draw) + 0.5,
         "running_std": torch.rand(WIDTH, generator=draw) + 0.5,
         "psi2": torch.rand(WIDTH, generator=draw) + 0.5,
         "nu": torch.randn(WIDTH, generator=draw) * 0.3}
    return p, draw


def numbers(name, seed=0, dtype=torch.float32):
    """The arrays that a program with this norm would give to `identify`."""
    function, shape, used, _ = PROGRAMS[name]
    p, draw = parameters(seed)
    x = (torch.randn(shape, generator=draw) * 1.5 + 0.3).to(dtype).requires_grad_()
    for key in used:
        p[key].requires_grad_()
    y = function(x, p)
    dy = torch.randn(shape, generator=draw)
    y.backward(dy.to(y.dtype))
    arrays = {"x": x.detach(), "y": y.detach(), "dy": dy, "dx": x.grad}
    gain = next((key for key in used if key != "bias"), None)
    if gain:
        arrays |= {"gain": p[gain].detach(), "dgain": p[gain].grad}
    if "bias" in used:
        arrays["bias"] = p["bias"].detach()
    if name in STATES:
        arrays["before"] = {key: p[key] for key in STATES[name]}
    return arrays
