"""Word language models, without dropout. Multi-linear attention takes some queries at a time, so
that the products with `out` leave out most of what the mask hides: on a CPU that is faster than one
product over all pairs, and takes less memory."""

QUERIES = 8  # taken at a time


def distances_to_last(positions, width):
    """Row j has sin(t w_i), then cos(t w_i), of t = positions - 1 - j."""
    rates = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    distance = torch.arange(positions - 1, -1, -1, dtype=torch.float64)
    angles = torch.outer(distance, rates)
    return torch.cat([angles.sin(), angles.cos()], 1).float().to(DEVICE)


class WordLm(Sublayers):
    def __init__(self, net, inputs):
        super().__init__(net)
        if net.options["scaling"]:
            raise ValueError(f"expected no model.scaling, got {net.options['scaling']}")
        self.words = inputs["input"].long()
        self.length, self.width = self.words.shape[1], int(net.options["width"])
        self.positions, self.rank = int(net.options["length"]), int(net.options["rank"])
        self.causal = net.options["mask"] == "causal"
        self.is_multilinear = net.options["attention"] == "multilinear"
        self.sines = distances_to_last(self.positions, self.width)
        self.sinusoids = sinusoidal_positions(self.length, self.width)
        keys = torch.arange(self.length, device=DEVICE)
        self.seen = keys[None, :] <= keys[:, None]

    def products(self, name, x):
        """The y of multi-linear attention."""
        values, n = self.net.parameters, self.length
        core = values[name + "/core"].mean(0)
        q, k = self.net.linear(name + "/q", x), self.net.linear(name + "/k", x)
        v = self.net.linear(name + "/v", x)
        p = self.net.linear(name + "/positions", self.sines)[:n]
        a = (q + values["attention_biases/content"]) * core
        c = (q + values["attention_biases/position"]) * core
        out = values[name + "/out"].view(self.positions, self.positions, -1)
        parts = []
        for first in range(0, n, QUERIES):
            last = min(first + QUERIES, n)
            met = last if self.causal else n
            h = (a[:, first:last, None] * k[:, None, :met]
                 + c[:, first:last, None] * p[None, None, :met])
            t = h @ v[:, None, :met].transpose(2, 3)
            if self.causal:
                seen = self.seen[first:last, :met]
                t = t * (seen[:, :, None] & seen[:, None, :])
            parts.append(t.flatten(2) @ out[:met, :met].reshape(met * met, -1))
        return torch.cat(parts, 1)

    def look(self, name, x):
        x = x.unflatten(0, self.words.shape)
        if self.is_multilinear:
            return self.products(name, x).flatten(0, 1)
        return self.attention(name, x, x, None, causal=self.causal).flatten(0, 1)

    def __call__(self):
        x = F.embedding(self.words, self.net.parameters["words"]) * math.sqrt(self.width)
        if not self.is_multilinear:
            x = x + self.sinusoids
        x = x.flatten(0, 1)  # norms over the batch take rows
        for layer in range(1, self.layers + 1):
            x = self.branch(f"layer{layer}/attention", self.look, x)
            x = self.branch(f"layer{layer}/feed_forward", self.feed_forward, x)
        if self.ends_normed and self.net.options["final_norm"] == "true":
            x = self.net.norm("norm", x)
        return x


def word_lm(net, inputs):
    return net.once("word_lm", lambda: WordLm(net, inputs))()


def adaptive_loss(net, x, target, cutoffs):
    """The sums of a head over the first words and the clusters, and of each cluster."""
    table, bias = net.parameters["words"], net.parameters["logits/bias"]
    smoothing = float(net.options["label_smoothing"])
    clusters = net.parameters["clusters/weight"].t()
    head = torch.cat([F.linear(x, table[:cutoffs[0]], bias[:cutoffs[0]]),
                      F.linear(x, clusters, net.parameters["clusters/bias"])], 1)
    ends = [*cutoffs[1:], len(table)]
    classes = target.clone()
    total = 0
    for number, (first, last) in enumerate(zip(cutoffs, ends)):
        rows = ((target >= first) & (target < last)).nonzero().flatten()
        classes[rows] = cutoffs[0] + number
        if len(rows) > 0:
            logits = F.linear(x[rows], table[first:last], bias[first:last])
            total = total + F.cross_entropy(logits, target[rows] - first, reduction="sum",
                                            label_smoothing=smoothing)
    total = total + F.cross_entropy(head, classes, reduction="sum", label_smoothing=smoothing)
    return total / len(target)


def word_loss(net, x, inputs):
    """The mean over the words of the targets."""
    target = net.once("target", lambda: inputs["target"].long().flatten())
    cutoffs = [int(number) for number in net.options["cutoffs"].split(",") if number]
    if cutoffs:
        return adaptive_loss(net, x, target, cutoffs)
    logits = F.linear(x, net.parameters["words"], net.parameters["logits/bias"])
    return F.cross_entropy(logits, target, label_smoothing=float(net.options["label_smoothing"]))


NETWORKS["word_lm"], LOSSES["word_lm"] = word_lm, word_loss


def softmax(net, inputs):
    """The loss of a softmax over many words by itself; x is a parameter, for it has a gradient."""
    if not net.is_compiled:
        return word_loss(net, net.parameters["x"], inputs)
    loss = net.once("softmax", lambda: torch.compile(word_loss, dynamic=False))
    return loss(net, net.parameters["x"], inputs)


WHOLE["softmax"] = softmax
