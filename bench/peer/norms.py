"""Each norm as a careful user of PyTorch writes it: by its fused function where there is one and it
is wanted, else as few plain operations as autograd allows."""
import torch
from torch.nn import functional as F


class Norm:
    """What the expressions below share: sizes, options, parameters, running statistics."""

    def __init__(self, facts, scope, parameters, shape, fused=True):
        self.fused = fused
        self.options = dict(option.split("=", 1) for option in facts["options"].split())
        self.gain, self.bias = parameters.get(scope + "gain"), parameters.get(scope + "bias")
        self.eps = float(self.options.get("eps", 0))
        self.step = 0
        # Rows: all but the first axis of images, else the last.
        axes = self.options.get("axes", "0")
        self.axes = int(axes) or (3 if len(shape) == 4 else 1)
        self.row = tuple(shape[-self.axes:])
        self.row_axes = tuple(range(-self.axes, 0))
        # Features, and how a tensor with one element for each lies beside x.
        self.features = shape[1]
        self.batch_axes = (0, 2, 3) if len(shape) == 4 else (0,)
        self.columns = (1, shape[1], 1, 1) if len(shape) == 4 else (1, shape[1])

    def number(self, name):
        return float(self.options[name])

    def state(self, value, shape=None):
        return torch.full(shape or self.columns, value, device=DEVICE)

    def affine(self):
        """gain and bias beside x, ones and zeros where there is none."""
        gain = self.state(1.0) if self.gain is None else self.gain.view(self.columns)
        bias = self.state(0.0) if self.bias is None else self.bias.view(self.columns)
        return gain, bias

    def mean_square(self, x):
        return x.pow(2).mean(self.batch_axes, keepdim=True)


def standardize(x, axes, eps):
    var, mean = torch.var_mean(x, axes, unbiased=False, keepdim=True)
    return (x - mean) * torch.rsqrt(var + eps)


def scale_and_shift(xhat, gain, bias):
    if gain is None:
        return xhat if bias is None else xhat + bias
    return xhat * gain if bias is None else torch.addcmul(bias, xhat, gain)


def layer_norm(n):
    if n.fused:
        return lambda x: F.layer_norm(x, n.row, n.gain, n.bias, n.eps)
    return lambda x: scale_and_shift(standardize(x, n.row_axes, n.eps), n.gain, n.bias)


def rms(x, row_axes, gain, eps, fused=True):
    """x over the root of the mean square of its last axes, by the fused function where there is
    one (from PyTorch 2.4)."""
    if fused and hasattr(F, "rms_norm"):
        return F.rms_norm(x, x.shape[row_axes[0]:], gain, eps)
    xhat = x * torch.rsqrt(x.pow(2).mean(row_axes, keepdim=True) + eps)
    return xhat if gain is None else xhat * gain


def rms_norm(n):
    def forward(x):
        y = rms(x, n.row_axes, n.gain, n.eps, n.fused)
        return y if n.bias is None else y + n.bias
    return forward


def scale_norm(n):
    return lambda x: (F.normalize(x.flatten(-n.axes), dim=-1, eps=n.eps) * n.gain).view_as(x)


def group_scaling(n):
    groups = int(n.options["groups"])
    return lambda x: rms(x.reshape(len(x), groups, -1), (-1,), None, n.eps).view_as(x)


def detach_norm(n):
    mean_is_constant = n.options["detach_mean"] == "true"
    scale_is_constant = n.options["detach_variance"] == "true"

    def forward(x):
        if not scale_is_constant:
            centred = x - x.detach().mean(n.row_axes, keepdim=True)
            return centred * torch.rsqrt(centred.pow(2).mean(n.row_axes, keepdim=True) + n.eps)
        with torch.no_grad():
            var, mean = torch.var_mean(x, n.row_axes, unbiased=False, keepdim=True)
            rstd = torch.rsqrt(var + n.eps)
        if mean_is_constant:
            return torch.addcmul(-mean * rstd, x, rstd)
        return (x - x.mean(n.row_axes, keepdim=True)) * rstd
    return forward


def ada_norm(n):
    c, k = n.number("C"), n.number("k")
    detach = n.options["detach"] == "true"

    def forward(x):
        xhat = (F.layer_norm(x, n.row, None, None, n.eps) if n.fused
                else standardize(x, n.row_axes, n.eps))
        return torch.rsub(xhat.detach() if detach else xhat, c, alpha=c * k) * xhat
    return forward


def batch_norm(n):
    # The running variance is PyTorch's own, unbiased: as much work.
    mean, var = n.state(0.0, (n.features,)), n.state(1.0, (n.features,))
    rate = 1 - n.number("keep")
    if n.fused:
        return lambda x: F.batch_norm(x, mean, var, n.gain, n.bias, True, rate, n.eps)
    gain, bias = n.affine()

    def forward(x):
        batch_var, batch_mean = torch.var_mean(x, n.batch_axes, unbiased=False, keepdim=True)
        with torch.no_grad():
            mean.lerp_(batch_mean.flatten(), rate)
            var.lerp_(batch_var.flatten(), rate)
        return torch.addcmul(bias, (x - batch_mean) * torch.rsqrt(batch_var + n.eps), gain)
    return forward


def batch_renorm(n):
    mean, std = n.state(0.0, (n.features,)), n.state(1.0, (n.features,))
    gain, bias = (v.view(-1) for v in n.affine())
    rate = n.number("rate")

    def limit(name, start):
        if n.number(name + "_max") >= 0:
            return n.number(name + "_max")
        begin, end = n.number(name + "_start"), n.number(name + "_end")
        part = min(max((n.step - begin) / max(end - begin, 1), 0), 1)
        return start + (n.number(name + "_max_limit") - start) * part

    def forward(x):
        with torch.no_grad():
            batch_var, batch_mean = torch.var_mean(x, n.batch_axes, unbiased=False)
            batch_std = torch.sqrt(batch_var + n.eps)
            r_max, d_max = limit("r", 1), limit("d", 0)
            r = (batch_std / std).clamp(1 / r_max, r_max)
            d = ((batch_mean - mean) / std).clamp(-d_max, d_max)
            mean.lerp_(batch_mean, rate)
            std.lerp_(batch_std, rate)
            n.step += 1
        # With r and d constant, gain (r xhat + d) + bias is a batch norm with another affine part.
        scale, shift = gain * r, torch.addcmul(bias, gain, d)
        return F.batch_norm(x, None, None, scale, shift, True, 0.0, n.eps)
    return forward


def group_norm(n):
    groups = int(n.options["groups"])
    if n.fused:
        return lambda x: F.group_norm(x, groups, n.gain, n.bias, n.eps)
    gain, bias = n.affine()

    def forward(x):
        xhat = standardize(x.reshape(len(x), groups, -1), (-1,), n.eps)
        return torch.addcmul(bias, xhat.view_as(x), gain)
    return forward


def instance_norm(n):
    if n.fused:
        return lambda x: F.instance_norm(x, None, None, n.gain, n.bias, True, 0.0, n.eps)
    gain, bias = n.affine()
    places = tuple(range(2, len(n.columns)))
    return lambda x: torch.addcmul(bias, standardize(x, places, n.eps), gain)


def pn_v(n):
    psi2 = n.state(1.0)
    gain, bias = n.affine()

    def forward(x):
        batch = n.mean_square(x)
        with torch.no_grad():
            psi2.lerp_(batch, 1 - n.number("keep"))
        return torch.addcmul(bias, x, gain * torch.rsqrt(batch + n.eps))
    return forward


class Surrogate(torch.autograd.Function):
    """y = gain * (x * scale) + bias with dx = dy * a + x * b, for a scale of each feature and
    factors a, b that `rule` gives: rule.scale(x) forward, rule.factors(gain, dgain) backward."""

    @staticmethod
    def forward(ctx, x, gain, bias, rule):
        ctx.scale, ctx.rule = rule.scale(x), rule
        ctx.save_for_backward(x, gain)
        return torch.addcmul(bias, x, gain * ctx.scale)

    @staticmethod
    def backward(ctx, dy):
        x, gain = ctx.saved_tensors
        axes = ctx.rule.n.batch_axes
        dgain = (dy * x).sum(axes, keepdim=True) * ctx.scale
        a, b = ctx.rule.factors(gain, dgain)
        return torch.addcmul(dy * a, x, b), dgain, dy.sum(axes, keepdim=True), None


class PowerNorm:
    """Without a warm-up."""

    def __init__(self, n):
        self.n = n
        self.psi2, self.nu = n.state(1.0), n.state(0.0)
        self.forward_rate = 1 - n.number("alpha_f")
        self.backward_rate = 1 - n.number("alpha_b")

    def scale(self, x):
        batch = self.n.mean_square(x)
        self.rpsi = torch.rsqrt(self.psi2 + self.n.eps)
        paper = self.n.options["mode"] == "paper"
        self.rdx = self.rpsi if paper else torch.rsqrt(batch + self.n.eps)
        self.gamma = batch * self.rpsi.square()
        self.psi2 = torch.lerp(self.psi2, batch, self.forward_rate)
        self.count = x.numel() // self.n.features
        return self.rpsi

    def factors(self, gain, dgain):
        change = gain * dgain / self.count - self.nu * self.gamma
        factors = self.rdx * gain, -self.rdx * self.nu * self.rpsi
        self.nu = self.nu + self.backward_rate * change
        return factors


def power_norm(n):
    rule, (gain, bias) = PowerNorm(n), n.affine()
    heads = int(n.options["heads"])

    def forward(x):
        if heads and x.dim() == 2:
            x = rms(x.view(len(x), heads, -1), (-1,), None, n.eps).view_as(x)
        return Surrogate.apply(x, gain, bias, rule)
    return forward


class Mabn:
    def __init__(self, n):
        self.n = n
        ring = (int(n.options["m"]),) + n.columns
        self.x2, self.gz = n.state(0.0, ring), n.state(0.0, ring)
        self.v = n.state(1.0)

    def scale(self, x):
        n, m = self.n, len(self.x2)
        n.step += 1
        self.place = n.step % m
        self.averages = n.step > m and n.step >= n.number("warmup")
        self.x2[self.place] = n.mean_square(x)
        v = self.x2.mean(0) if self.averages else self.x2[self.place]
        self.rstd, self.r = torch.rsqrt(v + n.eps), self.n.state(1.0)
        if n.step > max(n.number("clip_after"), n.number("warmup")):
            clip = n.number("clip")
            self.r = torch.sqrt((v + n.eps) / (self.v + n.eps)).clamp(1 / clip, clip)
        self.v = torch.lerp(self.v, v, 1 - n.number("keep"))
        self.count = x.numel() // n.features
        return self.rstd * self.r

    def factors(self, gain, dgain):
        self.gz[self.place] = gain * dgain / self.count
        g = self.gz.mean(0) if self.averages else self.gz[self.place]
        return self.rstd * gain * self.r, -self.rstd.square() * g


def mabn(n):
    rule, (gain, bias) = Mabn(n), n.affine()
    return lambda x: Surrogate.apply(x, gain, bias, rule)


def weight_norm(n):
    # x is the direction of a weight, its first axis the units.
    def forward(v):
        length = n.gain.view(-1, *(1 for _ in v.shape[1:]))
        if n.fused and n.eps == 0:
            return torch._weight_norm(v, length, 0)  # what nn.utils.weight_norm calls
        squares = v.pow(2).sum(tuple(range(1, v.dim())), keepdim=True)
        return v * (length * torch.rsqrt(squares + n.eps))
    return forward


NORMS = {
    "none": lambda n: lambda x: x,
    "layernorm": layer_norm, "layernorm_simple": layer_norm,
    "detachnorm": detach_norm, "detachmean": detach_norm, "detachvariance": detach_norm,
    "adanorm": ada_norm, "rmsnorm": rms_norm, "scalenorm": scale_norm,
    "groupnorm": group_norm, "instancenorm": instance_norm,
    "groupscaling": group_scaling, "layerscaling": group_scaling,
    "batchnorm": batch_norm, "recurrentbatchnorm": batch_norm, "sequencebatchnorm": batch_norm,
    "batchrenorm": batch_renorm,
    "pn_v": pn_v, "powernorm": power_norm, "mabn": mabn,
    "weightnorm": weight_norm,
}

# Those whose function leaves something to a fused one of PyTorch, which is not the only way.
FUSED = {"layernorm", "layernorm_simple", "adanorm", "groupnorm", "instancenorm", "batchnorm",
         "recurrentbatchnorm", "sequencebatchnorm", "weightnorm"} | (
             {"rmsnorm"} if hasattr(F, "rms_norm") else set())
# Those with numbers that change from step to step and that only Python knows.
KEPT_BY_PYTHON = {"batchrenorm", "powernorm", "mabn"}
