"""Recurrent layers of keel in PyTorch, time-major: x (steps, rows, width). A cell without a norm is
PyTorch's own fused one."""


class Recurrent:
    def __init__(self, net, inputs):
        self.net, self.x = net, inputs["x"]
        self.cell, self.layers = net.options["cell"], int(net.options["layers"])
        self.is_plain = net.norm_facts["name"] == "none"
        self.width = self.x.shape[2]
        self.start = self.x.new_zeros(self.x.shape[1:])
        self.step = {"lstm": self.lstm_step, "gru": self.gru_step}[self.cell]
        if net.is_compiled:  # the cell: a whole unrolled sequence takes minutes to compile
            self.step = torch.compile(self.step, dynamic=False)

    def projected(self, name, x):
        return self.net.norm(name + "/norm", self.net.linear(name, x))

    def lstm_step(self, layer, w, h, c):
        f, i, o, g = (w + self.projected(layer + "/recurrent", h)).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * self.net.norm(layer + "/cell_norm", c).tanh()
        return h, c

    def gru_step(self, layer, w, a, h):
        z, r = (w + self.projected(layer + "/gates/recurrent", h)).sigmoid().chunk(2, 1)
        q = self.projected(layer + "/candidate/recurrent", h)
        return h + z * ((a + r * q).tanh() - h)

    def lstm(self, layer, x):
        w = self.projected(layer + "/input", x) + self.net.parameters[layer + "/bias"]
        h, c, outputs = self.start, self.start, []
        for step in w.unbind(0):
            h, c = self.step(layer, step, h, c)
            outputs.append(h)
        return torch.stack(outputs)

    def gru(self, layer, x):
        w, a = (self.projected(layer + name, x) for name in ("/gates/input", "/candidate/input"))
        h, outputs = self.start, []
        for gates, candidate in zip(w.unbind(0), a.unbind(0)):
            h = self.step(layer, gates, candidate, h)
            outputs.append(h)
        return torch.stack(outputs)

    def fused_lstm(self):
        """PyTorch's own; the order of its gates changes neither loss nor gradient norm."""
        weights = []
        for i in range(self.layers):
            ours = [self.net.parameters[f"layer{i}/{name}"]
                    for name in ("input/weight", "recurrent/weight", "bias")]
            weights += [*ours, torch.zeros_like(ours[2])]
        start = self.x.new_zeros(self.layers, *self.start.shape)
        return torch._VF.lstm(self.x, (start, start), weights, True, self.layers, 0.0, True, False,
                              False)[0]

    def __call__(self):
        if self.is_plain and self.cell == "lstm":
            return self.fused_lstm().square().mean()
        x = self.x
        for i in range(self.layers):
            x = getattr(self, self.cell)(f"layer{i}", x)
        return x.square().mean()


def in_own_order(case, name, value):
    """An LSTM's parameter with the gates in PyTorch's order, (gates * width, in) or (gates *
    width), where PyTorch's own cell takes it."""
    if case["options"].get("cell") != "lstm" or case["norm"]["name"] != "none":
        return value
    forget, into, out, new = value.chunk(4, 0)
    return torch.cat([into, forget, new, out], 0)


def recurrent(net, inputs):
    return net.once("recurrent", lambda: Recurrent(net, inputs))()


# Networks that return their loss, not logits, and have what they compile compiled themselves.
WHOLE = {"recurrent": recurrent}
