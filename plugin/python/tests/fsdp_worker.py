"""One process of test_fsdp: trains a network whose parameters lie in shards on all processes.

usage: fsdp_worker.py RANK WORLD FOLDER"""
import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import torch as knn  # noqa: E402

STEPS = 3


def network():
    """ScaleNorm has a gain of one number: all processes but the first have an empty shard of it."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 5), knn.SyncBatchNorm(5), nn.ReLU(), nn.Linear(5, 8),
                         knn.LayerNorm(8), nn.Linear(8, 3), knn.SyncPowerNorm(3), nn.Linear(3, 8),
                         knn.RMSNorm(8, 1e-5), knn.ScaleNorm(8))


def batch(step, rows):
    generator = torch.Generator().manual_seed(step)
    return torch.randn(rows, 6, generator=generator), torch.randn(rows, 8, generator=generator)


def train(model, own, rows, world):
    """Losses of all steps; `own` are the rows of this process."""
    optimizer = torch.optim.SGD(model.parameters(), 0.05, 0.9)
    losses = []
    for step in range(STEPS):
        x, target = batch(step, rows)
        loss = (model(x[own]) - target[own]).square().sum() / rows * world  # FSDP takes the mean
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item() / world)
    return losses


def main():
    rank, world, folder = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meet", rank=rank, world_size=world)
    model, rows = network(), 4 * world
    mesh = init_device_mesh("cpu", (world,))
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    losses = train(model, slice(4 * rank, 4 * rank + 4), rows, world)
    shards = {name: tuple(p.to_local().shape) for name, p in model.named_parameters()}
    whole = {name: (v.full_tensor() if hasattr(v, "full_tensor") else v).detach().clone()
             for name, v in model.state_dict().items()}
    torch.save({"losses": losses, "shards": shards, "state": whole}, folder / f"rank{rank}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
