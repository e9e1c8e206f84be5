"""Ten networks that people know, small, made of PyTorch's modules only, with one training step."""
import torch
import torch.nn.functional as F
from torch import nn


def mlp():
    return nn.Sequential(nn.Linear(20, 64), nn.LayerNorm(64), nn.GELU(), nn.Dropout(0.1),
                         nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU(),
                         nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
                         nn.AvgPool2d(2), nn.Flatten(), nn.Linear(32 * 16, 10))


class Residual(nn.Module):
    def __init__(self, width, out, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(width, out, 3, stride, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.short = nn.Identity() if width == out and stride == 1 else nn.Sequential(
            nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)) + self.short(x), inplace=True)


def resnet18(width=8):
    blocks, before = [], width
    for out, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
        blocks += [Residual(before, out, stride), Residual(out, out)]
        before = out
    return nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width),
                         nn.ReLU(inplace=True), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(before, 10))


def vgg():
    layers, before = [], 3
    for out, depth in ((8, 1), (16, 1), (32, 2)):
        for _ in range(depth):
            layers += [nn.Conv2d(before, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(True)]
            before = out
        layers.append(nn.MaxPool2d(2, 2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 4, 64), nn.ReLU(True),
                         nn.Dropout(), nn.Linear(64, 10))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.pool = nn.MaxPool2d(2)
        self.middle = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.InstanceNorm2d(16),
                                    nn.LeakyReLU(0.2))
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.resize = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.last = nn.Conv2d(8 + 8 + 16, 10, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.middle(self.pool(a))
        return self.last(torch.cat([a, self.up(b), self.resize(b)], 1)).mean((2, 3))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 12, padding_idx=0)
        self.lstm = nn.LSTM(12, 16, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(32, 16, batch_first=True)
        self.last = nn.Linear(16, 10)

    def forward(self, ids):
        y = self.gru(self.lstm(self.embedding(ids))[0])[0]
        return self.last(y[:, -1])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.last = nn.Linear(32, 10)

    def forward(self, ids):
        padding = ids == 0
        return self.last(self.encoder(self.embedding(ids), src_key_padding_mask=padding).mean(1))


class Block(nn.Module):
    """Attention and an MLP, each on a normed input: GPT-2's, and ViT's without the mask."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"),
                                 nn.Linear(4 * width, width))
        self.heads, self.causal = heads, causal

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (a.view(b, t, self.heads, -1).transpose(1, 2)
                   for a in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(50, 32), nn.Embedding(64, 32)
        self.blocks = nn.Sequential(Block(32, 4, True), Block(32, 4, True))
        self.norm = nn.RMSNorm(32)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        x = self.norm(self.blocks(x))
        return (x @ self.tokens.weight.t())[:, -1, :10]


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 4, stride=4)
        self.first = nn.Parameter(torch.zeros(1, 1, 32))
        self.places = nn.Parameter(torch.randn(1, 17, 32) * 0.02)
        self.block, self.norm = Block(32, 4, False), nn.LayerNorm(32)
        self.last = nn.Linear(32, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.last(self.norm(self.block(x))[:, 0])


class Dlrm(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(50, 8, mode=m) for m in ("sum", "mean", "sum"))
        self.bottom = nn.Sequential(nn.Linear(20, 8), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(8 + 6, 16), nn.ReLU(), nn.Linear(16, 10))

    def forward(self, batch):
        ids, dense = batch
        parts = torch.stack([self.bottom(dense), *(bag(ids) for bag in self.bags)], 1)
        pairs = torch.bmm(parts, parts.transpose(1, 2))
        low = torch.tril_indices(4, 4, -1)
        return self.top(torch.cat([parts[:, 0], pairs[:, low[0], low[1]]], 1))


def rows():
    return torch.randn(16, 20)


def images():
    return torch.randn(4, 3, 16, 16)


def tokens():
    ids = torch.randint(1, 50, (4, 13))
    ids[1, 9:] = 0
    return ids


MODELS = {"mlp": (mlp, rows), "cnn": (cnn, images), "resnet18": (resnet18, images),
          "vgg": (vgg, images), "unet": (UNet, images), "recurrent": (Recurrent, tokens),
          "encoder": (Encoder, tokens), "gpt": (Gpt, tokens), "vit": (Vit, images),
          "dlrm": (Dlrm, lambda: (tokens(), rows()[:4]))}


class Step:
    """A model with its batch and optimizer; calling it is one training step."""

    def __init__(self, name, seed=0, optimizer=torch.optim.AdamW, autocast=False):
        torch.manual_seed(seed)
        make, batch = MODELS[name]
        self.model, self.batch = make(), batch()
        size = len(self.batch[0]) if isinstance(self.batch, tuple) else len(self.batch)
        self.target = torch.randint(0, 10, (size,))
        self.optimizer = optimizer(self.model.parameters(), lr=1e-3)
        self.autocast = autocast

    def __call__(self):
        self.optimizer.zero_grad()
        # oneDNN has no recurrent layers in bf16 on older processors.
        plain = self.autocast and isinstance(self.model, Recurrent)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast), \
                torch.backends.mkldnn.flags(enabled=not plain):
            loss = F.cross_entropy(self.model(self.batch), self.target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss
