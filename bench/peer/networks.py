"""The models of keel in PyTorch, on parameters that keel names: "fc1/weight", "fc1/norm/gain"."""


class Network:
    def __init__(self, case, parameters):
        self.parameters, self.norm_facts = parameters, case["norm"]
        self.options = case["options"]
        self.norms, self.shapes = {}, {}  # by name

    def layer(self, name):
        return self.parameters[name + "/weight"], self.parameters.get(name + "/bias")

    def linear(self, name, x):
        return F.linear(x, *self.layer(name))

    def conv(self, name, x):
        return F.conv2d(x, *self.layer(name))

    def make_norm(self, name):
        make = NORMS[self.norm_facts["name"]]
        return make(Norm(self.norm_facts, name + "/", self.parameters, self.shapes[name]))

    def norm(self, name, x):
        if name not in self.norms:
            self.shapes[name] = x.shape
            self.norms[name] = self.make_norm(name)
        return self.norms[name](x)

    def meet_norms(self, network, x):
        """Makes the norms, which need the shapes that they meet in the network."""
        with torch.no_grad():
            network(self, x)
        self.norms = {name: self.make_norm(name) for name in self.shapes}


def mnist_mlp(net, x):
    for layer in range(1, int(net.options["layers"]) + 1):
        x = F.relu(net.norm(f"fc{layer}/norm", net.linear(f"fc{layer}", x)))
    logits = net.linear("logits", x)
    return net.norm("logits/norm", logits) if net.norm_facts["is_batch_type"] else logits


def mnist_cnn(net, x):
    architecture = net.options["architecture"]
    for layer in ("conv1", "conv2"):
        x = net.conv(layer, x)
        if architecture == "C":
            x = net.norm(layer + "/norm", x)
        x = F.max_pool2d(F.relu(x), 2)
    x = x.flatten(1)
    if architecture == "B":
        return net.norm("logits/norm", net.linear("logits", x))
    return net.linear("logits", F.relu(net.norm("fc1/norm", net.linear("fc1", x))))


NETWORKS = {"mnist_mlp": mnist_mlp, "mnist_cnn": mnist_cnn}


def make_optimizer(facts, parameters, captured):
    """`captured`: for a step that is replayed as a CUDA graph."""
    options = {"lr": facts["lr"], "weight_decay": facts["weight_decay"]}
    if facts["name"] == "sgd":
        make = torch.optim.SGD
        options |= {"momentum": facts["momentum"], "nesterov": facts["nesterov"]}
    else:
        make = torch.optim.AdamW if facts["name"] == "adamw" else torch.optim.Adam
        options |= {"betas": (facts["beta1"], facts["beta2"]), "eps": facts["eps"]}
        if captured:
            options["capturable"] = True
    try:  # one kernel for all parameters, where this version has it for this device
        return make(parameters, fused=True, **options)
    except (TypeError, RuntimeError):
        return make(parameters, **options)
