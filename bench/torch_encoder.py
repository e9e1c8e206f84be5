#!/usr/bin/env python3
"""Trains keel's text_classifier and a torch.nn.TransformerEncoder with keel_norms.torch's norms by
one recipe on the same sentences of RT, several seeds each, and tests whether they differ.

    python3 bench/torch_encoder.py --data DIR --keel build/keel --out FOLDER --seeds 3

A seed draws a split of the sentences, which both programs read from the same files, and the first
weights, dropout and order of each. Network and recipe are those of models/text_classifier
(laptop.toml) with --layers layers. The two are said to agree where a paired t test over the seeds,
two-sided at 5 %, finds no difference of the test accuracies. Both take the weights that were best
on validation. What has a result in FOLDER is not trained again."""

import argparse
import json
import lzma
import math
import pathlib
import random
import subprocess
import sys

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "plugin/python/example"))
import encoder as example  # noqa: E402 its folder is no package
from keel_norms import torch as knn  # noqa: E402

WIDTH, HEADS, HIDDEN, DROPOUT, TOKENS = 128, 4, 512, 0.2, 4096
RATE, WARMUP = 5e-4, 100
SIZES = {"valid": 964, "test": 1089, "train": 8608}  # as models/text_classifier splits RT
NORMS = {"powernorm": "powernorm", "adanorm": "adanorm{C=0.3}", "layernorm": "layernorm"}
# The 97.5 % points of Student's t by degrees of freedom.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571}
PAD, UNKNOWN = 0, 1


def write_split(data, folder, seed):
    """RT as train.tsv, valid.tsv and test.tsv."""
    rows = []
    for kind in ("neg", "pos"):
        with lzma.open(data / f"sentences/rt-polarity.{kind}.xz", "rt", encoding="cp1252") as file:
            rows += [f"{kind}\t{' '.join(line.lower().split())}\n" for line in file]
    random.Random(seed).shuffle(rows)
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in SIZES.items():
        (folder / f"{name}.tsv").write_text("".join(rows[:count]), encoding="utf-8")
        rows = rows[count:]


def read_rows(folder, name):
    lines = (folder / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [(text.split(), int(label == "pos")) for label, text in
            (line.split("\t") for line in lines)]


def numbers_of(rows):
    """Words that occur twice or more; all others are unknown."""
    counts = {}
    for words, _ in rows:
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    kept = sorted(word for word, count in counts.items() if count >= 2)
    return {word: UNKNOWN + 1 + i for i, word in enumerate(kept)}


def batches_of(rows, number_of, dice):
    """Sentences of alike lengths, TOKENS words with padding at most."""
    rows = sorted(rows, key=lambda row: (len(row[0]), dice.random()))
    found, part = [], []
    for row in rows:
        if (len(part) + 1) * len(row[0]) > TOKENS:
            found.append(part)
            part = []
        part.append(row)
    return [tensors_of(part, number_of) for part in [*found, part]]


def tensors_of(rows, number_of):
    words = torch.full((len(rows), max(len(sentence) for sentence, _ in rows)), PAD)
    for place, (sentence, _) in zip(words, rows):
        place[:len(sentence)] = torch.tensor([number_of.get(w, UNKNOWN) for w in sentence])
    return words, torch.tensor([label for _, label in rows])


def sines(length):
    half = WIDTH // 2
    angles = torch.arange(length)[:, None] * torch.exp(
        -torch.arange(half) * math.log(10000) / (half - 1))
    return torch.cat([angles.sin(), angles.cos()], 1)


class Classifier(nn.Module):
    """models/text_classifier/model.h on torch.nn.TransformerEncoder, its norms converted."""

    def __init__(self, words, norm, layers):
        super().__init__()
        self.embedding = nn.Embedding(words, WIDTH, PAD)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, DROPOUT, batch_first=True,
                                           norm_first=True)
        layer.self_attn.dropout = 0.0  # keel's attention has none
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(WIDTH),
                                             enable_nested_tensor=False)
        self.dropout, self.head, self.mask = nn.Dropout(DROPOUT), nn.Linear(WIDTH, 2), [None]
        self.start()
        knn.convert(self.encoder, {nn.LayerNorm: {
            "layernorm": knn.LayerNorm, "adanorm": lambda old: knn.AdaNorm(WIDTH, C=0.3),
            "powernorm": lambda old: example.Masked(knn.PowerNorm(WIDTH, heads=1), self.mask)
        }[norm]})

    def start(self):
        """The first weights of keel."""
        nn.init.normal_(self.embedding.weight, std=WIDTH ** -0.5)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2 and not name.startswith("embedding"):
                for part in parameter.chunk(3) if "in_proj" in name else [parameter]:
                    nn.init.xavier_uniform_(part)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, words):
        mask = self.mask[0] = words != PAD
        x = self.embedding(words) * WIDTH ** 0.5 + sines(words.shape[1])
        y = self.encoder(self.dropout(x), src_key_padding_mask=~mask) * mask[..., None]
        return self.head(y.sum(1) / mask.sum(1, keepdim=True))


def train_epoch(model, optimizer, warmup, batches):
    model.train()
    for words, label in batches:
        loss = nn.functional.cross_entropy(model(words), label)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        warmup.step()


def by_torch(args, norm, seed, folder):
    """Validation and test accuracy of every epoch."""
    torch.manual_seed(seed)
    dice = random.Random(seed)
    rows = read_rows(folder, "train")
    number_of = numbers_of(rows)
    valid, test = (batches_of(read_rows(folder, name), number_of, dice)
                   for name in ("valid", "test"))
    model = Classifier(len(number_of) + 2, norm, args.layers)
    optimizer = torch.optim.Adam(model.parameters(), RATE, (0.9, 0.998))
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: min(1, (t + 1) / WARMUP))
    epochs = []
    for _ in range(args.epochs):
        batches = batches_of(rows, number_of, dice)
        dice.shuffle(batches)
        train_epoch(model, optimizer, warmup, batches)
        epochs.append([example.accuracy(model, valid), example.accuracy(model, test)])
    return {"test": max(epochs)[1], "epochs": epochs}


def by_keel(args, norm, seed, folder):
    run = args.out / f"keel-{norm}-{seed}"
    options = {"model.task": "files", "model.layers": args.layers, "train.epochs": args.epochs,
               "model.init": "xavier"}
    subprocess.run([args.keel, "train", "text_classifier", "--recipe", "laptop", "--data", folder,
                    "--norm", NORMS[norm], "--seed", str(seed), "--threads", "1", "--quiet",
                    "--out", run, *[word for key, value in options.items()
                                    for word in ("--set", f"{key}={value}")]],
                   check=True, stdout=subprocess.DEVNULL)
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return {"test": result["best_test"]["accuracy"], "result": result}


def accuracy_of(args, train, norm, seed):
    file = args.out / f"{train.__name__}-{norm}-{seed}.json"
    if not file.exists():
        folder = args.out / f"split-{seed}"
        write_split(args.data, folder, seed)
        file.write_text(json.dumps(train(args, norm, seed, folder)), encoding="utf-8")
    return json.loads(file.read_text(encoding="utf-8"))["test"]


def verdict(ours, theirs):
    """The paired t test: the mean difference, what it may be off by, and what follows."""
    gaps = [a - b for a, b in zip(ours, theirs)]
    mean = sum(gaps) / len(gaps)
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1))
    reach = STUDENT[len(gaps) - 1] * spread / math.sqrt(len(gaps))
    return f"{mean:+.2f} +- {reach:.2f}: " + (
        "no difference found" if abs(mean) <= reach else "different")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("data", "keel", "out"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    for name, default in (("seeds", 3), ("layers", 2), ("epochs", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--norms", default="powernorm,adanorm")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.keel = args.keel.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    norms = args.norms.split(",")
    found = {(norm, train): [] for norm in norms for train in (by_torch, by_keel)}
    for seed in range(1, args.seeds + 1):
        for norm, train in found:
            found[norm, train].append(accuracy_of(args, train, norm, seed))
            print(f"{norm}, seed {seed}, {train.__name__}: {found[norm, train][-1]:.2f} %",
                  flush=True)
    if args.seeds < 2:
        return
    for norm in norms:
        print(f"{norm}: PyTorch less keel, {verdict(found[norm, by_torch], found[norm, by_keel])}")


if __name__ == "__main__":
    main()
