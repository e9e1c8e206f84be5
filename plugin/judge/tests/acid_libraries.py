"""Norms of libraries as they ship, for acid_table.py: a function for each, which imports its
library when it is first called."""
import functools
import importlib.util
import os
import pathlib
import re
import tempfile

import torch
import torch.nn.functional as F

EPS = 1e-5


# torch.compile: dynamic shapes, so that one program serves many.
@functools.cache
def compiled(name):
    torch._dynamo.config.recompile_limit = 64
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    return torch.compile(globals()[name], dynamic=True)


def plain_layer_norm(x, gain, bias):
    return F.layer_norm(x, x.shape[-1:], gain, bias, EPS)


def plain_rms_norm(x, gain):
    return F.rms_norm(x, x.shape[-1:], gain, EPS)


def compiled_layer_norm(x, gain, bias):
    return compiled("plain_layer_norm")(x, gain, bias)


def compiled_rms_norm(x, gain):
    return compiled("plain_rms_norm")(x, gain)


def jax_standardize(x, gain, bias):
    import jax
    return jax.nn.standardize(x, epsilon=EPS) * gain + bias


def flax_layer_norm(x, gain, bias):
    from flax import linen
    return linen.LayerNorm(epsilon=EPS).apply({"params": {"scale": gain, "bias": bias}}, x)


def flax_layer_norm_two_pass(x, gain, bias):
    from flax import linen
    return linen.LayerNorm(epsilon=EPS, use_fast_variance=False).apply(
        {"params": {"scale": gain, "bias": bias}}, x)


def flax_rms_norm(x, gain):
    from flax import linen
    return linen.RMSNorm(epsilon=EPS).apply({"params": {"scale": gain}}, x)


def mlx_layer_norm(x, gain, bias):
    import mlx.core
    return mlx.core.fast.layer_norm(x, gain, bias, EPS)


def mlx_rms_norm(x, gain):
    import mlx.core
    return mlx.core.fast.rms_norm(x, gain, EPS)


def session(op, inputs, version):
    """A session of ONNX Runtime with one op over the last axis."""
    import onnxruntime
    from onnx import TensorProto, helper
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in (*inputs, "y")]
    node = helper.make_node(op, list(inputs), ["y"], axis=-1, epsilon=EPS)
    graph = helper.make_graph([node], "norm", values[:-1], values[-1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)],
                              ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"])


def ort_layer_norm():
    return session("LayerNormalization", ("x", "gain", "bias"), 17)


def ort_rms_norm():
    return session("RMSNormalization", ("x", "gain"), 23)


@functools.cache
def liger(file):
    """A file of Liger's with what Triton's interpreter needs: numbers of Python have no `to`, and
    libdevice is CUDA's."""
    os.environ["TRITON_INTERPRET"] = "1"
    folder = importlib.util.find_spec("liger_kernel").submodule_search_locations[0]
    text = (pathlib.Path(folder) / "ops" / f"{file}.py").read_text(encoding="utf-8")
    text = re.sub(r"\b(eps|offset)\.to\(([\w.]+)\)", r"tl.full((), \1, \2)", text)
    text = re.sub(r"(?<![\w.])rsqrt\(", "tl.math.rsqrt(", text)
    path = pathlib.Path(tempfile.mkdtemp()) / f"shimmed_{file}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def liger_layer_norm(x, gain, bias):
    return liger("layer_norm").LigerLayerNormFunction.apply(x, gain, bias, EPS)


def liger_rms_norm(x, gain):
    return liger("rms_norm").LigerRMSNormFunction.apply(x, gain, EPS, 0.0, "llama", False)


def keel_layer_norm(x, gain, bias):
    from keel_norms import torch as keel
    return keel.functional.layer_norm(x, x.shape[-1:], gain, bias, EPS)


def keel_rms_norm(x, gain):
    from keel_norms import torch as keel
    return keel.functional.rms_norm(x, x.shape[-1:], gain, EPS)


def keel_group_norm(x, gain, bias):
    from keel_norms import torch as keel
    return keel.functional.group_norm(x, 2, gain, bias, EPS)


def keras_layer_norm(x, gain, bias):
    os.environ["KERAS_BACKEND"] = "jax"
    import keras
    return keras.ops.layer_normalization(x, gain, bias, axis=-1, epsilon=EPS)


def equinox_layer_norm(x, gain, bias):
    import equinox
    import jax
    norm = equinox.nn.LayerNorm(x.shape[-1:], eps=EPS)
    norm = equinox.tree_at(lambda n: (n.weight, n.bias), norm, (gain, bias))
    rows = jax.vmap(norm)(x.reshape(-1, x.shape[-1])) if x.ndim > 1 else norm(x)
    return rows.reshape(x.shape)


def equinox_rms_norm(x, gain):
    import equinox
    import jax
    norm = equinox.nn.RMSNorm(x.shape[-1:], eps=EPS, use_bias=False)
    norm = equinox.tree_at(lambda n: n.weight, norm, gain)
    return jax.vmap(norm)(x.reshape(-1, x.shape[-1])).reshape(x.shape)
