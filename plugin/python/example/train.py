"""Trains a small network whose norms are keel's; prints the loss and fails if it does not fall."""
import torch
from keel_norms import info
from keel_norms import torch as knn

torch.manual_seed(0)
x = torch.randn(256, 20)
label = (x[:, 0] * x[:, 1] > 0).long()
model = torch.nn.Sequential(torch.nn.Linear(20, 64), knn.PowerNorm(64), torch.nn.ReLU(),
                            torch.nn.Linear(64, 64), knn.LayerNorm(64), torch.nn.ReLU(),
                            torch.nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
losses = []
for _ in range(60):
    loss = torch.nn.functional.cross_entropy(model(x), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"{info()}, PyTorch {torch.__version__}: loss {losses[0]:.3f} -> {losses[-1]:.3f}")
if not losses[-1] < 0.5 * losses[0]:
    raise SystemExit("train.py: the loss did not fall to half")
