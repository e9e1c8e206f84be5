"""The requests, each a line of JSON on standard input, and their answers, each such a line.

{"case": {...}, "tensors": [{"name", "dtype", "shape", "is_parameter"}, ...]}, with the tensors'
bytes right behind it, sets up a case; the answer {"values": {NAME: [...]}} holds elements of what
it computes. {"rounds": R, "repeats": N} times the case: {"seconds": [[...], ...]}, for each of its
bodies. {"error": REASON} where that fails.
"""


class NormCase:
    def __init__(self, case, inputs, parameters):
        self.x, self.dy = inputs["x"].requires_grad_(), inputs["dy"]
        self.parameters = parameters
        facts = case["norm"]
        self.norm = NORMS[facts["name"]](Norm(facts, "norm/", parameters, self.x.shape))
        self.steps = case["steps"]
        self.bodies = [self.forward, self.both]

    def forward(self):
        return self.norm(self.x)

    def both(self):
        y = self.norm(self.x)
        return y, torch.autograd.grad(y, [self.x, *self.parameters.values()], self.dy)

    def values(self):
        for _ in range(self.steps):
            y, gradients = self.both()
        names = ["x", *self.parameters]
        return {"y": y} | {"gradient of " + n: g for n, g in zip(names, gradients)}


class StepCase:
    def __init__(self, case, inputs, parameters):
        self.image, self.label = inputs["image"], inputs["label"].long()
        for name, value in parameters.items():
            # F.linear takes (out, in).
            if name.endswith("/weight") and value.dim() == 2:
                parameters[name] = value.detach().t().contiguous().requires_grad_()
        self.parameters = list(parameters.values())
        self.network = NETWORKS[case["model"]]
        self.net = Network(case, parameters)
        self.optimizer = make_optimizer(case["optimizer"], self.parameters)
        self.bodies = [self.step]

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.network(self.net, self.image), self.label)
        loss.backward()
        self.optimizer.step()
        return loss

    def values(self):
        loss = self.step()
        squares = sum(p.grad.square().sum() for p in self.parameters)
        return {"loss": loss, "grad_norm": squares.sqrt()}


def read_tensor(facts):
    dtype = {"f32": torch.float32, "i32": torch.int32}[facts["dtype"]]
    count = 1
    for size in facts["shape"]:
        count *= size
    content = bytearray(sys.stdin.buffer.read(count * 4))
    value = torch.frombuffer(content, dtype=dtype).reshape(facts["shape"]).clone().to(DEVICE)
    return value.requires_grad_() if facts["is_parameter"] else value


def set_up(request):
    inputs, parameters = {}, {}
    for facts in request["tensors"]:
        (parameters if facts["is_parameter"] else inputs)[facts["name"]] = read_tensor(facts)
    case = request["case"]
    return (StepCase if "model" in case else NormCase)(case, inputs, parameters)


def probe(value):
    """At most 16 elements, evenly spaced."""
    flat = value.detach().flatten()
    count = min(16, len(flat))
    return [float(flat[i * len(flat) // count]) for i in range(count)]


def seconds_of(body, repeats):
    if DEVICE == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(repeats):
            body()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3 / repeats
    begin = time.perf_counter()
    for _ in range(repeats):
        body()
    return (time.perf_counter() - begin) / repeats


def sample_in_turns(bodies, rounds, repeats):
    samples = [[] for _ in bodies]
    for turn in range(-((rounds + 9) // 10), rounds):
        for body, seconds in zip(bodies, samples):
            time_taken = seconds_of(body, repeats)
            if turn >= 0:
                seconds.append(time_taken)
    return samples


def serve():
    case = None
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            if "case" in request:
                case = None  # gives its memory back first
                case = set_up(request)
                say({"values": {name: probe(v) for name, v in case.values().items()}})
            else:
                say({"seconds": sample_in_turns(case.bodies, request["rounds"],
                                                request["repeats"])})
        except (KeyError, RuntimeError, ValueError) as problem:
            reason = f"no {problem}" if isinstance(problem, KeyError) else str(problem)
            say({"error": " ".join(reason.split())})


serve()
