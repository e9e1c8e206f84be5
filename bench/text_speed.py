#!/usr/bin/env python3
"""Times how fast a trained char_lm writes text, beside a greedy loop of PyTorch with a cache.

    python3 bench/text_speed.py build/keel RUN --prompt TEXT --symbols 2000 --threads 1

Both write the same text by the same weights: PyTorch keeps the keys and values of the symbols in
the memory and computes those of one new symbol at a time. The time of keel is that of
`keel predict` less that of a text of one symbol; that of PyTorch begins after the first symbol.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import time
import tomllib

import torch
import torch.nn.functional as F


def read_checkpoint(path):
    """The parameters and the notes of a safetensors file."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        head = json.loads(file.read(size))
        content = bytearray(file.read())
    notes = head.pop("__metadata__")
    values = {}
    for name, facts in head.items():
        first, last = facts["data_offsets"]
        if facts["dtype"] == "F32" and last > first:
            value = torch.frombuffer(content[first:last], dtype=torch.float32)
            values[name] = value.reshape(facts["shape"]).clone()
    return values, notes


class Writer:
    """A Transformer-XL that takes a symbol at a time; norms are layer norms after the sublayers."""

    def __init__(self, values, options):
        self.values, self.heads, self.width = values, options["heads"], options["width"]
        self.layers, self.memory = options["layers"], options["evaluation_memory"]
        if options["norm"] != "layernorm" or options["place"] != "post" or options["clamp"]:
            sys.exit("text_speed: expected layernorm, place=post and clamp=0")
        rates = 10000.0 ** (-torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
        distances = torch.arange(self.memory, -1, -1, dtype=torch.float64)
        angles = torch.outer(distances, rates)
        sines = torch.cat([angles.sin(), angles.cos()], 1).float()
        self.distances = [self.in_heads(sines @ values[f"layer{i}/attention/distance/weight"])
                          for i in range(1, self.layers + 1)]
        self.u, self.w = (self.in_heads(values[name].reshape(1, -1)) for name in ("u", "w"))
        self.kept = [None] * self.layers

    def in_heads(self, x):
        """(symbols, width) as (heads, symbols, width / heads)."""
        return x.view(len(x), self.heads, -1).transpose(0, 1)

    def attention(self, layer, x):
        name, values = f"layer{layer + 1}/attention/", self.values
        q, k, v = (self.in_heads(x @ values[f"{name}{part}/weight"]) for part in "qkv")
        if self.kept[layer] is not None:
            old_keys, old_values = self.kept[layer]
            k, v = torch.cat([old_keys, k], 1), torch.cat([old_values, v], 1)
        self.kept[layer] = k[:, -self.memory:], v[:, -self.memory:]
        p = self.distances[layer][:, -k.shape[1]:]
        scores = (q + self.u) @ k.transpose(1, 2) + (q + self.w) @ p.transpose(1, 2)
        y = (scores / math.sqrt(self.width // self.heads)).softmax(2) @ v
        return y.transpose(0, 1).reshape(1, -1) @ values[name + "out/weight"]

    def normed(self, name, x):
        gain, bias = self.values[name + "/gain"], self.values[name + "/bias"]
        return F.layer_norm(x, x.shape[1:], gain, bias)

    def feed_forward(self, name, x):
        values = self.values
        hidden = (x @ values[name + "/1/weight"] + values[name + "/1/bias"]).relu()
        return hidden @ values[name + "/2/weight"] + values[name + "/2/bias"]

    def __call__(self, symbol):
        """The likeliest next symbol."""
        table = self.values["embedding/table"]
        x = table[symbol][None] * math.sqrt(self.width)
        for layer in range(self.layers):
            name = f"layer{layer + 1}"
            x = self.normed(name + "/attention/norm", x + self.attention(layer, x))
            y = self.feed_forward(name + "/feed_forward", x)
            x = self.normed(name + "/feed_forward/norm", x + y)
        return int((x @ table.t() + self.values["softmax/bias"]).argmax())


def written_by_torch(values, options, prompt, count):
    """The symbols, and the seconds from the first of them to the last."""
    with torch.inference_mode():
        writer = Writer(values, options)
        for symbol in prompt:
            following = writer(symbol)
        text = [following]
        start = time.perf_counter()
        while len(text) < count:
            text.append(writer(text[-1]))
    return text, time.perf_counter() - start


def written_by_keel(args, count):
    command = [args.keel, "predict", args.run, "--prompt", args.prompt, "--tokens", str(count),
               "--temperature", "0", "--threads", str(args.threads)]
    start = time.perf_counter()
    text = subprocess.run(command, check=True, capture_output=True).stdout
    return text, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("keel")
    parser.add_argument("run", help="a run of char_lm")
    parser.add_argument("--prompt", required=True)
    parser.add_argument("--symbols", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    run = pathlib.Path(args.run)
    options = tomllib.loads((run / "config.toml").read_text())["model"]
    values, notes = read_checkpoint(run / "checkpoints" / "best.safetensors")
    alphabet = bytes.fromhex(notes["asset.alphabet"].split()[-1])
    prompt = [alphabet.index(byte) for byte in os.fsencode(args.prompt)]
    ours, theirs = [], []
    for _ in range(args.rounds + 1):  # the first warms up
        text, whole = written_by_keel(args, args.symbols)
        ours.append(whole - written_by_keel(args, 1)[1])
        symbols, seconds = written_by_torch(values, options, prompt, args.symbols)
        theirs.append(seconds)
    told = text[:-1][-args.symbols:]  # less the end of line that `keel predict` adds
    other = bytes(alphabet[symbol] for symbol in symbols)
    same = next((i for i, (a, b) in enumerate(zip(told, other)) if a != b), len(other))
    ours, theirs = (statistics.median(seconds[1:]) for seconds in (ours, theirs))
    print(f"keel     {(args.symbols - 1) / ours:9.0f} symbols a second")
    print(f"PyTorch  {(args.symbols - 1) / theirs:9.0f} symbols a second, {torch.__version__}")
    print(f"keel's / PyTorch's = {theirs / ours:.2f}, {args.threads} threads; "
          f"the first {same} of {args.symbols} symbols are the same")


if __name__ == "__main__":
    main()
