"""The models of keel in PyTorch, on parameters that keel names: "fc1/weight", "fc1/norm/gain"."""


class Network:
    def __init__(self, case, parameters):
        self.parameters, self.norm_facts = parameters, case["norm"]
        self.options = case["options"]
        expect_no_dropout(self.options)
        self.norms, self.shapes, self.sites, self.made = {}, {}, {}, {}  # by name
        self.is_compiled, self.constraints = False, []

    def once(self, name, make):
        """The value that make() returned when it was first asked for."""
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]

    def layer(self, name):
        return self.parameters[name + "/weight"], self.parameters.get(name + "/bias")

    def linear(self, name, x):
        return F.linear(x, *self.layer(name))

    def conv(self, name, x, stride=1, padding=0):
        return F.conv2d(x, *self.layer(name), stride=stride, padding=padding)

    def make_norm(self, name):
        make = NORMS[self.norm_facts["name"]]
        site = Norm(self.norm_facts, name + "/", self.parameters, self.shapes[name])
        self.sites[name] = site
        return make(site)

    def states(self):
        return [state for site in self.sites.values() for state in site.states]

    def norm(self, name, x):
        if name not in self.norms:
            self.shapes[name] = x.shape
            self.norms[name] = self.make_norm(name)
        return self.norms[name](x)

    def after_update(self):
        """What a network asks of its weights after every update of the optimizer."""
        for constrain in self.constraints:
            constrain()

    def meet_norms(self, run):
        """Makes the norms, which need the shapes that they meet in a run of the network."""
        with torch.no_grad():
            run()
        self.norms = {name: self.make_norm(name) for name in self.shapes}


def mnist_mlp(net, inputs):
    x = inputs["image"]
    for layer in range(1, int(net.options["layers"]) + 1):
        x = F.relu(net.norm(f"fc{layer}/norm", net.linear(f"fc{layer}", x)))
    logits = net.linear("logits", x)
    return net.norm("logits/norm", logits) if net.norm_facts["is_batch_type"] else logits


def mnist_cnn(net, inputs):
    x, architecture = inputs["image"], net.options["architecture"]
    for layer in ("conv1", "conv2"):
        x = net.conv(layer, x)
        if architecture in "CD":
            x = net.norm(layer + "/norm", x)
        x = F.max_pool2d(F.relu(x), 2)
    x = x.flatten(1)
    if architecture == "B":
        return net.norm("logits/norm", net.linear("logits", x))
    h = net.linear("fc1", x)
    return net.linear("logits", F.relu(h if architecture == "D" else net.norm("fc1/norm", h)))


def sinusoidal_positions(length, width, first=2):
    """Rows [sin(p f_0) ... sin(p f_{h-1}), cos(p f_0) ...] of p = first, first + 1, ..., with
    h = width / 2 and f_i = 10000^(-i / (h - 1))."""
    half = width // 2
    rates = torch.arange(half, dtype=torch.float64) * (-math.log(10000) / (half - 1))
    angles = torch.outer(torch.arange(first, first + length, dtype=torch.float64), rates.exp())
    return torch.cat([angles.sin(), angles.cos()], 1).float().to(DEVICE)


class Sublayers:
    """The parts of Transformers."""

    PLACES = ("pre", "post", "simple")

    def __init__(self, net):
        options = net.options
        self.place = options["place"]
        if self.place not in self.PLACES:
            raise ValueError(f"a network with place={self.place} is not known here")
        self.net, self.heads = net, int(options["heads"])
        self.layers = int(options["layers"])
        self.ends_normed = self.place in ("pre", "simple")

    def linear(self, name, x):
        """A linear map, and its norm where SimpleNorm has one."""
        y = self.net.linear(name, x)
        return self.net.norm(name + "/norm", y) if self.place == "simple" else y

    def attention(self, name, x, memory, seen_keys, causal=False):
        def heads(layer, of):
            return self.linear(name + layer, of).unflatten(2, (self.heads, -1)).transpose(1, 2)
        y = F.scaled_dot_product_attention(heads("/q", x), heads("/k", memory),
                                           heads("/v", memory), seen_keys, is_causal=causal)
        return self.linear(name + "/out", y.transpose(1, 2).flatten(2))

    def feed_forward(self, name, x):
        return self.linear(name + "/2", F.relu(self.linear(name + "/1", x)))

    def branch(self, name, sublayer, x):
        norm = name + "/norm"
        if self.place == "simple":
            return x + sublayer(name, x)
        if self.place == "pre":
            return x + sublayer(name, self.net.norm(norm, x))
        return self.net.norm(norm, x + sublayer(name, x))


class Encoder(Sublayers):
    """A Transformer encoder on padded rows of words; what does not change is made once."""

    def __init__(self, net, inputs):
        super().__init__(net)
        options = net.options
        self.tokens, mask = inputs["tokens"].long(), inputs["mask"].bool()
        self.seen_keys = mask[:, None, None, :]
        self.mask = mask[:, :, None].float()
        self.count = self.mask.sum(1).clamp(min=1)
        self.length, width = mask.shape[1], int(options["width"])
        self.scale = math.sqrt(width)
        self.sinusoids = sinusoidal_positions(self.length, width)

    def positions(self):
        if self.net.options["positions"] == "sinusoidal":
            return self.sinusoids
        return self.net.parameters["positions"][:self.length]

    def look(self, name, x):
        return self.attention(name, x, x, self.seen_keys)

    def __call__(self):
        words = F.embedding(self.tokens, self.net.parameters["embedding"], padding_idx=0)
        x = words * self.scale + self.positions()
        for layer in range(1, self.layers + 1):
            x = self.branch(f"encoder{layer}/attention", self.look, x)
            x = self.branch(f"encoder{layer}/feed_forward", self.feed_forward, x)
        return self.net.norm("norm", x) if self.ends_normed else x


def text_classifier(net, inputs):
    encoder = net.once("encoder", lambda: Encoder(net, inputs))
    mean = (encoder() * encoder.mask).sum(1) / encoder.count
    return net.linear("logits", mean)


def dependency_parser(net, inputs):
    legal = net.once("legal", lambda: inputs["legal"].bool())
    x = F.embedding(inputs["features"], net.parameters["embedding"]).flatten(1)
    for layer in range(1, int(net.options["layers"])):
        x = net.norm(f"fc{layer}/norm", net.linear(f"fc{layer}", x))
        x = F.relu(x) if net.options["activation"] == "relu" else x * x * x
    return net.linear("logits", x).masked_fill(~legal, -1e9)


NETWORKS = {"mnist_mlp": mnist_mlp, "mnist_cnn": mnist_cnn, "text_classifier": text_classifier,
            "dependency_parser": dependency_parser}


def mean_cross_entropy(net, logits, inputs):
    return F.cross_entropy(logits, net.once("label", lambda: inputs["label"].long()))


LOSSES = {}  # of networks whose loss is another, by name


class NoOptimizer:
    """The optimizer of a case that consists of a loss and its gradients."""

    def __init__(self, parameters):
        self.parameters = parameters

    def zero_grad(self, set_to_none):
        for parameter in self.parameters:
            parameter.grad = None if set_to_none else torch.zeros_like(parameter)

    def step(self):
        """Leaves the parameters as they are."""


def make_optimizer(facts, parameters, captured):
    """`captured`: for a step that is replayed as a CUDA graph."""
    if facts["name"] == "none":
        return NoOptimizer(parameters)
    options = {"lr": facts["lr"], "weight_decay": facts["weight_decay"]}
    if facts["name"] == "sgd":
        make = torch.optim.SGD
        options |= {"momentum": facts["momentum"], "nesterov": facts["nesterov"]}
    elif facts["name"] not in ("adam", "adamw", "adam_fairseq"):
        raise ValueError(f"expected sgd, adam, adamw or adam_fairseq, got {facts['name']}")
    else:  # fairseq's differs from AdamW in where eps stands
        make = torch.optim.Adam if facts["name"] == "adam" else torch.optim.AdamW
        options |= {"betas": (facts["beta1"], facts["beta2"]), "eps": facts["eps"]}
        if captured:
            options["capturable"] = True
    try:  # one kernel for all parameters, where this version has it for this device
        return make(parameters, fused=True, **options)
    except (TypeError, RuntimeError):
        return make(parameters, **options)
