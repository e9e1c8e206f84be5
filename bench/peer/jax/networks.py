"""The models of keel in JAX, on parameters that keel names: "fc1/weight", "fc1/norm/gain"."""


def split_states(states):
    """The states that a backward changes, and the others, by site."""
    moved, rest = {}, {}
    for site, values in states.items():
        moved[site] = {name: v for name, v in values.items() if name in MOVED}
        rest[site] = {name: v for name, v in values.items() if name not in MOVED}
    return moved, rest


def joined(*all_states):
    """What comes later counts."""
    sites = {site for states in all_states for site in states}
    return {site: {name: v for states in all_states for name, v in states.get(site, {}).items()}
            for site in sites}


class Network:
    def __init__(self, case, inputs, channels_last):
        self.norm_facts, self.options = case["norm"], case["options"]
        self.channels_last = channels_last
        expect_no_dropout(self.options)
        if case["model"] not in NETWORKS:
            raise ValueError(f"expected a task of {', '.join(NETWORKS)} for JAX, got "
                             f"{case['model']}")
        if channels_last and not any(value.ndim == 4 for value in inputs.values()):
            raise ValueError("there are no images")
        self.run = NETWORKS[case["model"]]
        self.sites = {}  # by name

    def own(self, tensors):
        """Copies, for a step donates them; images, and what lies beside them, channels last where
        that is wanted."""
        orders = {3: (1, 2, 0), 4: (2, 3, 1, 0)} if self.channels_last else {}

        def copied(name, value):
            order = (0, 2, 3, 1) if name == "image" else orders.get(value.ndim)
            return jnp.transpose(value, order) if self.channels_last and order else value + 0
        return {name: copied(name, value) for name, value in tensors.items()}

    def meet_norms(self, parameters, inputs):
        """Makes the norms, which need the shapes that they meet in a run of the network."""
        jax.eval_shape(lambda: self.loss(parameters, {}, {}, inputs))

    def first_states(self):
        return {name: site.states for name, (site, _) in self.sites.items()}

    def loss(self, parameters, moved, states, inputs):
        """The loss, and the states that its forward changes."""
        self.parameters, self.changed = parameters, {}
        self.states = joined(states, moved)
        logits, labels = self.run(self, inputs)
        of_labels = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)
        return -of_labels.mean(), self.changed

    def layer(self, name):
        return self.parameters[name + "/weight"], self.parameters.get(name + "/bias")

    def linear(self, name, x):
        weight, bias = self.layer(name)
        return x @ weight if bias is None else x @ weight + bias

    def conv(self, name, x):
        weight, bias = self.layer(name)
        order = ("NHWC", "HWIO", "NHWC") if self.channels_last else ("NCHW", "OIHW", "NCHW")
        y = lax.conv_general_dilated(x, weight, (1, 1), "VALID", dimension_numbers=order)
        return y + (bias if self.channels_last else bias[:, None, None])

    def norm(self, name, x):
        if name not in self.sites:
            with jax.ensure_compile_time_eval():
                site = Norm(self.norm_facts, x.shape, channels_last=self.channels_last)
                self.sites[name] = site, make_norm(self.norm_facts["name"], site)
        site, norm = self.sites[name]
        own = {full.removeprefix(name + "/"): p for full, p in self.parameters.items()
               if full.startswith(name + "/")}
        y, self.changed[name] = norm(x, own, self.states.get(name, site.states))
        return y


def mnist_mlp(net, inputs):
    x = inputs["image"]
    for layer in range(1, int(net.options["layers"]) + 1):
        x = jax.nn.relu(net.norm(f"fc{layer}/norm", net.linear(f"fc{layer}", x)))
    logits = net.linear("logits", x)
    if net.norm_facts["is_batch_type"]:
        logits = net.norm("logits/norm", logits)
    return logits, inputs["label"]


def max_pool(net, x):
    """Of 2 x 2 pixels that do not overlap. Slices are faster than lax.reduce_window here."""
    if net.channels_last:
        rows = jnp.maximum(x[:, ::2], x[:, 1::2])
        return jnp.maximum(rows[:, :, ::2], rows[:, :, 1::2])
    rows = jnp.maximum(x[:, :, ::2], x[:, :, 1::2])
    return jnp.maximum(rows[..., ::2], rows[..., 1::2])


def mnist_cnn(net, inputs):
    x, architecture = inputs["image"], net.options["architecture"]
    for layer in ("conv1", "conv2"):
        x = net.conv(layer, x)
        if architecture in "CD":
            x = net.norm(layer + "/norm", x)
        x = max_pool(net, jax.nn.relu(x))
    if net.channels_last:  # the next weight's rows are in keel's order
        x = jnp.transpose(x, (0, 3, 1, 2))
    x = x.reshape(len(x), -1)
    if architecture == "B":
        return net.norm("logits/norm", net.linear("logits", x)), inputs["label"]
    h = net.linear("fc1", x)
    h = jax.nn.relu(h if architecture == "D" else net.norm("fc1/norm", h))
    return net.linear("logits", h), inputs["label"]


def sinusoidal_positions(length, width, first=2):
    """Rows [sin(p f_0) ... sin(p f_{h-1}), cos(p f_0) ...] of p = first, first + 1, ..., with
    h = width / 2 and f_i = 10000^(-i / (h - 1))."""
    half = width // 2
    rates = np.exp(np.arange(half) * (-math.log(10000) / (half - 1)))
    angles = np.outer(np.arange(first, first + length), rates)
    return np.concatenate([np.sin(angles), np.cos(angles)], 1).astype(np.float32)


def branch(net, is_pre, name, sublayer, x):
    """A sublayer with its norm, beside x."""
    norm = name + "/norm"
    if is_pre:
        return x + sublayer(name, net.norm(norm, x))
    return net.norm(norm, x + sublayer(name, x))


def heads_of(net, name, x, heads):
    y = net.linear(name, x)
    return y.reshape(*y.shape[:-1], heads, -1)


def encoder(net, inputs):
    """A Transformer encoder on padded rows of words."""
    options, mask = net.options, inputs["mask"] != 0
    if options["place"] not in ("pre", "post"):
        raise ValueError(f"a network with place={options['place']} is not known here")
    is_pre, heads, tokens = options["place"] == "pre", int(options["heads"]), inputs["tokens"]
    length, width = mask.shape[1], int(options["width"])

    def attention(name, x):
        q, k, v = (heads_of(net, name + layer, x, heads) for layer in ("/q", "/k", "/v"))
        y = jax.nn.dot_product_attention(q, k, v, mask=mask[:, None, None, :])
        return net.linear(name + "/out", y.reshape(x.shape))

    def feed_forward(name, x):
        return net.linear(name + "/2", jax.nn.relu(net.linear(name + "/1", x)))

    words = net.parameters["embedding"][tokens]
    words = jnp.where(tokens[..., None] == 0, lax.stop_gradient(words), words)  # of padding
    positions = (sinusoidal_positions(length, width) if options["positions"] == "sinusoidal"
                 else net.parameters["positions"][:length])
    x = words * math.sqrt(width) + positions
    for layer in range(1, int(options["layers"]) + 1):
        x = branch(net, is_pre, f"encoder{layer}/attention", attention, x)
        x = branch(net, is_pre, f"encoder{layer}/feed_forward", feed_forward, x)
    return net.norm("norm", x) if is_pre else x


def text_classifier(net, inputs):
    mask = (inputs["mask"] != 0)[..., None].astype(jnp.float32)
    mean = (encoder(net, inputs) * mask).sum(1) / jnp.maximum(mask.sum(1), 1)
    return net.linear("logits", mean), inputs["label"]


def llama(net, inputs):
    """char_lm's small Llama on bytes, without a memory between segments."""
    options = net.options
    for name, value in (("architecture", "llama"), ("memory", "0")):
        if options[name] != value:
            raise ValueError(f"expected model.{name}={value} for JAX, got {options[name]}")
    if options["place"] not in ("pre", "post"):
        raise ValueError(f"expected model.place=pre or post for JAX, got {options['place']}")
    heads, width, length = int(options["heads"]), int(options["width"]), inputs["input"].shape[1]
    kv_heads, is_pre = int(options["kv_heads"]) or heads, options["place"] == "pre"
    size = width // heads
    rates = 10000.0 ** (-np.arange(0, size, 2) / size)
    angles = np.tile(np.outer(np.arange(length), rates), 2)[:, None]
    cosines, sines = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def rotated(name, x, heads):
        y = heads_of(net, name, x, heads)
        if options["qk_norm"] == "true":
            y = over_rms(y, (-1,), 1e-6) * net.parameters[name + "_norm/gain"]
        low, high = jnp.split(y, 2, -1)
        return y * cosines + jnp.concatenate([-high, low], -1) * sines

    def attention(name, x):
        x = x.reshape(*inputs["input"].shape, width)
        q, k = rotated(name + "/q", x, heads), rotated(name + "/k", x, kv_heads)
        v = heads_of(net, name + "/v", x, kv_heads)
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        return net.linear(name + "/out", y.reshape(-1, width))

    def feed_forward(name, x):
        gate = jax.nn.silu(net.linear(name + "/gate", x))
        return net.linear(name + "/down", gate * net.linear(name + "/up", x))

    x = net.parameters["embedding/table"][inputs["input"].reshape(-1)]
    x = x * net.parameters.get("embedding/scalar", 1)
    for layer in range(1, int(options["layers"]) + 1):
        x = branch(net, is_pre, f"layer{layer}/attention", attention, x)
        x = branch(net, is_pre, f"layer{layer}/feed_forward", feed_forward, x)
    x = net.norm("norm", x) if is_pre else x
    return net.linear("softmax", x), inputs["target"].reshape(-1)


NETWORKS = {"mnist_mlp": mnist_mlp, "mnist_cnn": mnist_cnn, "text_classifier": text_classifier,
            "char_lm": llama}
