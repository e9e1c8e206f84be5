"""Prints what judging costs: processor time and memory beside those of the step, for three sizes.

usage: cost.py [SIZE OPTION=VALUE]

Separate processes measure each row: only the step, all of it judged, 1 % of its ops,
every 100th step for the small size, and with a cost of 0.2."""
import resource
import subprocess
import sys
import time

import settings
import torch
from torch import nn

import keel_judge

# (width, layers, sequences, tokens)
SIZES = {"small": (64, 2, 8, 32), "middle": (256, 2, 8, 128), "large": (512, 3, 8, 128)}
ROUNDS = {"small": 400, "middle": 60, "large": 20}
HOW = ("share=0", "share=1", "share=0.01", "every=100", "cost=0.2")


def encoder(size):
    width, layers, rows, tokens = SIZES[size]
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(rows, tokens, width)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return model, step


def measured(size, how):
    """Seconds of the processor for a step, and the largest memory in MB."""
    model, step = encoder(size)
    step()
    name, value = how.split("=")
    options = {name: int(value) if name == "every" else float(value)}
    # A sample of whole steps needs many of them.
    rounds = 1 if how == "share=1" else max(ROUNDS[size], options.get("every", 0))
    began = time.process_time()
    if how == "share=0":
        for _ in range(rounds):
            step()
    else:
        with keel_judge.judge(model, norms=False, **options) as report:
            for _ in range(rounds):
                step()
        assert report.ok, report.text()
    seconds = (time.process_time() - began) / rounds
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    if len(sys.argv) == 3:
        print(*measured(*sys.argv[1:]))
        return
    for size in SIZES:
        rows = {how: subprocess.run([sys.executable, __file__, size, how], check=True, text=True,
                                    capture_output=True).stdout.split()
                for how in HOW if size == "small" or how != "every=100"}
        plain, memory = map(float, rows.pop("share=0"))
        cells = [f"{float(seconds) / plain:.2f} times, {float(used) - memory:.0f} MB"
                 for seconds, used in rows.values()]
        print(f"| {size} | {plain:.3f} s, {memory:.0f} MB | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    assert settings.ROOT
    main()
