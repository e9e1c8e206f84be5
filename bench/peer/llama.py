"""A small Llama on bytes, without dropout and without a memory between segments."""


def unit(x):
    return F.normalize(x, dim=-1)


class Llama(Sublayers):
    PLACES = ("pre", "post", "simple", "ngpt")

    def __init__(self, net, inputs):
        super().__init__(net)
        options = net.options
        if options["memory"] != "0":
            raise ValueError(f"expected model.memory=0, got {options['memory']}")
        self.has_qk_norm, self.width = options["qk_norm"] == "true", int(options["width"])
        if self.place == "ngpt":
            net.constraints.append(self.unit_weights)
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
        return self.linear(name, x).unflatten(-1, (heads, -1)).transpose(1, 2)

    def scale(self, name, first, stored):
        """A learned scale of nGPT, which is `first` at first and stored as `stored`."""
        return self.net.parameters[name] * (first / stored)

    def unit_weights(self):
        """The vectors of the network's width, of every matrix, at length 1."""
        with torch.no_grad():
            for name, value in self.net.parameters.items():
                if value.dim() == 2:
                    dim = 0 if name.endswith(("/out/weight", "/down/weight")) else 1
                    value.copy_(F.normalize(value, dim=dim))

    def step(self, name, x, y):
        a = self.scale(name + "/alpha", 0.05, self.width ** -0.5).abs()
        return unit(unit(x) + a * (unit(y) - unit(x)))

    def branch(self, name, sublayer, x):
        if self.place == "ngpt":
            return self.step(name, x, sublayer(name, x))
        return super().branch(name, sublayer, x)

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
        scale = None
        if self.place == "ngpt":
            s = self.scale(name + "/qk_scale", 1, self.width ** -0.5).view(self.heads, 1, -1)
            q, k, scale = s * unit(q), s * unit(k), math.sqrt(self.width // self.heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
        return self.linear(name + "/out", y.transpose(1, 2).flatten(2)).flatten(0, 1)

    def units(self, name, x):
        y = self.linear(name, x)
        if self.place != "ngpt":
            return y
        return y * self.scale(name + "_scale", self.width ** 0.5, 1)

    def feed_forward(self, name, x):
        gate, up = self.units(name + "/gate", x), self.units(name + "/up", x)
        return self.linear(name + "/down", F.silu(gate) * up)

    def __call__(self):
        x = F.embedding(self.input, self.net.parameters["embedding/table"])
        if "embedding/scalar" in self.net.parameters:
            x = x * self.net.parameters["embedding/scalar"]
        x = x.flatten(0, 1)  # norms over the batch take rows
        for layer in range(1, self.layers + 1):
            x = self.branch(f"layer{layer}/attention", self.look, x)
            x = self.branch(f"layer{layer}/feed_forward", self.feed_forward, x)
        if self.ends_normed:
            x = self.net.norm("norm", x)
        logits = self.net.linear("softmax", x)
        if self.place == "ngpt":
            logits = logits * self.scale("softmax_scale", 1, self.width ** -0.5)
        return logits.unflatten(0, self.input.shape)
