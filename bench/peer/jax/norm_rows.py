"""Norms of a row by its own statistics, and of a weight; what all norms share. A norm is a function
of x, the parameters and the states of its site; it returns y and the states that its forward
changes."""


class Norm:
    """Shared parts of the expressions below: sizes, options, first states."""

    def __init__(self, facts, shape, is_plain=False, channels_last=False):
        self.is_plain = is_plain  # composed as the formulas read
        self.options = dict(option.split("=", 1) for option in facts["options"].split())
        self.eps = float(self.options.get("eps", 0))
        # Rows: all but the first axis of images, else the last.
        axes = int(self.options.get("axes", "0")) or (3 if len(shape) == 4 else 1)
        self.row_axes = tuple(range(-axes, 0))
        # Features, and how a tensor with one element for each lies beside x.
        self.is_image = len(shape) == 4
        self.channel = 3 if self.is_image and channels_last else 1
        self.features = shape[self.channel]
        self.count = math.prod(shape) // self.features  # elements of each
        self.batch_axes = tuple(a for a in range(len(shape)) if a != self.channel)
        self.columns = tuple(self.features if a == self.channel else 1 for a in range(len(shape)))
        self.states = {}  # before the first step

    def number(self, name):
        return float(self.options[name])

    def state(self, name, value, shape=None):
        self.states[name] = jnp.full(self.columns if shape is None else shape, value)

    def affine(self, p):
        """gain and bias beside x, ones and zeros where there is none."""
        return tuple(p[name].reshape(self.columns) if name in p else jnp.full(self.columns, value)
                     for name, value in (("gain", 1.0), ("bias", 0.0)))

    def moments(self, x, axes):
        """Mean and variance; as flax has it the variance is the mean square less the mean's."""
        mean = x.mean(axes, keepdims=True)
        if self.is_plain:
            return mean, jnp.square(x - mean).mean(axes, keepdims=True)
        square = jnp.square(x).mean(axes, keepdims=True)
        return mean, jnp.maximum(square - jnp.square(mean), 0)

    def standardize(self, x, axes):
        mean, var = self.moments(x, axes)
        return (x - mean) * lax.rsqrt(var + self.eps)


def without_states(make):
    """Of a function of x and the parameters."""
    def made(n):
        function = make(n)
        return lambda x, p, states: (function(x, p), {})
    return made


def scale_and_shift(xhat, p):
    if "gain" in p:
        xhat = xhat * p["gain"]
    return xhat + p["bias"] if "bias" in p else xhat


def no_norm(n):
    return lambda x, p: x


def layer_norm(n):
    if n.is_image and n.options.get("per_pixel") == "true":
        def of_pixels(x, p):
            gain, bias = n.affine(p)
            return n.standardize(x, (n.channel,)) * gain + bias
        return of_pixels
    return lambda x, p: scale_and_shift(n.standardize(x, n.row_axes), p)


def over_rms(x, axes, eps):
    return x * lax.rsqrt(jnp.square(x).mean(axes, keepdims=True) + eps)


def rms_norm(n):
    return lambda x, p: scale_and_shift(over_rms(x, n.row_axes, n.eps), p)


def scale_norm(n):
    def forward(x, p):
        length = jnp.sqrt(jnp.square(x).sum(n.row_axes, keepdims=True))
        return x * (p["gain"] / jnp.maximum(length, n.eps))
    return forward


def seed_norm(n):
    def forward(x, p):
        score = (x * p["b"]).sum(n.row_axes, keepdims=True)
        return over_rms(x, n.row_axes, n.eps) * (jnp.tanh(score) * p["a"] + p["gain"])
    return forward


def curve(f):
    """A norm of elements: y = gain f(alpha x + shift) + bias."""
    def make(n):
        return lambda x, p: scale_and_shift(f(x * p["alpha"] + p.get("shift", 0)), p)
    return make


def in_groups(n, x, groups):
    """x with the channels of a group on an axis of their own, and the axes of a group."""
    if n.channel == 3:
        return x.reshape(*x.shape[:3], groups, -1), (1, 2, 4)
    return x.reshape(len(x), groups, -1), (2,)


def group_scaling(n):
    groups = int(n.options["groups"])

    def forward(x, p):
        rows, axes = in_groups(n, x, groups)
        return over_rms(rows, axes, n.eps).reshape(x.shape)
    return forward


def detach_norm(n):
    mean_is_constant = n.options["detach_mean"] == "true"
    scale_is_constant = n.options["detach_variance"] == "true"

    def forward(x, p):
        mean, var = n.moments(lax.stop_gradient(x) if scale_is_constant else x, n.row_axes)
        if not scale_is_constant:
            # The variance does not move with the mean: its gradient is that of x - constant.
            centred = x - lax.stop_gradient(mean)
            return centred * lax.rsqrt(jnp.square(centred).mean(n.row_axes, keepdims=True) + n.eps)
        if not mean_is_constant:
            mean = x.mean(n.row_axes, keepdims=True)
        return (x - mean) * lax.rsqrt(var + n.eps)
    return forward


def ada_norm(n):
    c, k = n.number("C"), n.number("k")
    detach = n.options["detach"] == "true"

    def forward(x, p):
        xhat = n.standardize(x, n.row_axes)
        return (c - c * k * (lax.stop_gradient(xhat) if detach else xhat)) * xhat
    return forward


def group_norm(n):
    groups = int(n.options["groups"])

    def forward(x, p):
        rows, axes = in_groups(n, x, groups)
        gain, bias = n.affine(p)
        return n.standardize(rows, axes).reshape(x.shape) * gain + bias
    return forward


def instance_norm(n):
    places = tuple(a for a in n.batch_axes if a != 0)

    def forward(x, p):
        gain, bias = n.affine(p)
        return n.standardize(x, places) * gain + bias
    return forward


def weight_norm(n):
    # x is the direction of a weight, its first axis the units.
    def forward(v, p):
        length = p["gain"].reshape(-1, *(1 for _ in v.shape[1:]))
        squares = jnp.square(v).sum(tuple(range(1, v.ndim)), keepdims=True)
        return v * (length * lax.rsqrt(squares + n.eps))
    return forward
