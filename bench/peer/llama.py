"""A small Llama on bytes, without dropout and without a memory between segments."""


class Llama(Sublayers):
    def __init__(self, net, inputs):
        options = net.options
        if options["memory"] != "0":
            raise ValueError(f"expected model.memory=0, got {options['memory']}")
        self.net, self.layers = net, int(options["layers"])
        self.pre, self.has_qk_norm = options["pre_norm"] == "true", options["qk_norm"] == "true"
        self.heads = int(options["heads"])
        self.kv_heads = int(options["kv_heads"]) or self.heads
        self.input = inputs["input"].long()
        self.cosines, self.sines = self.rotation(int(options["width"]) // self.heads)

    def rotation(self, width):
        """cos and sin of the angles of each position, for both halves of a head."""
        rates = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        positions = torch.arange(self.input.shape[1], dtype=torch.float64)
        angles = torch.outer(positions, rates).repeat(1, 2)
        return angles.cos().float().to(DEVICE), angles.sin().float().to(DEVICE)

    def rotated(self, x):
        low, high = x.chunk(2, -1)
        return x * self.cosines + torch.cat([-high, low], -1) * self.sines

    def projected(self, name, x, heads):
        return self.net.linear(name, x).unflatten(-1, (heads, -1)).transpose(1, 2)

    def normed(self, name, x, heads):
        y = self.projected(name, x, heads)
        if not self.has_qk_norm:
            return y
        return rms(y, (-1,), self.net.parameters[name + "_norm/gain"], 1e-6, True)

    def look(self, name, x):
        x = x.unflatten(0, self.input.shape)
        q = self.rotated(self.normed(name + "/q", x, self.heads))
        k = self.rotated(self.normed(name + "/k", x, self.kv_heads))
        v = self.projected(name + "/v", x, self.kv_heads)
        if self.kv_heads < self.heads:
            k, v = (y.repeat_interleave(self.heads // self.kv_heads, 1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.net.linear(name + "/out", y.transpose(1, 2).flatten(2)).flatten(0, 1)

    def feed_forward(self, name, x):
        gate, up = self.net.linear(name + "/gate", x), self.net.linear(name + "/up", x)
        return self.net.linear(name + "/down", F.silu(gate) * up)

    def __call__(self):
        x = F.embedding(self.input, self.net.parameters["embedding/table"])
        if "embedding/scalar" in self.net.parameters:
            x = x * self.net.parameters["embedding/scalar"]
        x = x.flatten(0, 1)  # norms over the batch take rows
        for layer in range(1, self.layers + 1):
            x = self.branch(f"layer{layer}/attention", self.look, x)
            x = self.branch(f"layer{layer}/feed_forward", self.feed_forward, x)
        if self.pre:
            x = self.net.norm("norm", x)
        return self.net.linear("softmax", x).unflatten(0, self.input.shape)
