"""Times forward and backward of keel_norms.torch beside PyTorch's, eager and compiled.

usage: bench/norm_library.py [--repeats N] [--norms LayerNorm,...] [--shapes 8x400,...]
                             [--threads 1,2] [--no-compile] [--layers MODULE] [--dtype bfloat16]

Layer, RMS, group and batch norm stand beside torch.nn; PowerNorm and AdaNorm, which PyTorch
lacks, beside their composition. Every repeat times each of them once, in turns; a table has medians
and ratios: above 1 keel is faster. With one thread the time is the processor's, which other
programs on the machine move little; with several it is the clock's. KEEL_NORM_LIBRARY and
PYTHONPATH are as in docs/norm-library.md.

--layers times the RMSNorm of a kernel that is written as model hubs want it: a class in
MODULE.layers, without constructor, that reads `weight` and `variance_epsilon`. MODULE is one that
Python can import, or `kernels-community/rmsnorm`, which the package `kernels` fetches."""
import argparse
import importlib
import os
import pathlib
import shutil
import statistics
import time

import torch
from torch import nn

from keel_norms import info
from keel_norms import torch as knn

SHAPES = "8x400,64x512,4096x512,32768x512"
GROUPS = 8


class ComposedAdaNorm(nn.Module):
    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        xhat = (x - mean) / (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
        return (1 - 0.1 * xhat).detach() * xhat


class PowerNormFunction(torch.autograd.Function):
    """PowerNorm as the paper's release computes it behind its warm-up."""

    @staticmethod
    def forward(ctx, x, weight, bias, *state):
        psi2, nu = state
        square = x.square().mean(0)
        xhat = x * (psi2 + 1e-5).rsqrt()
        ctx.save_for_backward(xhat, weight, square)
        ctx.nu = nu
        psi2.copy_(0.9 * psi2 + 0.1 * square)
        return xhat * weight + bias

    @staticmethod
    def backward(ctx, dy):
        xhat, weight, square = ctx.saved_tensors
        g = dy * weight
        dx = (g - ctx.nu * xhat) * (square + 1e-5).rsqrt()
        ctx.nu.copy_(ctx.nu * (1 - 0.1 * xhat.square().mean(0)) + 0.1 * (g * xhat).mean(0))
        return dx, (dy * xhat).sum(0), dy.sum(0), None, None


class ComposedPowerNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("psi2", torch.ones(width))
        self.register_buffer("nu", torch.zeros(width))

    def forward(self, x):
        return PowerNormFunction.apply(x, self.weight, self.bias, self.psi2, self.nu)


# Keel's module and the other one, by width.
NORMS = {
    "LayerNorm": (knn.LayerNorm, nn.LayerNorm),
    "RMSNorm": (knn.RMSNorm, nn.RMSNorm),
    "GroupNorm": (lambda width: knn.GroupNorm(GROUPS, width),
                  lambda width: nn.GroupNorm(GROUPS, width)),
    "BatchNorm1d": (knn.BatchNorm1d, nn.BatchNorm1d),
    "PowerNorm": (knn.PowerNorm, ComposedPowerNorm),
    "AdaNorm": (knn.AdaNorm, lambda width: ComposedAdaNorm()),
}


def hub_rms_norm(module, width):
    """The RMSNorm of a module of such a kernel, with the numbers of torch.nn's."""
    layer, own = module.layers.RMSNorm(), nn.RMSNorm(width, eps=1e-6)
    layer.weight, layer.variance_epsilon = own.weight, own.eps
    x = torch.randn(3, width)
    torch.testing.assert_close(layer(x), own(x))
    return layer


def load_hub(name):
    if name is None:
        return None
    if "/" in name:
        from kernels import get_kernel
        return get_kernel(name)
    return importlib.import_module(name)


class Candidate:
    def __init__(self, module, shape, dtype):
        self.module = module.to(dtype)
        self.x = torch.randn(shape, dtype=dtype, requires_grad=True)
        self.dy = torch.randn(shape, dtype=dtype)
        self.inputs = [self.x, *module.parameters()]

    def step(self):
        return torch.autograd.grad(self.module(self.x), self.inputs, self.dy)

    def seconds(self, calls):
        clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
        start = clock()
        for _ in range(calls):
            self.step()
        return (clock() - start) / calls


def candidates(name, shape, args):
    (ours, theirs), width = NORMS[name], shape[1]
    modules = {"keel": ours(width), "eager": theirs(width)}
    if args.hub is not None and name == "RMSNorm" and width % 16 == 0:
        modules["hub"] = hub_rms_norm(args.hub, width)
    if args.compiles:
        torch._dynamo.reset()
        modules["compiled"] = torch.compile(theirs(width))
    dtype = getattr(torch, args.dtype)
    made = {kind: Candidate(module, shape, dtype) for kind, module in modules.items()}
    for candidate in made.values():
        for _ in range(3):
            candidate.step()
    return made


def medians(made, rows, repeats):
    """Microseconds a step, and how many times keel is faster: medians over the repeats."""
    calls = max(1, min(50, 20000 // rows))
    times = {kind: [] for kind in made}
    for _ in range(repeats):
        for kind, candidate in made.items():
            times[kind].append(1e6 * candidate.seconds(calls))
    ratios = {kind: statistics.median(t / k for t, k in zip(times[kind], times["keel"]))
              for kind in made}
    return {kind: statistics.median(ts) for kind, ts in times.items()}, ratios


def cell(values, kind, form):
    return form.format(values[kind]) if kind in values else "-"


def print_table(threads, args):
    torch.set_num_threads(threads)
    print(f"\n## {threads} thread{'s' if threads > 1 else ''}\n")
    kinds = ["eager", "compiled", *(["hub"] if args.hub is not None else [])]
    print(f"| norm | shape | {' | '.join(f'{kind}, us' for kind in ('keel', *kinds))} | "
          f"{' | '.join(f'{kind} / keel' for kind in kinds)} |")
    print("|---" * (3 + 2 * len(kinds)) + "|", flush=True)
    for name in args.norms.split(","):
        for shape in args.shapes.split(","):
            rows, width = map(int, shape.split("x"))
            made = candidates(name, (rows, width), args)
            times, ratios = medians(made, rows, args.repeats)
            row = [cell(times, kind, "{:.0f}") for kind in ("keel", *kinds)]
            row += [cell(ratios, kind, "{:.2f}") for kind in kinds]
            print(f"| {name} | {shape} | {' | '.join(row)} |", flush=True)


def print_overhead(repeats):
    """One thread's time for a forward of 8x400 without gradients, where the call is most of it."""
    torch.set_num_threads(1)
    x = torch.randn(8, 400)
    kinds = {"keel": knn.LayerNorm(400), "torch.nn": nn.LayerNorm(400)}
    times = {kind: [] for kind in kinds}
    with torch.no_grad():
        for _ in range(repeats):
            for kind, module in kinds.items():
                start = time.process_time()
                for _ in range(200):
                    module(x)
                times[kind].append(1e6 * (time.process_time() - start) / 200)
    print("\nProcessor time of a forward of LayerNorm at 8x400 without gradients: "
          + ", ".join(f"{kind} {statistics.median(ts):.1f} us" for kind, ts in times.items()))


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    facts = dict(line.split("\t: ", 1) for line in lines if "\t: " in line)
    facts |= dict((k.strip(), v) for k, v in facts.items())
    return (f"{facts.get('model name')}, family {facts.get('cpu family')}, model "
            f"{facts.get('model')}, {os.cpu_count()} processors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--norms", default=",".join(NORMS))
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--no-compile", dest="compiles", action="store_false")
    parser.add_argument("--layers")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    args = parser.parse_args()
    args.hub = load_hub(args.layers)
    args.compiles = args.compiles and bool(shutil.which("c++") or shutil.which("g++"))
    torch.manual_seed(0)
    print(f"{processor()}. {info()}; PyTorch {torch.__version__}. Load at the start: "
          f"{os.getloadavg()[0]:.1f}.")
    print_overhead(args.repeats)
    for threads in map(int, args.threads.split(",")):
        print_table(threads, args)
    print(f"\nLoad at the end: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
