"""Networks of PyTorch with the weights of a run of keel's program.

    network = knn.load_run("runs/a")             # the best weights, in evaluation
    logits = network(*network.inputs(["a moving , funny film"]))
    network.classes                              # a name for each logit

Modules are called as keel's layers are, with dots: fc1/norm/gain is fc1.norm.weight. A network can
be trained further: norms and dropouts are those of the recipe."""
import re

import torch
from torch import nn

from .._library import KeelError
from .._norms import NORMS
from .column_modules import _ColumnNorm
from .run_files import read_run
from .run_networks import CifarResnet20, MnistMlp, TextClassifier
from .run_norms import Conv2d, Linear, apply, norm

# The names of a norm's tensors in PyTorch, and in keel.
_OF_NORMS = {"weight": "gain", **{_ColumnNorm._buffer(state): state for facts in NORMS.values()
                                  for state in facts.states}}
NETWORKS = {"mnist_mlp": MnistMlp, "text_classifier": TextClassifier,
            "cifar_resnet20": CifarResnet20}


def keel_name(name):
    """keel's name of a parameter or state of a network: fc1/norm/gain for fc1.norm.weight."""
    name = name.replace(".parametrizations.weight.original0", ".norm.gain")
    *path, last = name.replace(".parametrizations.weight.original1", ".weight").split(".")
    if path and path[-1] == "norm":
        last = _OF_NORMS.get(last, last)
    return "/".join([*path, last])


def fill(network, run):
    """Gives a network the tensors of a run, each to that of its name. A weight of a Linear is
    transposed. Throws KeelError unless every tensor of either has its place. Returns the network,
    in evaluation."""
    left, found = dict(run.tensors), {}
    for name, place in network.state_dict(keep_vars=True).items():
        key = keel_name(name)
        if key not in left:
            raise KeelError(f"{run.path}: expected a tensor {key} for {name}, got none")
        layer = network.get_submodule(re.sub(r"(\.parametrizations\.weight)?\.?\w+$", "", name))
        tensor = left.pop(key)
        if isinstance(layer, nn.Linear) and tensor.dim() == 2:
            tensor = tensor.T.contiguous()
        is_length = name.endswith("original0")  # (units) in keel, (units, 1) in PyTorch
        found[name] = tensor.reshape(place.shape) if is_length else tensor
    if left:
        raise KeelError(f"{run.path}: the network has no place for {', '.join(left)}")
    network.load_state_dict(found, assign=True)
    return network.eval()


def load_run(path):
    """The network of a run: `path` is the run's folder, for its best weights as `keel predict`
    takes them, or a checkpoint, such as average.safetensors. In evaluation its answers are those of
    `keel predict`, but for rounding."""
    run = read_run(path)
    if run.task not in NETWORKS:
        raise KeelError(f"{run.path}: expected a run of {', '.join(NETWORKS)}, got one of "
                        f"{run.task}; docs/norm-library.md says how to load it")
    with torch.device("meta"):
        network = NETWORKS[run.task](run)
    return fill(network, run)


__all__ = ["Conv2d", "Linear", "NETWORKS", "apply", "fill", "keel_name", "load_run", "norm",
           "read_run"]
