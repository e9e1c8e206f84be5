"""Trains a Transformer encoder of PyTorch, its norms converted to keel's, to tell good sentences
from bad ones, and prints the accuracy on sentences that it has not seen.

usage: encoder.py [--norm layernorm|adanorm|powernorm] [--epochs N] [--layers N] [--width N]
                  [--lr RATE] [--seed N]

The sentences are film reviews, rt-polarity.pos and .neg, in the folder `sentences` of the folder
that KEEL_DATA names; without it, sentences of synthetic words, some of them good and some bad."""
import argparse
import lzma
import os
import pathlib
import random

import torch
from keel_norms import torch as knn
from torch import nn

PAD, UNKNOWN = 0, 1


def synthetic(count, seed=0):
    """Sentences of words with their labels; the label says whether the good words prevail."""
    dice = random.Random(seed)
    found = []
    while len(found) < count:
        words, sum_ = [], 0
        for _ in range(dice.randint(3, 9)):
            sign = dice.choice((-1, 0, 0, 1))
            words.append({-1: "bad", 0: "word", 1: "good"}[sign] + str(dice.randint(0, 9)))
            sum_ += sign
        if sum_ != 0:
            found.append((words, int(sum_ > 0)))
    return found


def film_reviews(folder):
    found = []
    for label, kind in enumerate(("neg", "pos")):
        with lzma.open(folder / f"rt-polarity.{kind}.xz", "rt", encoding="cp1252") as file:
            found += [(line.split(), label) for line in file]
    random.Random(0).shuffle(found)
    return found


def sentences():
    """Training, validation and test."""
    folder = pathlib.Path(os.environ.get("KEEL_DATA", "")) / "sentences"
    is_there = (folder / "rt-polarity.pos.xz").exists()
    rows = film_reviews(folder) if is_there else synthetic(1000)
    tenth = len(rows) // 10
    return rows[2 * tenth:], rows[tenth:2 * tenth], rows[:tenth]


class Batches:
    """Rows as tensors of words, in batches of alike lengths."""

    def __init__(self, rows, number_of, size=64):
        rows = sorted(rows, key=lambda row: len(row[0]))
        self.batches = []
        for first in range(0, len(rows), size):
            part = rows[first:first + size]
            words = torch.full((len(part), len(part[-1][0])), PAD)
            for row, (sentence, _) in zip(words, part):
                row[:len(sentence)] = torch.tensor([number_of.get(w, UNKNOWN) for w in sentence])
            self.batches.append((words, torch.tensor([label for _, label in part])))


class Masked(nn.Module):
    """A norm over the batch that leaves padding out. `mask` is the one list that all of them share:
    the network puts the mask of the batch into it."""

    eps = float("nan")  # so that PyTorch's fast path for evaluation does not pass the norm by

    def __init__(self, norm, mask):
        super().__init__()
        self.norm, self.mask = norm, mask

    def forward(self, x):
        return self.norm(x, self.mask[0])


class Classifier(nn.Module):
    def __init__(self, words, args):
        super().__init__()
        self.embedding = nn.Embedding(words, args.width, PAD)
        self.positions = nn.Parameter(0.02 * torch.randn(512, args.width))
        layer = nn.TransformerEncoderLayer(args.width, 4, 4 * args.width, args.dropout,
                                           batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, args.layers, nn.LayerNorm(args.width),
                                             enable_nested_tensor=False)
        self.dropout, self.head = nn.Dropout(args.dropout), nn.Linear(args.width, 2)
        self.mask = [None]
        knn.convert(self.encoder, {nn.LayerNorm: {
            "layernorm": knn.LayerNorm, "adanorm": lambda old: knn.AdaNorm(args.width, C=0.3),
            "powernorm": lambda old: Masked(knn.PowerNorm(args.width), self.mask)}[args.norm]})

    def forward(self, words):
        mask = self.mask[0] = words != PAD
        x = self.dropout(self.embedding(words) + self.positions[:words.shape[1]])
        y = self.encoder(x, src_key_padding_mask=~mask) * mask[..., None]
        return self.head(y.sum(1) / mask.sum(1, keepdim=True))


@torch.no_grad()
def accuracy(model, batches):
    model.eval()
    right = sum(int((model(words).argmax(1) == label).sum()) for words, label in batches)
    return 100 * right / sum(len(label) for _, label in batches)


def train(args):
    """The test accuracy of the epoch that was best on validation."""
    torch.manual_seed(args.seed)
    rows = sentences()
    vocabulary = sorted({word for sentence, _ in rows[0] for word in sentence})
    number_of = {word: UNKNOWN + 1 + i for i, word in enumerate(vocabulary)}
    training, validation, test = (Batches(part, number_of).batches for part in rows)
    model = Classifier(len(vocabulary) + 2, args)
    optimizer = torch.optim.Adam(model.parameters(), args.lr)
    best = (0, 0)
    for epoch in range(args.epochs):
        model.train()
        total = 0
        for i in torch.randperm(len(training)).tolist():
            words, label = training[i]
            loss = nn.functional.cross_entropy(model(words), label)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        found = accuracy(model, validation), accuracy(model, test)
        best = max(best, found)
        print(f"{args.norm} epoch {epoch + 1}: loss {total / len(training):.3f}, validation "
              f"{found[0]:.2f} %, test {found[1]:.2f} %", flush=True)
    return best[1]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--norm", default="powernorm",
                        choices=("layernorm", "adanorm", "powernorm"))
    for name, default in (("epochs", 8), ("layers", 2), ("width", 32), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--dropout", type=float, default=0.1)
    args = parser.parse_args(arguments)
    found = train(args)
    print(f"{args.norm}: test accuracy {found:.2f} %")
    return found


if __name__ == "__main__":
    main()
