#!/usr/bin/env python3
"""Trains ResNet-20 in PyTorch by the recipe cifar10k of keel's cifar_resnet20, for comparison.

    python3 bench/torch_resnet20.py --data DIR --seed 1

DIR holds CIFAR-10's binary files, unpacked: data_batch*.bin and test_batch.bin. The last tenth of
the training rows, at most 5,000, validates. Pixels, shortcuts, first weights, moves, flips, rate
and weight decay are those of docs/tasks/cifar_resnet20.md. Only the random numbers are PyTorch's.
"""

import argparse
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
DEVIATION = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


class Block(nn.Module):
    """Two convolutions with a shortcut that has no parameters (He et al. 2016, option A)."""

    def __init__(self, before, channels, stride):
        super().__init__()
        self.stride, self.more = stride, (channels - before) // 2
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)))
        h = self.norm2(self.conv2(h))
        x = x[:, :, :: self.stride, :: self.stride]
        return F.relu(h + F.pad(x, (0, 0, 0, 0, self.more, self.more)))


def resnet20():
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    before = 16
    for stage in range(3):
        for block in range(3):
            layers.append(Block(before, 16 << stage, 2 if stage and not block else 1))
            before = 16 << stage
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight)
    nn.init.zeros_(net[-1].bias)
    return net


def rows(files):
    records = np.concatenate([np.fromfile(f, np.uint8).reshape(-1, 3073) for f in files])
    pictures = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy())
    return pictures, torch.from_numpy(records[:, 0].astype(np.int64))


def standardized(pictures):
    return (pictures.float() / 255 - MEAN) / DEVIATION


def moved_and_flipped(pictures, generator):
    """Each picture moved by -4 to 4 pixels, with black from outside; half of them flipped."""
    framed = F.pad(pictures, (4, 4, 4, 4))
    corners = torch.randint(0, 9, (len(pictures), 2), generator=generator).tolist()
    flips = torch.randint(0, 2, (len(pictures),), generator=generator).tolist()
    moved = torch.stack([p[:, y:y + 32, x:x + 32] for p, (y, x) in zip(framed, corners)])
    flipped = torch.tensor(flips, dtype=torch.bool)
    moved[flipped] = moved[flipped].flip(3)
    return moved


@torch.no_grad()
def error(net, pictures, labels):
    net.eval()
    guesses = torch.cat([net(standardized(part)).argmax(1) for part in pictures.split(500)])
    net.train()
    return 100 * (guesses != labels).float().mean().item()


def train_epoch(net, optimizer, training, batch, generator):
    pictures, labels = training
    total, batches = 0.0, len(pictures) // batch
    order = torch.randperm(len(pictures), generator=generator)[:batches * batch]
    for chosen in order.split(batch):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(standardized(moved_and_flipped(pictures[chosen], generator))),
                               labels[chosen])
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / batches


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--data", type=pathlib.Path, required=True)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--epochs", type=int, default=40)
    arguments.add_argument("--batch", type=int, default=128)
    arguments.add_argument("--threads", type=int, default=1)
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    generator = torch.Generator().manual_seed(options.seed)

    pictures, labels = rows(sorted(options.data.glob("data_batch*.bin")))
    held = len(pictures) - min(5000, len(pictures) // 10)
    test = rows([options.data / "test_batch.bin"])
    net = resnet20()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    tenths = [options.epochs // 2, options.epochs * 3 // 4]
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, tenths, 0.1)
    start = time.monotonic()
    for epoch in range(options.epochs):
        loss = train_epoch(net, optimizer, (pictures[:held], labels[:held]), options.batch,
                           generator)
        schedule.step()
        print(f"epoch {epoch + 1} loss {loss:.4f} validation error "
              f"{error(net, pictures[held:], labels[held:]):.2f} % "
              f"{time.monotonic() - start:.0f} s", flush=True)
    print(f"test error, last weights: {error(net, *test):.2f} % of {len(test[0])} rows")


if __name__ == "__main__":
    main()
