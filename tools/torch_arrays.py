"""The arrays of a PyTorch module's training step, called as `keel compare --against` expects.

    with torch_arrays.taken(model, {"fc1": "fc1.matmul", "norm1": "fc1.norm.layer_norm"}) as arrays:
        loss = step(model)    # forward and backward
    numpy.savez("torch.npz", **arrays)

The second argument gives, for each module by its path, the node of keel's graph whose output the
module's output is (`keel compare TASK --unfused --names` lists the nodes). Taken are the module's
output, the gradient of its input and the gradients of its weight and bias: what keel calls
NODE, NODE.backward.OP_backward, and .1 and .2 of it; of a linear layer NODE.backward.matmul,
NODE.backward.matmul.2 (turned over, as keel's weights are) and NODE.backward.sum.
"""
import contextlib
import re

import torch


@contextlib.contextmanager
def taken(model, nodes):
    arrays, hooks, with_dx = {}, [], set()

    def keep(name, tensor):
        arrays[name] = tensor.detach().cpu().numpy().copy()

    def hook(path, node):
        def backward(module, dx, dy):
            if dx[0] is not None:
                with_dx.add(path)
                keep(f"{node}.backward.{backward_op(module, node)}", dx[0])
        module = model.get_submodule(path)
        hooks.append(module.register_forward_hook(lambda m, x, y: keep(node, y)))
        hooks.append(module.register_full_backward_hook(backward))

    for path, node in nodes.items():
        hook(path, node)
    try:
        yield arrays
    finally:
        for each in hooks:
            each.remove()
    for path, node in nodes.items():
        take_parameters(model.get_submodule(path), node, path in with_dx, keep)


def backward_op(module, node):
    op = re.sub(r"\.\d+$", "", node).split(".")[-1]
    return "matmul" if isinstance(module, torch.nn.Linear) else op + "_backward"


def take_parameters(module, node, has_dx, keep):
    name = f"{node}.backward.{backward_op(module, node)}"
    is_linear = isinstance(module, torch.nn.Linear)
    for place, parameter in ((1, "weight"), (2, "bias")):
        gradient = getattr(getattr(module, parameter, None), "grad", None)
        if gradient is not None and is_linear:
            # A first layer has no gradient of its input: its only product is the weight's.
            product = name + (".2" if has_dx else "")
            keep(product if place == 1 else node + ".backward.sum",
                 gradient.T if place == 1 else gradient)
        elif gradient is not None:
            keep(f"{name}.{place}", gradient)
