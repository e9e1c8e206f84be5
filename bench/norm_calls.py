"""The cost of one call of keel_norms.torch beside PyTorch's own layer norm, and the share of the
guard against second derivatives in it.

usage: bench/norm_calls.py [--runs N] [--calls N]

LayerNorm of 8x400 with weight and bias in one thread, where the call is most of the time. The
candidates of a row take turns; the processor's time, the least of the runs. KEEL_NORM_LIBRARY and
PYTHONPATH are as in docs/norm-library.md."""
import argparse
import os
import time

import torch
from torch import nn

from keel_norms import info
from keel_norms import torch as knn
from keel_norms.torch import _autograd, _ops

ROWS, WIDTH = 8, 400
TEXT = "axes=1 eps=1e-05"


def function(guarded):
    """keel's autograd function as it is, or one that lets a second derivative pass in silence."""
    recipe = _autograd._row_recipe("layer_norm", (("axes", 1), ("eps", 1e-5)), *[torch.float32] * 3)
    kept = recipe.function

    class Unguarded(torch.autograd.Function):
        forward = kept.__dict__["forward"]

        @staticmethod
        def backward(ctx, dy):
            return _autograd._wanted(ctx, recipe.backward(*ctx.saved_tensors, dy,
                                                          recipe.backward_text))

    return kept if guarded else Unguarded


def calls():
    """The rows: what is called, and a function for each column."""
    x, dy = torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)
    wanting = x.clone().requires_grad_()
    weight, bias = torch.rand(WIDTH), torch.rand(WIDTH)
    ours, theirs = knn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
    keel_op, back_op = (_ops.OVERLOADS[name] for name in ("layer_norm", "layer_norm_backward"))
    torch_op = torch.ops.aten.native_layer_norm.default
    torch_back = torch.ops.aten.native_layer_norm_backward.default
    _, mean, rstd = keel_op(x, weight, bias, TEXT)
    shaped = mean[:, None], rstd[:, None]
    backward_text = TEXT + " wants_dbias=true"

    def without(run):
        def call():
            with torch.no_grad():
                return run(x)
        return call

    def step(run, inputs, **options):
        return lambda: torch.autograd.grad(run(wanting), inputs, dy, **options)

    def by(guarded):
        apply, own = function(guarded).apply, (ours.weight, ours.bias)
        return lambda x: apply(x, *own)

    of_ours, of_theirs = [wanting, *ours.parameters()], [wanting, *theirs.parameters()]
    yield "the op, without gradients", {
        "keel": lambda: keel_op(x, weight, bias, TEXT),
        "PyTorch": lambda: torch_op(x, (WIDTH,), weight, bias, 1e-5)}
    yield "its backward", {
        "keel": lambda: back_op(x, weight, mean, rstd, dy, backward_text),
        "PyTorch": lambda: torch_back(dy, x, (WIDTH,), *shaped, weight, bias, [True] * 3)}
    yield "the module, without gradients", {"keel": without(ours), "PyTorch": without(theirs)}
    yield "the module, with gradients", {"keel": lambda: ours(wanting),
                                         "PyTorch": lambda: theirs(wanting)}
    yield "forward and backward", {"keel": step(ours, of_ours), "PyTorch": step(theirs, of_theirs)}
    yield "the function, forward and backward", {
        "keel": step(by(True), of_ours), "keel, no guard": step(by(False), of_ours)}
    yield "the same with create_graph", {
        "keel": step(by(True), of_ours, create_graph=True),
        "keel, no guard": step(by(False), of_ours, create_graph=True),
        "PyTorch": step(theirs, of_theirs, create_graph=True)}


def least(candidates, runs, count):
    """Microseconds a call."""
    found = {name: [] for name in candidates}
    for _ in range(runs):
        for name, call in candidates.items():
            for _ in range(50):
                call()
            start = time.process_time()
            for _ in range(count):
                call()
            found[name].append(1e6 * (time.process_time() - start) / count)
    return {name: min(times) for name, times in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--calls", type=int, default=1000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    columns = ("keel", "keel, no guard", "PyTorch")
    print(f"{info()}; PyTorch {torch.__version__}, binding {knn.binding}. Load: "
          f"{os.getloadavg()[0]:.1f}.\n\n| call, us | {' | '.join(columns)} |")
    print("|---" * (1 + len(columns)) + "|", flush=True)
    for name, candidates in calls():
        times = least(candidates, args.runs, args.calls)
        print(f"| {name} | " + " | ".join(f"{times[c]:.1f}" if c in times else "-"
                                          for c in columns) + " |", flush=True)


if __name__ == "__main__":
    main()
