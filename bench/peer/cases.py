"""Norms and steps of PyTorch in each of its modes: what serve.py asks for."""


def compiled(function):
    if not hasattr(torch, "compile"):
        raise ValueError("torch.compile needs PyTorch 2")
    return torch.compile(function, dynamic=False)


def recorded(body, states, changed):
    """The body as one CUDA graph. It starts from the states as they are now, and from the values of
    the other tensors that it changes in place."""
    if DEVICE != "cuda":
        raise ValueError("CUDA graphs need a GPU")
    places = [(state, state.now) for state in states]
    kept = [*changed, *(place for _, place in places)]
    start = [v.detach().clone() for v in kept]

    def body_in_place():
        results = body()
        with torch.no_grad():
            for state, place in places:
                if state.now is not place:
                    place.copy_(state.now)
                    state.now = place
        return results

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # libraries and the optimizer's state come to life
            body_in_place()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = body_in_place()
    with torch.no_grad():
        for value, first in zip(kept, start):
            value.copy_(first)

    def replay():
        graph.replay()
        return results
    return replay


class NormCase:
    def __init__(self, case, mode, inputs, parameters):
        x, dy = inputs["x"], inputs["dy"]
        if case.get("is_narrow", False):  # a module that was moved to bf16
            x, dy = x.bfloat16(), dy.bfloat16()
            parameters = {n: p.detach().bfloat16().requires_grad_() for n, p in parameters.items()}
        self.x, self.dy = x.requires_grad_(), [dy]
        self.parameters = parameters
        facts = case["norm"]
        if mode == "plain" and facts["name"] not in FUSED:
            raise ValueError(f"{facts['name']} is composed as its formulas read already")
        norm = Norm(facts, "norm/", parameters, self.x.shape, fused=mode in ("usual", "graph"))
        self.norm, self.numbers = NORMS[facts["name"]](norm), norm.numbers
        if "residual" in inputs:
            self.take_residual(*(inputs[n].to(x.dtype) for n in ("residual", "dsum")))
        self.draws = facts["name"] == "noisybatchnorm"
        if mode == "compiled":
            self.norm = compiled(self.norm)
        self.steps = case["steps"]
        self.bodies = [self.forward, self.both]
        if mode == "graph":
            if self.draws:
                raise ValueError("its noise is another at each step")
            self.bodies = [recorded(body, norm.states, []) for body in self.bodies]

    def forward(self):
        return self.norm(self.x)

    def take_residual(self, residual, dsum):
        """The norm of x + residual; the sum is a result as well."""
        def norm_of_sum(x, of_sum=self.norm):
            total = x + residual
            return of_sum(total), total
        self.norm, self.dy = norm_of_sum, [*self.dy, dsum]

    def both(self):
        y = self.norm(self.x)
        results = y if isinstance(y, tuple) else [y]
        return y, torch.autograd.grad(results, [self.x, *self.parameters.values()], self.dy)

    def drop(self):
        """A norm keeps nothing from one call to the next."""

    def values(self):
        self.numbers.given = keel_noise("norm/", self.x.shape) if self.draws else None
        for _ in range(self.steps):
            y, gradients = self.bodies[-1]()
        self.numbers.given = None
        names = ["x", *self.parameters]
        results = dict(zip(("y", "sum"), y if isinstance(y, tuple) else [y]))
        return results | {"gradient of " + n: g for n, g in zip(names, gradients)}


class StepCase:
    def __init__(self, case, mode, inputs, parameters):
        parameters = {name: self.own(case, name, value) for name, value in parameters.items()}
        inputs = dict(inputs)
        if mode == "channels_last" and not in_channels_last(inputs) + in_channels_last(parameters):
            raise ValueError("there are no images")
        self.parameters = list(parameters.values())
        self.net = Network(case, parameters)
        self.loss = self.loss_of(case, mode, self.net, inputs)
        self.is_narrow = mode.startswith("autocast")
        is_captured = mode.endswith("graph")
        self.clip_limit = case["clip_limit"]
        self.optimizer = make_optimizer(case["optimizer"], self.parameters, is_captured)
        self.run = self.step
        if is_captured:
            self.run = recorded(self.step, self.net.states(), self.parameters)
        self.bodies = [self.run]

    @staticmethod
    def loss_of(case, mode, net, inputs):
        is_compiled, model = "compiled" in mode, case["model"]
        if model in WHOLE:
            net.meet_norms(lambda: WHOLE[model](net, inputs))
            net.is_compiled = is_compiled
            net.made.clear()
            return lambda: WHOLE[model](net, inputs)
        loss_of = LOSSES.get(model, mean_cross_entropy)

        def loss():
            return loss_of(net, NETWORKS[model](net, inputs), inputs)
        net.meet_norms(loss)
        return compiled(loss) if is_compiled else loss

    @staticmethod
    def own(case, name, value):
        """A copy, for every mode changes its own; F.linear takes (out, in)."""
        is_matrix = name.endswith("/weight") and value.dim() == 2
        value = in_own_order(case, name, value.detach().t() if is_matrix else value.detach())
        return value.clone(memory_format=torch.contiguous_format).requires_grad_()

    def drop(self):
        """Gives the gradients of the last step back."""
        self.optimizer.zero_grad(set_to_none=True)

    def step(self):
        self.drop()
        with torch.autocast(DEVICE, torch.bfloat16, enabled=self.is_narrow):
            loss = self.loss()
        loss.backward()
        self.clip()
        self.optimizer.step()
        self.net.after_update()
        return loss

    def clip(self):
        """By the norm of all gradients, where that is wanted."""
        if self.clip_limit is None:
            return
        self.grad_norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.clip_limit)

    def values(self):
        loss = self.run()
        if self.clip_limit is None:
            self.grad_norm = sum(p.grad.square().sum() for p in self.parameters).sqrt()
        return {"loss": loss, "grad_norm": self.grad_norm}


def read_tensor(facts):
    dtypes = {"f32": torch.float32, "i32": torch.int32, "u8": torch.uint8}
    dtype = dtypes[facts["dtype"]]
    count = 1
    for size in facts["shape"]:
        count *= size
    content = bytearray(sys.stdin.buffer.read(count * torch.empty(0, dtype=dtype).element_size()))
    value = torch.frombuffer(content, dtype=dtype).reshape(facts["shape"]).clone().to(DEVICE)
    return value.requires_grad_() if facts["is_parameter"] else value


def in_float64(tensors):
    def wide(value):
        if not value.is_floating_point():
            return value
        return value.detach().double().requires_grad_(value.requires_grad)
    return {name: wide(value) for name, value in tensors.items()}


def results_of(made, make, case, mode, given):
    """The results of the case, or of the same case in float64 where roundings grow so much that
    float32 would not tell another function from another rounding."""
    if not case.get("is_exact", False):
        return made.values()
    return make(case, mode, *(in_float64(tensors) for tensors in given)).values()


def forget():
    """Gives the memory of former cases back, and forgets what was compiled for them."""
    if "torch._dynamo" in sys.modules:  # its compiler, once it was used
        sys.modules["torch._dynamo"].reset()
    if DEVICE == "cuda":
        torch.cuda.empty_cache()


def probe(value):
    """At most 16 elements, evenly spaced."""
    flat = value.detach().flatten()
    count = min(16, len(flat))
    return [float(flat[i * len(flat) // count]) for i in range(count)]


def make_filler():
    """Twice as much memory as the GPU's L2 cache, which is filled with it before anything is
    timed."""
    size = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 128 << 20)
    return torch.zeros(2 * size // 4, dtype=torch.float32, device=DEVICE)


FILLER = make_filler() if DEVICE == "cuda" else None


def device_seconds(body):
    """The cache is filled by reading, as backends/cuda/runtime.cu fills it: what is written would
    have to be written back while the body runs."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    FILLER.sum()
    begin.record()
    body()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3


def device_growth(body):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    body()
    return torch.cuda.max_memory_allocated() - before
