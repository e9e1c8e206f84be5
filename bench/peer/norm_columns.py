"""Norms of a feature by its statistics over the batch."""


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

    def constants(batch_mean, batch_std):
        r_max, d_max = limit("r", 1), limit("d", 0)
        r = (batch_std / std).clamp(1 / r_max, r_max)
        d = ((batch_mean - mean) / std).clamp(-d_max, d_max)
        mean.lerp_(batch_mean, rate)
        std.lerp_(batch_std, rate)
        n.step += 1
        return r, d

    def plain(x):
        batch_var, batch_mean = torch.var_mean(x, n.batch_axes, unbiased=False, keepdim=True)
        batch_std = torch.sqrt(batch_var + n.eps)
        with torch.no_grad():
            r, d = constants(batch_mean.flatten(), batch_std.flatten())
        xhat = (x - batch_mean) / batch_std * r.view(n.columns) + d.view(n.columns)
        return torch.addcmul(bias.view(n.columns), xhat, gain.view(n.columns))

    def forward(x):
        with torch.no_grad():
            batch_var, batch_mean = torch.var_mean(x, n.batch_axes, unbiased=False)
            r, d = constants(batch_mean, torch.sqrt(batch_var + n.eps))
        # With r and d constant, gain (r xhat + d) + bias is a batch norm with another affine part.
        scale, shift = gain * r, torch.addcmul(bias, gain, d)
        return F.batch_norm(x, None, None, scale, shift, True, 0.0, n.eps)
    return forward if n.fused else plain


def pn_v(n):
    psi2 = n.state(1.0)
    gain, bias = n.affine()

    def forward(x):
        batch = n.mean_square(x)
        with torch.no_grad():
            psi2.lerp_(batch, 1 - n.number("keep"))
        rpsi = torch.rsqrt(batch + n.eps)
        if n.fused:
            return torch.addcmul(bias, x, gain * rpsi)
        return torch.addcmul(bias, x * rpsi, gain)
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


class PlainSurrogate(torch.autograd.Function):
    """The same as its formulas read, xhat = x * scale kept for the backward:
    dx = rdx * (dy * g - xhat * slope)."""

    @staticmethod
    def forward(ctx, x, gain, bias, rule):
        ctx.scale, ctx.rule = rule.scale(x), rule
        xhat = x * ctx.scale
        ctx.save_for_backward(xhat, gain)
        return torch.addcmul(bias, xhat, gain)

    @staticmethod
    def backward(ctx, dy):
        xhat, gain = ctx.saved_tensors
        axes = ctx.rule.n.batch_axes
        dgain = (dy * xhat).sum(axes, keepdim=True)
        a, b = ctx.rule.factors(gain, dgain)
        rdx = ctx.rule.rdx
        dx = rdx * (dy * (a / rdx) - xhat * (-b / (rdx * ctx.scale)))
        return dx, dgain, dy.sum(axes, keepdim=True), None


def surrogate(n, rule):
    function, (gain, bias) = Surrogate if n.fused else PlainSurrogate, n.affine()
    return lambda x: function.apply(x, gain, bias, rule)


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
    norm, heads = surrogate(n, PowerNorm(n)), int(n.options["heads"])

    def forward(x):
        if heads and x.dim() == 2:
            eps = 1e-5  # the scaling has its own, whatever the norm is given
            x = rms(x.view(len(x), heads, -1), (-1,), None, eps).view_as(x)
        return norm(x)
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
        self.rdx, self.r = torch.rsqrt(v + n.eps), self.n.state(1.0)
        if n.step > max(n.number("clip_after"), n.number("warmup")):
            clip = n.number("clip")
            self.r = torch.sqrt((v + n.eps) / (self.v + n.eps)).clamp(1 / clip, clip)
        self.v = torch.lerp(self.v, v, 1 - n.number("keep"))
        self.count = x.numel() // n.features
        return self.rdx * self.r

    def factors(self, gain, dgain):
        self.gz[self.place] = gain * dgain / self.count
        g = self.gz.mean(0) if self.averages else self.gz[self.place]
        return self.rdx * gain * self.r, -self.rdx.square() * g


def mabn(n):
    return surrogate(n, Mabn(n))
