"""Translation with a Transformer, without dropout: of symbols source and target_in, with norms of
rows, which padding does not touch."""


class Translation(Sublayers):
    def __init__(self, net, inputs):
        super().__init__(net)
        if net.options["sites"] != "all":
            raise ValueError(f"expected model.sites=all, got {net.options['sites']}")
        if net.options["final_norm"]:
            raise ValueError(f"expected no model.final_norm, got {net.options['final_norm']}")
        if net.norm_facts["is_batch_type"]:
            raise ValueError("a norm over the batch would count padding")
        self.source, self.target = inputs["source"].long(), inputs["target_in"].long()
        self.seen = inputs["source_mask"].bool()[:, None, None, :]
        self.width = int(net.options["width"])
        longest = max(self.source.shape[1], self.target.shape[1])
        self.sinusoids = sinusoidal_positions(longest, self.width)

    def table(self, side):
        shared = {"all": ("source", "logits"), "target": ("logits",), "none": ()}
        is_targets = side in shared[self.net.options["embeddings"]]
        return self.net.parameters[("target" if is_targets else side) + "/table"]

    def embed(self, side, symbols):
        words = F.embedding(symbols, self.table(side), padding_idx=1)
        return words * math.sqrt(self.width) + self.sinusoids[:symbols.shape[1]]

    def encode(self, x):
        for layer in range(1, self.layers + 1):
            x = self.branch(f"encoder{layer}/attention",
                            lambda name, h: self.attention(name, h, h, self.seen), x)
            x = self.branch(f"encoder{layer}/feed_forward", self.feed_forward, x)
        return self.net.norm("encoder/norm", x) if self.ends_normed else x

    def decode(self, x, memory):
        for layer in range(1, self.layers + 1):
            x = self.branch(f"decoder{layer}/attention",
                            lambda name, h: self.attention(name, h, h, None, causal=True), x)
            x = self.branch(f"decoder{layer}/memory_attention",
                            lambda name, h: self.attention(name, h, memory, self.seen), x)
            x = self.branch(f"decoder{layer}/feed_forward", self.feed_forward, x)
        return self.net.norm("decoder/norm", x) if self.ends_normed else x

    def __call__(self):
        memory = self.encode(self.embed("source", self.source))
        h = self.decode(self.embed("target", self.target), memory)
        return F.linear(h, self.table("logits"))


def translation(net, inputs):
    return net.once("translation", lambda: Translation(net, inputs))()


def smoothed_loss(net, logits, inputs):
    """The mean over the symbols of the targets; -1 stands for padding."""
    label = net.once("label", lambda: inputs["target_out"].long().flatten())
    return F.cross_entropy(logits.flatten(0, 1), label, ignore_index=-1,
                           label_smoothing=float(net.options["label_smoothing"]))


NETWORKS["translation"], LOSSES["translation"] = translation, smoothed_loss
