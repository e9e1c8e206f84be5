"""Norms and steps under jax.jit, their states and parameters donated: what serve.py asks for."""


def read_tensor(facts):
    dtype = np.dtype({"f32": np.float32, "i32": np.int32, "u8": np.uint8}[facts["dtype"]])
    content = sys.stdin.buffer.read(math.prod(facts["shape"]) * dtype.itemsize)
    return jnp.asarray(np.frombuffer(content, dtype).reshape(facts["shape"]))


def waited(body):
    """A body that is done when it returns."""
    return lambda: jax.block_until_ready(body())


class NormCase:
    def __init__(self, case, mode, inputs, parameters):
        name = case["norm"]["name"]
        if mode not in ("usual", "plain"):
            raise ValueError(f"JAX has no mode {mode} of a norm")
        if mode == "plain" and name not in CENTRED:
            raise ValueError(f"{name} is composed as its formulas read already")
        dtype = jnp.bfloat16 if case.get("is_narrow", False) else jnp.float32
        inputs = {name: value.astype(dtype) for name, value in inputs.items()}
        site = Norm(case["norm"], inputs["x"].shape, is_plain=mode == "plain")
        self.norm, self.steps = make_norm(name, site), case["steps"]
        self.states = site.states
        self.fixed = inputs, {name.removeprefix("norm/"): p for name, p in parameters.items()}
        self.names = list(parameters)
        self.bodies = [waited(self.in_place(self.forward)), waited(self.in_place(self.both))]

    def in_place(self, function):
        compiled = jax.jit(function, donate_argnums=0)

        def body():
            results, self.states = compiled(self.states, *self.fixed)
            return results
        return body

    def results(self, x, p, states, residual):
        """y and, with a residual, the sum; and the states changed. The statistics of bf16 are
        float32."""
        total = x if residual is None else x + residual
        y, changed = self.norm(total.astype(jnp.float32), p, states)
        y = {"y": y.astype(x.dtype)}
        return y if residual is None else y | {"sum": total}, changed

    def forward(self, states, inputs, p):
        results, changed = self.results(inputs["x"], p, states, inputs.get("residual"))
        return results, states | changed

    def both(self, states, inputs, p):
        def of(x, p, moved):
            return self.results(x, p, states | moved, inputs.get("residual"))
        moved = {name: states[name] for name in MOVED if name in states}
        results, pull, changed = jax.vjp(of, inputs["x"], p, moved, has_aux=True)
        slopes = {name: inputs["d" + name] for name in ("y", "sum") if "d" + name in inputs}
        dx, dp, moved = pull(slopes)
        return (results, dx, dp), states | changed | moved

    def drop(self):
        """A norm keeps nothing from one call to the next."""

    def values(self):
        for _ in range(self.steps):
            results, dx, dp = self.bodies[-1]()
        gradients = {"gradient of x": dx}
        gradients |= {f"gradient of {n}": dp[n.removeprefix("norm/")] for n in self.names}
        return results | gradients


class StepCase:
    def __init__(self, case, mode, inputs, parameters):
        if mode not in ("usual", "channels_last"):
            raise ValueError(f"JAX has no mode {mode} of a step")
        self.net = Network(case, inputs, mode == "channels_last")
        parameters = self.net.own(parameters)
        self.inputs = self.net.own(inputs)
        self.net.meet_norms(parameters, self.inputs)
        self.clip_limit = case["clip_limit"]
        optimizer = make_optimizer(case["optimizer"])
        self.update = optimizer[1]
        self.all = parameters, optimizer[0](parameters), self.net.first_states()
        self.first = jax.jit(self.losses)
        compiled = jax.jit(self.step, donate_argnums=0)

        def run():
            self.all, loss = compiled(self.all, self.inputs)
            return self.all, loss
        self.bodies = [waited(run)]

    def losses(self, parameters, states, inputs):
        """Loss, gradients, their norm, and the next states."""
        moved, rest = split_states(states)
        (loss, changed), (gradients, moved) = jax.value_and_grad(
            self.net.loss, (0, 1), has_aux=True)(parameters, moved, rest, inputs)
        squares = sum(jnp.square(g).sum() for g in gradients.values())
        return loss, gradients, jnp.sqrt(squares), joined(states, changed, moved)

    def step(self, everything, inputs):
        parameters, memory, states = everything
        loss, gradients, norm, states = self.losses(parameters, states, inputs)
        if self.clip_limit is not None:
            scale = jnp.minimum(self.clip_limit / (norm + 1e-6), 1)
            gradients = {name: g * scale for name, g in gradients.items()}
        parameters, memory = self.update(parameters, gradients, memory)
        return (parameters, memory, states), loss

    def drop(self):
        """A step gives its gradients back itself."""

    def values(self):
        loss, _, norm, _ = self.first(self.all[0], self.all[2], self.inputs)
        return {"loss": loss, "grad_norm": norm}


def results_of(made, make, case, mode, given):
    return made.values()


def probe(value):
    """At most 16 elements, evenly spaced."""
    flat = np.asarray(value, np.float32).reshape(-1)
    count = min(16, len(flat))
    return [float(flat[i * len(flat) // count]) for i in range(count)]


def forget():
    """Gives back what was compiled for former cases."""
    jax.clear_caches()
