"""Norms of a feature by its statistics over the batch."""


class _Beside(torch.autograd.Function):
    """y, and a loss that is added to what y is differentiated for."""

    @staticmethod
    def forward(_, y, loss):
        return y.view_as(y)

    @staticmethod
    def backward(_, dy):
        return dy, dy.new_ones(())


def with_penalties(n, norm, running):
    """The norm with the loss that keeps the batch's statistics near the running ones."""
    of_mean, of_deviation = n.number("mean_penalty"), n.number("deviation_penalty")
    mean, var, rate = *running, 1 - n.number("keep")

    def forward(x):
        batch_var, batch_mean = torch.var_mean(x, n.batch_axes, unbiased=False)
        with torch.no_grad():
            mean.lerp_(batch_mean, rate)
            var.lerp_(batch_var, rate)
        deviations = torch.sqrt(batch_var + n.eps) - torch.sqrt(var + n.eps)
        loss = of_mean * (batch_mean - mean).square().sum()
        return _Beside.apply(norm(x), loss + of_deviation * deviations.square().sum())
    return forward


def batch_norm(n):
    if float(n.options.get("mean_penalty", 0)) or float(n.options.get("deviation_penalty", 0)):
        own = n.state(0.0, (n.features,)).now, n.state(1.0, (n.features,)).now
        return with_penalties(n, plain_batch_norm(n), own)
    return plain_batch_norm(n)


def plain_batch_norm(n):
    # The running variance is PyTorch's own, unbiased: as much work.
    mean, var = n.state(0.0, (n.features,)).now, n.state(1.0, (n.features,)).now
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


def noisy_batch_norm(n):
    norm = batch_norm(n)
    m_width, v_width = n.number("n_mean"), n.number("n_std") - 1
    shift_width, scale_width = n.number("r_mean"), n.number("r_std")

    def noise(x):
        sample = (len(x), *n.columns[1:])
        m = n.numbers.uniform("m", n.columns).mul_(2 * m_width).sub_(m_width + shift_width)
        v = n.numbers.uniform("v", n.columns).mul_(v_width).add_(1)
        shift = n.numbers.uniform("M", sample).mul_(2 * shift_width).add_(m)
        return shift, n.numbers.normal("S", sample).mul_(scale_width).add_(v)

    def forward(x):
        with torch.no_grad():
            shift, scale = noise(x)
        return torch.addcmul(shift, norm(x), scale)
    return forward


def batch_renorm(n):
    mean, std = n.state(0.0, (n.features,)), n.state(1.0, (n.features,))
    gain, bias = (v.view(-1) for v in n.affine())
    rate, steps = n.number("rate"), n.state(0.0, ())

    def limit(name, start):
        if n.number(name + "_max") >= 0:
            return n.number(name + "_max")
        scale = n.number("updates") / 100000
        begin, end = scale * n.number(name + "_start"), scale * n.number(name + "_end")
        part = ((steps.now - begin) / max(end - begin, 1)).clamp(0, 1)
        return start + (n.number(name + "_max_limit") - start) * part

    def constants(batch_mean, batch_std):
        r_max, d_max = limit("r", 1), limit("d", 0)
        r = (batch_std / std.now).clamp(1 / r_max, r_max)
        d = ((batch_mean - mean.now) / std.now).clamp(-d_max, d_max)
        mean.now = torch.lerp(mean.now, batch_mean, rate)
        std.now = torch.lerp(std.now, batch_std, rate)
        steps.now = steps.now + 1
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
    psi2 = n.state(1.0).now
    gain, bias = n.affine()

    def forward(x):
        batch = n.mean_square(x)
        with torch.no_grad():
            psi2.lerp_(batch, 1 - n.number("keep"))
        rstd = torch.rsqrt(batch + n.eps)
        if n.fused:
            return torch.addcmul(bias, x, gain * rstd)
        return torch.addcmul(bias, x * rstd, gain)
    return forward


class Surrogate(torch.autograd.Function):
    """y = gain * (x * scale) + bias with dx = dy * a + x * b. Of every feature rule.constants(x)
    gives a scale, and what the backward is to know of this step; rule.factors(gain, dgain, scale,
    ...) the factors a and b."""

    @staticmethod
    def forward(ctx, rule, *tensors):
        x, gain, bias, scale, *step = tensors
        ctx.rule = rule
        ctx.save_for_backward(x, gain, scale, *step)
        return torch.addcmul(bias, x, gain * scale)

    @staticmethod
    def backward(ctx, dy):
        x, gain, scale, *step = ctx.saved_tensors
        axes = ctx.rule.n.batch_axes
        dgain = (dy * x).sum(axes, keepdim=True) * scale
        a, b = ctx.rule.factors(gain, dgain, scale, *step)
        dx, dbias = torch.addcmul(dy * a, x, b), dy.sum(axes, keepdim=True)
        return None, dx, dgain, dbias, None, *(None for _ in step)


class PlainSurrogate(torch.autograd.Function):
    """The same as its formulas read, xhat = x * scale kept for the backward:
    dx = dy * a + xhat * (b / scale)."""

    @staticmethod
    def forward(ctx, rule, *tensors):
        x, gain, bias, scale, *step = tensors
        xhat = x * scale
        ctx.rule = rule
        ctx.save_for_backward(xhat, gain, scale, *step)
        return torch.addcmul(bias, xhat, gain)

    @staticmethod
    def backward(ctx, dy):
        xhat, gain, scale, *step = ctx.saved_tensors
        axes = ctx.rule.n.batch_axes
        dgain = (dy * xhat).sum(axes, keepdim=True)
        a, b = ctx.rule.factors(gain, dgain, scale, *step)
        dx, dbias = dy * a + xhat * (b / scale), dy.sum(axes, keepdim=True)
        return None, dx, dgain, dbias, None, *(None for _ in step)


def surrogate(n, rule):
    function, (gain, bias) = Surrogate if n.fused else PlainSurrogate, n.affine()

    def forward(x):
        with torch.no_grad():
            constants = rule.constants(x)
        return function.apply(rule, x, gain, bias, *constants)
    return forward


class PowerNorm:
    def __init__(self, n):
        self.n = n
        self.psi2, self.nu = n.state(1.0), n.state(0.0).now
        self.forward_rate = 1 - n.number("alpha_f")
        self.backward_rate = 1 - n.number("alpha_b")
        self.warmup, self.steps = n.number("warmup"), n.state(0.0, ())
        self.is_paper = n.options["mode"] == "paper"

    def constants(self, x):
        eps, batch, psi2 = self.n.eps, self.n.mean_square(x), self.psi2.now
        rstd = torch.rsqrt((psi2 if self.warmup == 0 else self.warm_psi2(batch)) + eps)
        rdx = rstd if self.is_paper else torch.rsqrt(batch + eps)
        if self.warmup == 0:
            self.psi2.now = torch.lerp(psi2, batch, self.forward_rate)
        return rstd, rdx, batch * rstd.square()

    def warm_psi2(self, batch):
        """The divisor of this step, the batch's own at first. Early the running one is the mean of
        the batches so far, or made from it."""
        psi2, t = self.psi2.now, self.steps.now + 1
        seen = torch.lerp(psi2, batch, 1 / t)
        early = seen if self.is_paper else torch.lerp(seen, batch, self.forward_rate)
        later = torch.lerp(psi2, batch, self.forward_rate)
        self.psi2.now = torch.where(t < self.warmup, early, later)
        self.steps.now = t
        return torch.where(t <= self.warmup, batch, psi2)

    def factors(self, gain, dgain, rstd, rdx, gamma):
        change = gain * dgain / self.n.count - self.nu * gamma
        factors = rdx * gain, -rdx * self.nu * rstd
        self.nu.add_(change, alpha=self.backward_rate)
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
        self.n, self.m = n, int(n.options["m"])
        self.x2, self.gz = (n.state(0.0, (self.m, *n.columns)) for _ in range(2))
        self.v, self.steps = n.state(1.0), n.state(0, (1,))
        self.warmup, self.clip = n.number("warmup"), n.number("clip")
        self.clip_after = max(n.number("clip_after"), self.warmup)

    def average(self, ring, batch, t):
        """The mean over a ring that has this step's batch; early the batch's own."""
        averages = (t > self.m) & (t >= self.warmup)
        return torch.where(averages, ring.mean(0), batch)

    def constants(self, x):
        eps, t, batch = self.n.eps, self.steps.now + 1, self.n.mean_square(x)
        self.x2.now = torch.index_copy(self.x2.now, 0, t % self.m, batch[None])
        v = self.average(self.x2.now, batch, t)
        clipped = torch.sqrt((v + eps) / (self.v.now + eps)).clamp(1 / self.clip, self.clip)
        r = torch.where(t > self.clip_after, clipped, 1)
        self.v.now = torch.lerp(self.v.now, v, 1 - self.n.number("keep"))
        self.steps.now = t
        rstd = torch.rsqrt(v + eps)
        return rstd * r, rstd, r, t

    def factors(self, gain, dgain, _, *step):
        rstd, r, t = step
        batch, ring = gain * dgain / self.n.count, self.gz.now
        ring.index_copy_(0, t % self.m, batch[None])
        return rstd * gain * r, -rstd.square() * self.average(ring, batch, t)


def mabn(n):
    return surrogate(n, Mabn(n))


class UnifiedNorm(Mabn):
    """r multiplies dy, but not y. A batch that `skips` the windows uses its own statistics."""

    def __init__(self, n):
        super().__init__(n)
        self.nu, self.rate = n.state(0.0).now, 1 - n.number("keep")
        self.filters = n.options["filter"] == "true" and self.m > 1

    def constants(self, x):
        eps, t, batch, before = self.n.eps, self.steps.now + 1, self.n.mean_square(x), self.x2.now
        window = torch.index_copy(before, 0, t % self.m, batch[None])
        mean, skips = window.log().mean(0).exp(), torch.full_like(t, self.m == 1, dtype=torch.bool)
        averages = (t > self.m) & (t >= self.warmup)
        if self.filters:
            bound = self.m * before.sqrt().var()
            skips = averages & (window.mean(0) - mean > bound).any()
            own = torch.where(skips, self.v.now, batch)
            window = torch.index_copy(before, 0, t % self.m, own[None])
        self.x2.now = window
        v = torch.where(averages & ~skips, mean, batch)
        clipped = torch.sqrt((v + eps) / (self.v.now + eps)).clamp(1 / self.clip, self.clip)
        r = torch.where((t > self.clip_after) & ~skips, clipped, 1)
        self.v.now = torch.lerp(self.v.now, v, self.rate)
        self.steps.now = t
        return torch.rsqrt(v + eps), r, t, skips

    def factors(self, gain, dgain, rstd, *step):
        r, t, skips = step
        dgain.mul_(r)
        batch, ring = gain * dgain / self.n.count, self.gz.now
        ring.index_copy_(0, t % self.m, torch.where(skips, self.nu, batch)[None])
        mean = torch.where(skips, batch, self.average(ring, batch, t))
        self.nu.lerp_(mean, self.rate)
        slope = torch.where(skips, mean, self.nu)
        return rstd * gain * r, -rstd.square() * slope


def unified_norm(n):
    return surrogate(n, UnifiedNorm(n))
