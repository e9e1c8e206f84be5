"""Transformer-XL on bytes, without dropout, with norms of rows. Scores by distance are shifted by a
view and become the mask of PyTorch's own attention, its fastest form; the memory is a state that a
step leaves to the next."""


class TransformerXl:
    def __init__(self, net, inputs):
        options = net.options
        if net.norm_facts["is_batch_type"]:
            raise ValueError("a norm over the batch would count an empty memory")
        if options["place"] != "post":
            raise ValueError(f"expected model.place=post, got {options['place']}")
        self.net, self.layers = net, int(options["layers"])
        self.heads, self.width = int(options["heads"]), int(options["width"])
        self.input = inputs["input"].long()
        self.rows, self.length = self.input.shape
        self.memory = int(options["memory"])
        self.keys = self.memory + self.length
        self.distances = self.sinusoids()
        zeros = self.input.new_zeros(self.rows, self.memory, self.width, dtype=torch.float32)
        self.kept = [zeros.clone() for _ in range(self.layers)]
        self.filled = 0

    def sinusoids(self):
        """Rows [sin(k w_i), cos(k w_i)] of the distances k from the largest to 0."""
        rates = 10000.0 ** (-torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
        k = torch.arange(self.keys - 1, -1, -1, dtype=torch.float64)
        angles = torch.outer(k, rates)
        return torch.cat([angles.sin(), angles.cos()], 1).float().to(DEVICE)

    def unseen(self):
        """0 where query i sees key j, and -infinity elsewhere; made again while the memory
        fills."""
        return self.net.once(f"unseen {self.filled}", self.mask)

    def mask(self):
        i = torch.arange(self.length, device=DEVICE)[:, None] + self.memory
        j = torch.arange(self.keys, device=DEVICE)[None, :]
        sees = (j <= i) & (j >= self.memory - self.filled)
        return torch.zeros(sees.shape, device=DEVICE).masked_fill(~sees, -math.inf)

    def shifted(self, x):
        """Element (i, j) is x's (i, j + length - 1 - i): a view with a row that is shorter by 1."""
        b, h, n, m = x.shape
        return F.pad(x, (1, 0)).view(b, h, m + 1, n)[:, :, 1:].reshape(b, h, n, m)

    def attention(self, name, x, memory, unseen):
        def heads(layer, of):
            return self.net.linear(name + layer, of).unflatten(-1, (self.heads, -1))
        parameters, all_keys = self.net.parameters, torch.cat([memory, x], 1)
        q = heads("/q", x)
        k, v = (heads(layer, all_keys).transpose(1, 2) for layer in ("/k", "/v"))
        p = heads("/distance", self.distances).permute(1, 2, 0)
        by_distance = (q + parameters["w"].view(self.heads, -1)).transpose(1, 2) @ p
        scale = 1 / math.sqrt(self.width // self.heads)
        bias = self.shifted(by_distance * scale) + unseen
        query = (q + parameters["u"].view(self.heads, -1)).transpose(1, 2)
        y = F.scaled_dot_product_attention(query, k, v, bias)
        return self.net.linear(name + "/out", y.transpose(1, 2).flatten(2))

    def layer(self, name, x, memory, unseen):
        y = self.attention(name + "/attention", x, memory, unseen)
        x = self.net.norm(name + "/attention/norm", x + y)
        hidden = F.relu(self.net.linear(name + "/feed_forward/1", x))
        y = self.net.linear(name + "/feed_forward/2", hidden)
        return self.net.norm(name + "/feed_forward/norm", x + y)

    def __call__(self):
        table, unseen, left = self.net.parameters["embedding/table"], self.unseen(), []
        x = F.embedding(self.input, table) * math.sqrt(self.width)
        for i, memory in enumerate(self.kept, 1):
            left.append(torch.cat([memory, x.detach()], 1)[:, self.length:])
            x = self.layer(f"layer{i}", x, memory, unseen)
        if torch.is_grad_enabled():
            self.kept, self.filled = left, min(self.filled + self.length, self.memory)
        return F.linear(x, table, self.net.parameters["softmax/bias"])


def char_lm(net, inputs):
    network = Llama if net.options["architecture"] == "llama" else TransformerXl
    return net.once("char_lm", lambda: network(net, inputs))()


def loss_of_symbols(net, logits, inputs):
    target = net.once("target", lambda: inputs["target"].long().flatten())
    return F.cross_entropy(logits.flatten(0, 1), target)


NETWORKS["char_lm"], LOSSES["char_lm"] = char_lm, loss_of_symbols
