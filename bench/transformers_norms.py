"""Times training steps of a small Llama of Hugging Face transformers with its own RMS norms, and
with those of keel_norms.

usage: bench/transformers_norms.py [--repeats N] [--rows 4] [--length 128] [--width 256]
                                   [--layers 4] [--dtype float32] [--no-compile] [--kernel MODULE]

A step is forward, loss and backward, by one thread, in the processor's time, which other programs
on the machine move little. Every repeat times each candidate once, in turns; medians count, and
ratios to the library's own norms, eager: above 1 a candidate is faster. The network is made by
LlamaConfig, with random weights.

--kernel times the RMSNorm of another kernel repository, too: `kernels-community/rmsnorm`, which the
package `kernels` fetches, or the path of a local one. KEEL_NORM_LIBRARY and PYTHONPATH are as in
docs/norm-library.md."""
import argparse
import copy
import os
import pathlib
import statistics
import time

import torch
from norm_library import processor
from transformers import LlamaConfig, LlamaForCausalLM, __version__

from keel_norms import info
from keel_norms import torch as knn

VOCABULARY = 1024


def network(args):
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=args.width, use_cache=False,
                         intermediate_size=3 * args.width, num_hidden_layers=args.layers,
                         num_attention_heads=args.width // 32,
                         num_key_value_heads=args.width // 64)
    return LlamaForCausalLM(config).to(getattr(torch, args.dtype))


def kernelized(model, mapping):
    from kernels import Mode, kernelize, use_kernel_mapping
    with use_kernel_mapping(mapping, inherit_mapping=False):
        return kernelize(model, mode=Mode.TRAINING, device="cpu")


def repository(name):
    from kernels import LayerRepository, LocalLayerRepository
    path = pathlib.Path(name)
    if path.exists():
        return LocalLayerRepository(repo_path=path, layer_name="RMSNorm")
    return LayerRepository(name, layer_name="RMSNorm", version=1)


def candidates(args):
    theirs = network(args)
    made = {"transformers": theirs,
            "keel, converted": knn.convert_transformers(copy.deepcopy(theirs)),
            "keel, kernelized": kernelized(copy.deepcopy(theirs), knn.kernel_mapping())}
    if args.kernel:
        mapping = {"RMSNorm": {"cpu": repository(args.kernel)}}
        made[args.kernel] = kernelized(copy.deepcopy(theirs), mapping)
    if args.compiles:
        for name in ("transformers", "keel, kernelized"):
            made[f"{name}, compiled"] = torch.compile(copy.deepcopy(made[name]), fullgraph=True)
    return made


def step(model, ids):
    model.zero_grad(set_to_none=True)
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    return loss.item()


def medians(made, ids, repeats):
    """Losses, milliseconds a step, and how many times as fast as the first: medians."""
    losses = {}
    for name, model in made.items():
        for _ in range(2):
            losses[name] = step(model, ids)
    times = {name: [] for name in made}
    for _ in range(repeats):
        for name, model in made.items():
            start = time.process_time()
            step(model, ids)
            times[name].append(1e3 * (time.process_time() - start))
    first = times[next(iter(made))]
    return {name: (losses[name], statistics.median(own),
                   statistics.median(f / t for f, t in zip(first, own)))
            for name, own in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = {"repeats": 9, "rows": 4, "length": 128, "width": 256, "layers": 4}
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--no-compile", dest="compiles", action="store_false")
    parser.add_argument("--kernel")
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{processor()}. {info()}; PyTorch {torch.__version__}, transformers {__version__}. "
          f"Load at the start: {os.getloadavg()[0]:.1f}.\n")
    made = candidates(args)
    ids = torch.randint(VOCABULARY, (args.rows, args.length))
    print("| norms | loss | a step, ms | times as fast |\n|---|---|---|---|")
    for name, (loss, milliseconds, ratio) in medians(made, ids, args.repeats).items():
        print(f"| {name} | {loss:.6f} | {milliseconds:.0f} | {ratio:.2f} |", flush=True)
    print(f"\nLoad at the end: {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
