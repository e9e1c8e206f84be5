"""The requests, each a line of JSON on standard input, and their answers, each such a line.

{"case": {...}, "modes": [MODE, ...], "tensors": [{"name", "dtype", "shape", "is_parameter"}, ...]},
with the tensors' bytes right behind it, sets up a case in each of these ways:

    usual           as norms.py and networks.py have it: PyTorch's operation by operation, JAX's
                    under jax.jit
    plain           a norm composed of operations as its formulas read
    channels_last   a step, with images and weights of convolutions stored channels last

and PyTorch's also in these:

    compiled        by torch.compile, of plain operations where it is a norm
    graph           recorded as a CUDA graph and replayed
    compiled_graph  a compiled step, recorded
    autocast        a step, its forward under autocast to bf16
    autocast_compiled  the same, compiled

The answer {"modes": {MODE: {"values": {NAME: [...]}}, ...}} holds elements of what it computes, or
for a mode {"reason": TEXT} why there is none. {"rounds": R, "repeats": N, "modes": [MODE, ...]}
times them: {"seconds": [[...], ...]}, for each body of the first mode, then of the second, ....
{"peak": true, "modes": [MODE, ...]} answers {"bytes": [...]}, the memory that the last body of each
mode adds.
{"error": TEXT} where all fails.

The library's own files, which stand before this one, have read_tensor, NormCase, StepCase,
results_of, probe and forget.
"""


def text_of(problem):
    """The first lines of what went wrong, in one."""
    text = f"no {problem}" if isinstance(problem, KeyError) else str(problem)
    return " ".join(text.split())[:300] or type(problem).__name__


def expect_no_dropout(options):
    for name, value in options.items():
        if name.endswith("dropout") and float(value) > 0:
            raise ValueError(f"expected model.{name}=0, for a peer leaves out other numbers, got "
                             f"{value}")


def read_tensors(request):
    inputs, parameters = {}, {}
    for facts in request["tensors"]:
        (parameters if facts["is_parameter"] else inputs)[facts["name"]] = read_tensor(facts)
    return inputs, parameters


def set_up(request):
    """The cases that can be, by mode, and the answer."""
    given, case = read_tensors(request), request["case"]
    make = StepCase if "model" in case else NormCase
    cases, answers = {}, {}
    for mode in request["modes"]:
        try:
            made = make(case, mode, *given)
            results = results_of(made, make, case, mode, given)
            values = {name: probe(v) for name, v in results.items()}
            cases[mode], answers[mode] = made, {"values": values}
        except Exception as problem:  # compilers fail in many ways
            answers[mode] = {"reason": text_of(problem)}
    return cases, {"modes": answers}


def seconds_of(body, repeats):
    if DEVICE == "cuda":
        return sum(device_seconds(body) for _ in range(repeats)) / repeats
    begin = time.perf_counter()
    for _ in range(repeats):
        body()
    return (time.perf_counter() - begin) / repeats


def sample_in_turns(bodies, rounds, repeats):
    samples = [[] for _ in bodies]
    for turn in range(-1 - (rounds + 9) // 10, rounds):
        for body, seconds in zip(bodies, samples):
            time_taken = seconds_of(body, repeats)
            if turn >= 0:
                seconds.append(time_taken)
    return samples


def status_bytes(name):
    """A line of /proc/self/status, such as VmHWM."""
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name + ":"))


def peak_growth(case):
    """The most bytes in use during the case's last body beyond those in use before."""
    case.drop()
    gc.collect()
    if DEVICE == "cuda":
        return device_growth(case.bodies[-1])
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w", encoding="utf-8") as refs:
        refs.write("5")  # the peak begins again
    before = status_bytes("VmRSS")
    case.bodies[-1]()
    return status_bytes("VmHWM") - before


def serve():
    cases = {}
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            if "case" in request:
                cases = {}
                forget()
                cases, answer = set_up(request)
                say(answer)
            elif "peak" in request:
                say({"bytes": [peak_growth(cases[mode]) for mode in request["modes"]]})
            else:
                bodies = [body for mode in request["modes"] for body in cases[mode].bodies]
                say({"seconds": sample_in_turns(bodies, request["rounds"], request["repeats"])})
        except (KeyError, RuntimeError, ValueError) as problem:
            say({"error": text_of(problem)})


serve()
