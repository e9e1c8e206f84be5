"""Norms of a feature by its statistics over the batch."""


def mean_square(n, x):
    return jnp.square(lax.stop_gradient(x)).mean(n.batch_axes, keepdims=True)


def lerp(old, new, rate):
    return old + rate * (new - old)


def batch_norm(n):
    n.state("mean", 0.0)
    n.state("var", 1.0)
    rate = 1 - n.number("keep")

    def forward(x, p, states):
        mean, var = n.moments(x, n.batch_axes)
        gain, bias = n.affine(p)
        y = (x - mean) * (lax.rsqrt(var + n.eps) * gain) + bias
        return y, {"mean": lerp(states["mean"], mean, rate), "var": lerp(states["var"], var, rate)}
    return forward


def batch_renorm(n):
    n.state("mean", 0.0)
    n.state("std", 1.0)
    n.state("steps", 0.0, ())
    rate = n.number("rate")

    def limit(name, start, steps):
        if n.number(name + "_max") >= 0:
            return n.number(name + "_max")
        scale = n.number("updates") / 100000
        begin, end = scale * n.number(name + "_start"), scale * n.number(name + "_end")
        part = jnp.clip((steps - begin) / max(end - begin, 1), 0, 1)
        return start + (n.number(name + "_max_limit") - start) * part

    def forward(x, p, states):
        mean, var = n.moments(x, n.batch_axes)
        std = jnp.sqrt(var + n.eps)
        r_max, d_max = limit("r", 1, states["steps"]), limit("d", 0, states["steps"])
        r = jnp.clip(std / states["std"], 1 / r_max, r_max)
        d = jnp.clip((mean - states["mean"]) / states["std"], -d_max, d_max)
        r, d, (gain, bias) = lax.stop_gradient(r), lax.stop_gradient(d), n.affine(p)
        y = (x - mean) * (gain * r / std) + (gain * d + bias)
        return y, {"mean": lerp(states["mean"], mean, rate), "std": lerp(states["std"], std, rate),
                   "steps": states["steps"] + 1}
    return forward


def pn_v(n):
    n.state("psi2", 1.0)

    def forward(x, p, states):
        batch, (gain, bias) = jnp.square(x).mean(n.batch_axes, keepdims=True), n.affine(p)
        y = x * (gain * lax.rsqrt(batch + n.eps)) + bias
        return y, {"psi2": lerp(states["psi2"], batch, 1 - n.number("keep"))}
    return forward


# States that a backward changes: what a norm gives as the gradient of one is its next value.
MOVED = ("nu", "gz")


def surrogate(n, rule):
    """y = gain * (x * scale) + bias with dx = dy * a + x * b. rule.constants(x, states) gives
    scale, what the backward is to know of this step, and the states changed; rule.factors(gain,
    dgain, scale, moved, step) gives dgain, a, b and the next values of the states in MOVED."""
    @jax.custom_vjp
    def function(x, gain, bias, moved, constants):
        return x * (gain * constants[0]) + bias

    def forward(x, gain, bias, moved, constants):
        return function(x, gain, bias, moved, constants), (x, gain, moved, constants)

    def backward(saved, dy):
        x, gain, moved, (scale, step) = saved
        dgain = (dy * x).sum(n.batch_axes, keepdims=True) * scale
        dgain, a, b, moved = rule.factors(gain, dgain, scale, moved, step)
        return (dy * a + x * b, dgain, dy.sum(n.batch_axes, keepdims=True), moved, None)

    function.defvjp(forward, backward)

    def norm(x, p, states):
        scale, step, changed = rule.constants(lax.stop_gradient(x), states)
        moved = {name: states[name] for name in MOVED if name in states}
        return function(x, *n.affine(p), moved, (scale, step)), changed
    return norm


class PowerNorm:
    def __init__(self, n):
        self.n = n
        n.state("psi2", 1.0)
        n.state("nu", 0.0)
        n.state("steps", 0.0, ())
        self.forward_rate = 1 - n.number("alpha_f")
        self.backward_rate = 1 - n.number("alpha_b")
        self.warmup, self.is_paper = n.number("warmup"), n.options["mode"] == "paper"

    def constants(self, x, states):
        eps, batch, psi2 = self.n.eps, mean_square(self.n, x), states["psi2"]
        divisor, changed = psi2, {"psi2": lerp(psi2, batch, self.forward_rate)}
        if self.warmup > 0:
            divisor, changed = self.warm_psi2(batch, states)
        rstd = lax.rsqrt(divisor + eps)
        rdx = rstd if self.is_paper else lax.rsqrt(batch + eps)
        return rstd, (rdx, batch * jnp.square(rstd)), changed

    def warm_psi2(self, batch, states):
        """The divisor of this step, the batch's own at first. Early the running one is the mean of
        the batches so far, or made from it."""
        psi2, t = states["psi2"], states["steps"] + 1
        seen = lerp(psi2, batch, 1 / t)
        early = seen if self.is_paper else lerp(seen, batch, self.forward_rate)
        later = lerp(psi2, batch, self.forward_rate)
        changed = {"psi2": jnp.where(t < self.warmup, early, later), "steps": t}
        return jnp.where(t <= self.warmup, batch, psi2), changed

    def factors(self, gain, dgain, rstd, moved, step):
        (rdx, gamma), nu = step, moved["nu"]
        change = gain * dgain / self.n.count - nu * gamma
        return dgain, rdx * gain, -rdx * nu * rstd, {"nu": nu + self.backward_rate * change}


def power_norm(n):
    norm, heads = surrogate(n, PowerNorm(n)), int(n.options["heads"])

    def forward(x, p, states):
        if heads and x.ndim == 2:
            eps = 1e-5  # the scaling has its own, whatever the norm is given
            x = over_rms(x.reshape(len(x), heads, -1), (-1,), eps).reshape(x.shape)
        return norm(x, p, states)
    return forward


class Mabn:
    def __init__(self, n):
        self.n, self.m = n, int(n.options["m"])
        for name in ("x2", "gz"):
            n.state(name, 0.0, (self.m, *n.columns))
        n.state("v", 1.0)
        n.state("steps", 0, ())
        self.warmup, self.clip = n.number("warmup"), n.number("clip")
        self.clip_after = max(n.number("clip_after"), self.warmup)
        self.rate = 1 - n.number("keep")

    def averages(self, t):
        return (t > self.m) & (t >= self.warmup)

    def average(self, ring, batch, t):
        """The mean over a ring that has this step's batch; early the batch's own."""
        return jnp.where(self.averages(t), ring.mean(0), batch)

    def clipped(self, v, old):
        ratio = jnp.sqrt((v + self.n.eps) / (old + self.n.eps))
        return jnp.clip(ratio, 1 / self.clip, self.clip)

    def constants(self, x, states):
        t, batch = states["steps"] + 1, mean_square(self.n, x)
        ring = states["x2"].at[t % self.m].set(batch)
        v = self.average(ring, batch, t)
        r = jnp.where(t > self.clip_after, self.clipped(v, states["v"]), 1)
        rstd = lax.rsqrt(v + self.n.eps)
        return rstd * r, (rstd, r, t), {"x2": ring, "v": lerp(states["v"], v, self.rate),
                                        "steps": t}

    def factors(self, gain, dgain, _, moved, step):
        rstd, r, t = step
        batch = gain * dgain / self.n.count
        ring = moved["gz"].at[t % self.m].set(batch)
        b = -jnp.square(rstd) * self.average(ring, batch, t)
        return dgain, rstd * gain * r, b, {"gz": ring}


def mabn(n):
    return surrogate(n, Mabn(n))


class UnifiedNorm(Mabn):
    """r multiplies dy, but not y. A batch that `skips` the windows uses its own statistics."""

    def __init__(self, n):
        super().__init__(n)
        n.state("nu", 0.0)
        self.filters = n.options["filter"] == "true" and self.m > 1

    def constants(self, x, states):
        t, batch, before = states["steps"] + 1, mean_square(self.n, x), states["x2"]
        window, averages = before.at[t % self.m].set(batch), self.averages(t)
        mean, skips = jnp.exp(jnp.log(window).mean(0)), jnp.asarray(self.m == 1)
        if self.filters:
            bound = self.m * jnp.sqrt(before).var(ddof=1)
            skips = averages & (window.mean(0) - mean > bound).any()
            window = before.at[t % self.m].set(jnp.where(skips, states["v"], batch))
        v = jnp.where(averages & ~skips, mean, batch)
        r = jnp.where((t > self.clip_after) & ~skips, self.clipped(v, states["v"]), 1)
        changed = {"x2": window, "v": lerp(states["v"], v, self.rate), "steps": t}
        return lax.rsqrt(v + self.n.eps), (r, t, skips), changed

    def factors(self, gain, dgain, rstd, moved, step):
        r, t, skips = step
        dgain, nu = dgain * r, moved["nu"]
        batch = gain * dgain / self.n.count
        ring = moved["gz"].at[t % self.m].set(jnp.where(skips, nu, batch))
        mean = jnp.where(skips, batch, self.average(ring, batch, t))
        nu = lerp(nu, mean, self.rate)
        b = -jnp.square(rstd) * jnp.where(skips, mean, nu)
        return dgain, rstd * gain * r, b, {"gz": ring, "nu": nu}


def unified_norm(n):
    return surrogate(n, UnifiedNorm(n))
