"""Prints what judging costs: processor time and memory beside those of the step, for four sizes.

usage: cost.py [SIZE OPTION=VALUE]
       cost.py turns [OPTION=VALUE]

Separate processes measure each row: only the step, all of it judged, 1 % of its ops,
every 100th step for the small size, and with a cost of 0.2. `turns` measures a sampled run of a
step of 0.1 s or so, by default with cost=0.2: TURNS times STEPS steps without the judge, then as
many with it, in one process, which tells the ratio on a busy machine, too."""
import resource
import statistics
import subprocess
import sys
import time

import settings
import torch
from torch import nn

import keel_judge

# (width, layers, sequences, tokens)
SIZES = {"small": (64, 2, 8, 32), "between": (192, 2, 8, 128),
         "middle": (256, 2, 8, 128), "large": (512, 3, 8, 128)}
ROUNDS = {"small": 400, "between": 100, "middle": 60, "large": 20}
TURNS, STEPS = 5, 150
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


def options_of(how):
    name, value = how.split("=")
    return {name: int(value) if name == "every" else float(value)}


def seconds_of(step, rounds):
    """Of the processor, for a step."""
    began = time.process_time()
    for _ in range(rounds):
        step()
    return (time.process_time() - began) / rounds


def in_turns(how):
    """Prints each turn, and the medians."""
    model, step = encoder("between")
    step()
    turns, judged = [], 0
    for _ in range(TURNS):
        plain = seconds_of(step, STEPS)
        began = time.process_time()
        with keel_judge.judge(model, norms=False, **options_of(how)) as report:
            seconds_of(step, STEPS)
        turns.append((plain, (time.process_time() - began) / STEPS / plain))
        assert report.ok, report.text()
        judged += report.judged
        print(f"{turns[-1][0]:.3f} s, {turns[-1][1]:.3f} times, {judged} ops judged", flush=True)
    plain, ratio = map(statistics.median, zip(*turns))
    print(f"median: {plain:.3f} s, {ratio:.3f} times")


def measured(size, how):
    """Seconds of the processor for a step, and the largest memory in MB."""
    model, step = encoder(size)
    step()
    options = options_of(how)
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
    if sys.argv[1:2] == ["turns"]:
        in_turns(*sys.argv[2:] or ["cost=0.2"])
        return
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
