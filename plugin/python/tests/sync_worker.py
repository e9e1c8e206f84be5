"""One process of test_sync: runs steps on its shard of a batch and writes what it found.

usage: sync_worker.py RANK WORLD FOLDER"""
import pathlib
import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import torch as knn  # noqa: E402

CHANNELS = 6
STEPS = 3
# Without a warm-up, so that r and d take part.
MABN = {"m": 2, "warmup": 0, "clip_after": 0}
RENORM = {"r_max": 3, "d_max": 5}
# Name, norm of one process, of several, shape of a row of x without its batch axis, a mask or none.
CASES = {
    "batch_norm": (lambda: knn.BatchNorm1d(CHANNELS), lambda: knn.SyncBatchNorm(CHANNELS),
                   (CHANNELS,), False),
    "batch_norm with a mask": (lambda: knn.BatchNorm1d(CHANNELS),
                               lambda: knn.SyncBatchNorm(CHANNELS), (CHANNELS,), True),
    "batch_norm of images": (lambda: knn.BatchNorm2d(CHANNELS),
                             lambda: knn.SyncBatchNorm(CHANNELS), (CHANNELS, 4, 3), False),
    "batch_norm of series": (lambda: knn.BatchNorm1d(CHANNELS),
                             lambda: knn.SyncBatchNorm(CHANNELS), (CHANNELS, 4), False),
    "pn_v": (lambda: knn.PNV(CHANNELS), lambda: knn.SyncPNV(CHANNELS), (4, CHANNELS), False),
    "power_norm": (lambda: knn.PowerNorm(CHANNELS, warmup=2),
                   lambda: knn.SyncPowerNorm(CHANNELS, warmup=2), (4, CHANNELS), False),
    "power_norm with a mask": (lambda: knn.PowerNorm(CHANNELS), lambda: knn.SyncPowerNorm(CHANNELS),
                               (4, CHANNELS), True),
    "power_norm with pad_stats": (lambda: knn.PowerNorm(CHANNELS, pad_stats=True),
                                  lambda: knn.SyncPowerNorm(CHANNELS, pad_stats=True),
                                  (4, CHANNELS), True),
    "power_norm with groups": (lambda: knn.PowerNorm(CHANNELS, heads=2),
                               lambda: knn.SyncPowerNorm(CHANNELS, heads=2), (4, CHANNELS), False),
    "mabn": (lambda: knn.MABN(CHANNELS, **MABN), lambda: knn.SyncMABN(CHANNELS, **MABN),
             (4, CHANNELS), False),
    "unified_norm": (lambda: knn.UnifiedNorm(CHANNELS, **MABN),
                     lambda: knn.SyncUnifiedNorm(CHANNELS, **MABN), (4, CHANNELS), False),
    "batch_renorm": (lambda: knn.BatchRenorm1d(CHANNELS, **RENORM),
                     lambda: knn.SyncBatchRenorm(CHANNELS, **RENORM), (4, CHANNELS), False),
}
# Rows of each rank, by the number of processes: unequal ones, and none.
SPLITS = {2: [(5, 2), (7, 0)], 3: [(1, 4, 2), (0, 7, 0)]}


def batch(name, step, rows):
    """x, dy and the mask of all rows, the same in every process."""
    generator = torch.Generator().manual_seed(100 * step + len(name))
    shape = (rows, *CASES[name][2])
    x = 3 + torch.randn(shape, generator=generator)
    dy = torch.randn(shape, generator=generator)
    if not CASES[name][3]:
        return x, dy, None
    outer = shape[:1] if len(shape) == 2 else shape[:2]
    return x, dy, torch.rand(outer, generator=generator) > 0.3


def drawn(norm):
    generator = torch.Generator().manual_seed(1)
    for parameter in norm.parameters():
        with torch.no_grad():
            parameter.copy_(0.5 + torch.randn(parameter.shape, generator=generator))
    return norm


def step_of(norm, x, dy, mask):
    """y, dx and the gradients of the parameters."""
    x = x.clone().requires_grad_()
    y = norm(x) if mask is None else norm(x, mask)
    return y.detach(), *torch.autograd.grad(y, [x, *norm.parameters()], dy)


def steps_on_shards(name, split, rank, group=None):
    norm = drawn(CASES[name][1]())
    norm.process_group = group
    first = sum(split[:rank])
    own = slice(first, first + split[rank])
    found = []
    for step in range(STEPS):
        x, dy, mask = batch(name, step, sum(split))
        found.append(step_of(norm, x[own], dy[own], None if mask is None else mask[own]))
    return found, norm.state_dict()


class TwoUses(nn.Module):
    """A network with norms of both kinds, one with a state that the backward moves."""

    def __init__(self, batch_norm, power_norm):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(CHANNELS, 8), batch_norm, nn.ReLU(), nn.Linear(8, 8),
                                    power_norm, nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x)


def network(is_synced):
    torch.manual_seed(3)
    if is_synced:
        return TwoUses(knn.SyncBatchNorm(8), knn.SyncPowerNorm(8))
    return TwoUses(knn.BatchNorm1d(8), knn.PowerNorm(8))


def two_forwards(model, first, second):
    """Two forwards for one backward; gradients and buffers."""
    (model(first).square().sum() + model(second).sum()).backward()
    plain = getattr(model, "module", model)
    return ([p.grad.clone() for p in plain.parameters()],
            {name: b.clone() for name, b in plain.named_buffers()})


def data(rows):
    generator = torch.Generator().manual_seed(9)
    return (torch.randn(rows, CHANNELS, generator=generator),
            torch.randn(rows, CHANNELS, generator=generator))


def under_ddp(rank, world, broadcast):
    """Two steps; the gradients are DDP's, the sum over the processes divided by their number."""
    warnings.simplefilter("ignore", FutureWarning)  # the argument's newer name is not in 2.10
    model = DistributedDataParallel(network(True), broadcast_buffers=broadcast)
    own = slice(4 * rank, 4 * rank + 4)
    found = []
    for _ in range(2):
        model.zero_grad()
        found.append(two_forwards(model, *(part[own] for part in data(4 * world))))
    return found


# The processes of a group that is not all of them, and the rows of each.
GROUP, GROUP_SPLIT = (0, 2), (5, 2)


def in_a_group(world, rank):
    """Steps of a part of the processes; None in the others and where there are too few."""
    if world <= max(GROUP):
        return None
    group = dist.new_group(GROUP)  # all processes must call it
    if rank not in GROUP:
        return None
    # Every class takes the group as an argument.
    norms = (knn.SyncBatchNorm, knn.SyncPNV, knn.SyncPowerNorm, knn.SyncMABN, knn.SyncBatchRenorm)
    assert all(norm(CHANNELS, process_group=group).process_group is group for norm in norms)
    return {name: steps_on_shards(name, GROUP_SPLIT, GROUP.index(rank), group) for name in CASES}


def converted(world, rank):
    """A network whose batch norms were replaced."""
    model = knn.convert_sync_batchnorm(to_convert())
    x = data(4 * world)[0][4 * rank:4 * rank + 4]
    return type(model[1]).__name__, model(x).detach()


def to_convert():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(CHANNELS, 8), drawn(nn.BatchNorm1d(8)))


def main():
    rank, world, folder = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meet", rank=rank, world_size=world)
    shards = {(name, split): steps_on_shards(name, split, rank)
              for name in CASES for split in SPLITS[world]}
    found = {"shards": shards, "ddp": {broadcast: under_ddp(rank, world, broadcast)
                                       for broadcast in (True, False)},
             "converted": converted(world, rank), "group": in_a_group(world, rank)}
    torch.save(found, folder / f"rank{rank}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
