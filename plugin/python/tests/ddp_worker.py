"""One process of test_ddp: accumulates gradients over micro-batches under no_sync.

usage: ddp_worker.py RANK WORLD FOLDER"""
import contextlib
import pathlib
import sys
import warnings

import torch
import torch.distributed as dist
from sync_worker import CHANNELS, network
from torch.nn.parallel import DistributedDataParallel

STEPS, PARTS, ROWS, RATE = 3, 3, 4, 0.1  # steps, micro-batches of each, their rows on a process


def part_of(step, part, world):
    """x and the target of a micro-batch, the rows of all processes."""
    generator = torch.Generator().manual_seed(100 * step + part)
    return (1 + torch.randn(ROWS * world, CHANNELS, generator=generator),
            torch.randn(ROWS * world, 1, generator=generator))


def own_rows(rank):
    return slice(ROWS * rank, ROWS * rank + ROWS)


def loss_of(model, x, target):
    """Its share of the loss of a step."""
    return (model(x) - target).square().mean() / PARTS


def descend(model):
    """A step of plain gradient descent."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= RATE * parameter.grad


def seen(model):
    """Gradients and the state."""
    return ([parameter.grad.clone() for parameter in model.parameters()],
            {name: value.clone() for name, value in model.state_dict().items()})


def train(rank, world, is_synced, broadcast):
    """Gradients and states of every step: of each, all micro-batches but the last one without a
    word to the other processes."""
    model = DistributedDataParallel(network(is_synced), broadcast_buffers=broadcast)
    found, own = [], own_rows(rank)
    for step in range(STEPS):
        model.zero_grad()
        for part in range(PARTS):
            x, target = part_of(step, part, world)
            alone = model.no_sync() if part < PARTS - 1 else contextlib.nullcontext()
            with alone:  # the forward, too: it decides whether buffers are broadcast
                loss_of(model, x[own], target[own]).backward()
        descend(model.module)
        found.append(seen(model.module))
    return found


def main():
    rank, world, folder = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
    warnings.simplefilter("ignore", FutureWarning)  # broadcast_buffers' newer name is not in 2.10
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meet", rank=rank, world_size=world)
    found = {(is_synced, broadcast): train(rank, world, is_synced, broadcast)
             for is_synced in (False, True) for broadcast in (False, True)}
    torch.save(found, folder / f"rank{rank}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
