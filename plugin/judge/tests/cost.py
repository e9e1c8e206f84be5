"""Prints what judging costs: processor time and memory beside those of the step, for three sizes.

usage: cost.py [SIZE SHARE]

Each row is measured in processes of its own: the step alone, all of it judged, 1 % of its ops, and
every 100th step (SHARE = 100) for the small size."""
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
SHARES = {"small": (0.0, 1.0, 0.01, 100.0), "middle": (0.0, 1.0, 0.01),
          "large": (0.0, 1.0, 0.01)}


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


def measured(size, share):
    """Seconds of the processor for a step, and the largest memory in MB."""
    model, step = encoder(size)
    step()
    # A sample of whole steps needs many of them.
    rounds = 1 if share == 1 else max(ROUNDS[size], int(share))
    options = {"every": int(share)} if share > 1 else {"share": share}
    began = time.process_time()
    if share:
        with keel_judge.judge(model, norms=False, **options) as report:
            for _ in range(rounds):
                step()
        assert report.ok, report.text()
    else:
        for _ in range(rounds):
            step()
    seconds = (time.process_time() - began) / rounds
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    if len(sys.argv) == 3:
        print(*measured(sys.argv[1], float(sys.argv[2])))
        return
    for size in SIZES:
        rows = [subprocess.run([sys.executable, __file__, size, str(share)], check=True, text=True,
                               capture_output=True).stdout.split() for share in SHARES[size]]
        (plain, memory), *judged = [tuple(map(float, row)) for row in rows]
        print(f"| {size} | {plain:.3f} s | {memory:.0f} MB | " + " | ".join(
            f"{seconds / plain:.1f} | {used - memory:.0f} MB" for seconds, used in judged) + " |",
            flush=True)


if __name__ == "__main__":
    assert settings.ROOT
    main()
