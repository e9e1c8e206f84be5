"""Optimizers, each as its first memory and a function that moves the parameters."""


def sgd(facts):
    def first(parameters):
        return {name: jnp.zeros_like(p) for name, p in parameters.items()}

    def update(parameters, gradients, memory):
        following, kept = {}, {}
        for name, p in parameters.items():
            g = gradients[name] + facts["weight_decay"] * p
            kept[name] = facts["momentum"] * memory[name] + g
            move = g + facts["momentum"] * kept[name] if facts["nesterov"] else kept[name]
            following[name] = p - facts["lr"] * move
        return following, kept
    return first, update


def adam(facts):
    """weight_decay is added to the gradient, or of adamw and adam_fairseq shrinks the parameter."""
    is_apart = facts["name"] != "adam"
    b1, b2, decay = facts["beta1"], facts["beta2"], facts["weight_decay"]

    def first(parameters):
        return {"step": jnp.zeros((), jnp.int32),
                **{name: (jnp.zeros_like(p), jnp.zeros_like(p)) for name, p in parameters.items()}}

    def update(parameters, gradients, memory):
        step = memory["step"] + 1
        following, kept = {}, {"step": step}
        for name, p in parameters.items():
            m, v = memory[name]
            g = gradients[name] if is_apart else gradients[name] + decay * p
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * jnp.square(g)
            move = m / (1 - b1 ** step) / (jnp.sqrt(v / (1 - b2 ** step)) + facts["eps"])
            following[name] = p - facts["lr"] * (move + decay * p if is_apart else move)
            kept[name] = m, v
        return following, kept
    return first, update


def make_optimizer(facts):
    """The first memory of the parameters, and what moves them."""
    makers = {"sgd": sgd, "adam": adam, "adamw": adam, "adam_fairseq": adam}
    if facts["name"] not in makers:
        raise ValueError(f"expected {', '.join(makers)}, got {facts['name']}")
    return makers[facts["name"]](facts)
