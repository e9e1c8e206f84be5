"""The networks of keel's tasks mnist_mlp, cifar_resnet20 and text_classifier, as modules."""
import math

import torch
from torch import nn
from torch.nn import functional

from .._library import KeelError
from .run_norms import Conv2d, Linear, apply, norm

_PAD, _UNKNOWN = 0, 1
# The capitals that keel puts into lower case, those of Windows-1252.
_CAPITALS = {code: chr(code).lower() for code in (*range(0x41, 0x5b), *range(0xc0, 0xdf), 0x152,
                                                  0x160, 0x178, 0x17d)}
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of a picture's colours


def _lines(text):
    """The lines as keel wrote them: a word may contain what Python takes for the end of a line."""
    return text.removesuffix("\n").split("\n")


def _bytes(images, *shape):
    images = torch.as_tensor(images)
    if images.dtype != torch.uint8 or images.shape[1:] != shape:
        raise KeelError(f"images: expected bytes (uint8) of the shape {('n', *shape)}, got "
                        f"{images.dtype} of {tuple(images.shape)}".replace("'", ""))
    return images


class _Network(nn.Module):
    """A network whose sizes and norms are those of a Run. `classes` are the names of the logits."""

    def __init__(self, run):
        super().__init__()
        self.options = run.options
        self.classes = self._classes(run)

    def linear(self, run, name, sizes, *normed):
        return Linear(*sizes, bias=f"{name}/bias" in run.tensors).normed(*normed)


class MnistMlp(_Network):
    """x (n, 784) has pixels from 0 to 1."""

    def __init__(self, run):
        super().__init__(run)
        text, width = self.options["norm"], self.options["hidden"]
        defaults = self.options["batchnorm_options"] if text.startswith("batchnorm") else ""
        self.names = [f"fc{number}" for number in range(1, self.options["layers"] + 1)]
        for name in self.names:
            sizes = (784 if name == "fc1" else width), width
            self.add_module(name, self.linear(run, name, sizes, text, (width,), defaults))
        is_normed = any(name.startswith("logits/norm/") for name in run.tensors)
        normed = (text, (10,), defaults) if is_normed else ()
        self.logits = self.linear(run, "logits", (width, 10), *normed)

    def _classes(self, run):
        return [str(digit) for digit in range(10)]

    def inputs(self, images):
        """The inputs for images (n, 28, 28) of bytes, white on black."""
        return (_bytes(images, 28, 28).flatten(1).to(self.logits.weight) / 255,)

    def forward(self, x):
        for name in self.names:
            x = self.get_submodule(name)(x).relu()
        return self.logits(x)


class CifarResnet20(_Network):
    """x (n, 3, 32, 32) has red, green and blue less their means, in units of their deviations."""

    def __init__(self, run):
        super().__init__(run)
        width = self.options["width"]
        self.conv = self._conv(run, "conv", (3, width), 32)
        self.blocks = []
        before = width
        for stage in (1, 2, 3):
            channels, side = width << stage - 1, 64 >> stage
            self.add_module(f"stage{stage}", nn.Module())
            for block in range(1, (self.options["depth"] - 2) // 6 + 1):
                name = f"stage{stage}/block{block}"
                stride = 2 if stage > 1 and block == 1 else 1
                self.get_submodule(f"stage{stage}").add_module(f"block{block}", nn.ModuleDict({
                    "conv1": self._conv(run, f"{name}/conv1", (before, channels), side, stride),
                    "conv2": self._conv(run, f"{name}/conv2", (channels, channels), side)}))
                self.blocks.append(name.replace("/", "."))
                before = channels
        self.logits = self.linear(run, "logits", (before, len(self.classes)))

    def _classes(self, run):
        return _lines(run.assets["classes"])

    def _conv(self, run, name, channels, side, stride=1):
        layer = Conv2d(*channels, 3, stride, 1, bias=f"{name}/bias" in run.tensors)
        return layer.normed(self.options["norm"], (channels[1], side, side))

    def inputs(self, images):
        """The inputs for images (n, 3, 32, 32) of bytes: planes of red, green and blue."""
        x = _bytes(images, 3, 32, 32).to(self.logits.weight) / 255
        mean, deviation = (x.new_tensor(v).reshape(3, 1, 1) for v in (_MEAN, _DEVIATION))
        return ((x - mean) / deviation,)

    def forward(self, x):
        x = self.conv(x).relu()
        for name in self.blocks:
            block = self.get_submodule(name)
            y = block["conv2"](block["conv1"](x).relu())
            stride, more = x.shape[2] // y.shape[2], y.shape[1] - x.shape[1]
            shortcut = x[:, :, ::stride, ::stride]
            x = (y + functional.pad(shortcut, (0, 0, 0, 0, more // 2, more // 2))).relu()
        return self.logits(x.mean((2, 3)))


class TextClassifier(_Network):
    """tokens (rows, length) are numbers of words, 0 for padding, which the mask has as 0."""

    def __init__(self, run):
        super().__init__(run)
        if (place := self.options["place"]) not in ("pre", "post"):
            raise KeelError(f"model.place: expected pre or post, of which load_run knows the "
                            f"network, got {place}")
        words = _lines(run.assets["vocabulary"])
        self.numbers = {line.rsplit(" ", 1)[0]: number for number, line in enumerate(words)
                        if number > _UNKNOWN}
        width = self.options["width"]
        self.scaling = norm(self.options["scaling"] or "none", (width,))
        self.embedding = nn.Parameter(torch.empty(len(words), width))
        if self.options["positions"] == "learned":
            self.positions = nn.Parameter(torch.empty(run.tensors["positions"].shape))
        self.names = [f"encoder{number}" for number in range(1, self.options["layers"] + 1)]
        for name in self.names:
            self.add_module(name, self._encoder_layer(run, name, width))
        self.norm = norm(self.options["norm"], (width,)) if self._is_pre() else None
        self.logits = self.linear(run, "logits", (width, len(self.classes)))

    def _classes(self, run):
        count = 5 if self.options["task"] == "sst5" else 2
        labels = run.assets.get("labels")
        return [str(label) for label in range(count)] if labels is None else _lines(labels)

    def _is_pre(self):
        return self.options["place"] == "pre"

    def _encoder_layer(self, run, name, width):
        hidden = self.options["feed_forward"]
        sizes = {"attention": dict.fromkeys(("q", "k", "v", "out"), (width, width)),
                 "feed_forward": {"1": (width, hidden), "2": (hidden, width)}}
        return nn.ModuleDict({branch: nn.ModuleDict({
            **{layer: self.linear(run, f"{name}/{branch}/{layer}", size)
               for layer, size in layers.items()},
            "norm": norm(self.options["norm"], (width,))}) for branch, layers in sizes.items()})

    def inputs(self, lines):
        """Tokens and mask for lines of words with blanks between them."""
        if self.options["lower_case"]:
            lines = [line.translate(_CAPITALS) for line in lines]
        rows = [[self.numbers.get(word, _UNKNOWN) for word in line.replace("\t", " ").split(" ")
                 if word] or [_UNKNOWN] for line in lines]
        tokens = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], True, _PAD)
        tokens = tokens.to(self.embedding.device)
        return tokens, tokens != _PAD

    def forward(self, tokens, mask):
        x = self._dropout(self._embed(tokens), "dropout")
        for name in self.names:
            layer = self.get_submodule(name)
            x = self._branch(layer["attention"], self._attend, x, mask)
            x = self._branch(layer["feed_forward"], self._feed, x, mask)
        if self._is_pre():
            x = self._normed(self.norm, x, mask)
        kept = mask.unsqueeze(2).to(x.dtype)
        return self.logits((x * kept).sum(1) / kept.sum(1).clamp(min=1))

    def _dropout(self, x, option):
        return functional.dropout(x, self.options[option], self.training)

    def _embed(self, tokens):
        width, length = self.options["width"], tokens.shape[1]
        x = functional.embedding(tokens, self.embedding) * (tokens != _PAD).unsqueeze(2)
        if self.options["positions"] == "learned":
            return x * math.sqrt(width) + self.positions[:length]
        rates = torch.exp(torch.arange(width // 2, dtype=torch.float64)
                          * (-math.log(10000) / (width // 2 - 1)))
        angles = torch.arange(2, length + 2, dtype=torch.float64).unsqueeze(1) * rates
        return x * math.sqrt(width) + torch.cat([angles.sin(), angles.cos()], 1).to(x)

    def _normed(self, layer, x, mask):
        return apply(layer, apply(self.scaling, x), mask)

    def _branch(self, branch, sublayer, x, mask):
        if self._is_pre():
            y = sublayer(branch, self._normed(branch["norm"], x, mask), mask)
            return x + self._dropout(y, "dropout")
        y = self._dropout(sublayer(branch, x, mask), "dropout")
        return self._normed(branch["norm"], x + y, mask)

    def _attend(self, branch, x, mask):
        q, k, v = (branch[name](x).unflatten(2, (self.options["heads"], -1)).transpose(1, 2)
                   for name in "qkv")
        y = functional.scaled_dot_product_attention(q, k, v, mask[:, None, None, :])
        return branch["out"](y.transpose(1, 2).flatten(2))

    def _feed(self, branch, x, mask):
        del mask
        return branch["2"](self._dropout(branch["1"](x).relu(), "relu_dropout"))
