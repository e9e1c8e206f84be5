"""The libraries whose norms bench/norm_errors.py measures: step(norm, given, dtype) gives y and the
gradients by name, as arrays of NumPy, or None where the library does not have the norm in that
type. A library that computes no gradients gives only y."""
import importlib.metadata

import numpy as np

import norm_library_jax
from norm_error_cases import GROUPS, RESULTS


def parameters(norm, given):
    return (given.gain,) if norm == "RMSNorm" else (given.gain, given.bias)


def torch_step(modules, compiles):
    import torch
    made = {}

    def module(norm, width, eps):
        key = norm, width, eps
        if key not in made:
            layer = {"LayerNorm": lambda: modules.LayerNorm(width, eps=eps),
                     "RMSNorm": lambda: modules.RMSNorm(width, eps=eps),
                     "GroupNorm": lambda: modules.GroupNorm(GROUPS, width, eps=eps),
                     "BatchNorm": lambda: modules.BatchNorm1d(width, eps=eps)}[norm]()
            made[key] = torch.compile(layer, dynamic=False) if compiles else layer
        return made[key]

    def step(norm, given, dtype):
        kind = torch.float32 if dtype == "float32" else torch.bfloat16
        layer = module(norm, given.width, given.eps).to(kind)
        x, dy, *values = (torch.from_numpy(v).to(kind)
                          for v in (given.x, given.dy, *parameters(norm, given)))
        with torch.no_grad():
            for parameter, value in zip(layer.parameters(), values, strict=True):
                parameter.copy_(value)
        x.requires_grad_()
        y = layer(x)
        found = y, *torch.autograd.grad(y, [x, *layer.parameters()], dy)
        return {name: value.detach().float().numpy() for name, value in zip(RESULTS, found)}
    if compiles:
        import torch._inductor.config
        torch._dynamo.config.recompile_limit = 1000
        torch._inductor.config.compile_threads = 1  # kernels are few, and processes start slowly
    return step


def keel():
    from keel_norms import torch as knn
    return torch_step(knn, False)


def eager():
    from torch import nn
    return torch_step(nn, False)


def compiled():
    from torch import nn
    return torch_step(nn, True)


def jax_step(forward):
    """The step of forward(norm, width, eps), a function of x and the parameters."""
    import jax
    import jax.numpy as jnp
    made = {}

    def step_of(norm, width, eps):
        function = forward(norm, width, eps)

        def run(x, dy, *parameters):
            y, back = jax.vjp(function, x, *parameters)
            return y, *back(dy)
        return jax.jit(run)

    def step(norm, given, dtype):
        kind = jnp.float32 if dtype == "float32" else jnp.bfloat16
        key = norm, given.width, given.eps
        if key not in made:
            made[key] = step_of(*key)
        values = (jnp.asarray(v, kind) for v in (given.x, given.dy, *parameters(norm, given)))
        return {name: np.asarray(value.astype(jnp.float32))
                for name, value in zip(RESULTS, made[key](*values))}
    return step


PLAIN = {"LayerNorm": "layer_norm", "RMSNorm": "rms_norm", "GroupNorm": "group_norm",
         "BatchNorm": "batch_norm"}


def jitted():
    """The plain formulas of bench/norm_library_jax.py, compiled by jax.jit."""
    import jax
    import jax.numpy as jnp

    def forward(norm, width, eps):
        formula = norm_library_jax.formulas(jax, jnp, eps)[PLAIN[norm]]
        state = {"running_mean": jnp.zeros(width), "running_var": jnp.ones(width)}
        return lambda x, gain, bias=0: formula(x, gain, bias, state)[0]
    return jax_step(forward)


def flax():
    from flax import linen

    def forward(norm, width, eps):
        layer = {"LayerNorm": lambda: linen.LayerNorm(epsilon=eps),
                 "RMSNorm": lambda: linen.RMSNorm(epsilon=eps),
                 "GroupNorm": lambda: linen.GroupNorm(num_groups=GROUPS, epsilon=eps),
                 "BatchNorm": lambda: linen.BatchNorm(use_running_average=False, epsilon=eps)
                 }[norm]()

        def run(x, gain, *bias):
            params = dict(zip(("scale", "bias"), (gain, *bias)))
            if norm != "BatchNorm":
                return layer.apply({"params": params}, x)
            statistics = {"mean": 0 * gain, "var": 0 * gain + 1}
            return layer.apply({"params": params, "batch_stats": statistics}, x,
                               mutable=["batch_stats"])[0]
        return run
    return jax_step(forward)


def mlx():
    import mlx.core as mx
    from mlx import nn

    def forward(norm, width, eps):
        if norm == "LayerNorm":
            return lambda x, gain, bias: mx.fast.layer_norm(x, gain, bias, eps)
        if norm == "RMSNorm":
            return lambda x, gain: mx.fast.rms_norm(x, gain, eps)
        layer = nn.BatchNorm(width, eps=eps, affine=False) if norm == "BatchNorm" else \
            nn.GroupNorm(GROUPS, width, eps=eps, affine=False, pytorch_compatible=True)
        return lambda x, gain, bias: layer(x) * gain + bias

    def step(norm, given, dtype):
        kind = mx.float32 if dtype == "float32" else mx.bfloat16
        x, dy, *rest = (mx.array(v).astype(kind)
                        for v in (given.x, given.dy, *parameters(norm, given)))
        y, found = mx.vjp(forward(norm, given.width, given.eps), [x, *rest], [dy])
        return {name: np.array(value.astype(mx.float32))
                for name, value in zip(RESULTS, (*y, *found))}
    return step


def onnx_runtime():
    """ONNX Runtime infers: it has no gradients here, and no batch norm of the batch."""
    import onnxruntime
    from onnx import TensorProto, helper
    onnxruntime.set_default_logger_severity(4)
    sessions = {}

    def node(norm, eps):
        if norm == "LayerNorm":
            return helper.make_node("LayerNormalization", ["x", "gain", "bias"], ["y"], epsilon=eps)
        if norm == "RMSNorm":
            return helper.make_node("RMSNormalization", ["x", "gain"], ["y"], epsilon=eps)
        return helper.make_node("GroupNormalization", ["x", "gain", "bias"], ["y"], epsilon=eps,
                                num_groups=GROUPS)

    def session(norm, shape, eps):
        rank3 = [*shape, 1] if norm == "GroupNorm" else shape
        names = ("gain", "bias")[:1 if norm == "RMSNorm" else 2]
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            [node(norm, eps)], "norm",
            [value("x", TensorProto.FLOAT, rank3),
             *(value(name, TensorProto.FLOAT, shape[1:]) for name in names)],
            [value("y", TensorProto.FLOAT, rank3)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
        return onnxruntime.InferenceSession(model.SerializeToString(),
                                            providers=["CPUExecutionProvider"])

    def step(norm, given, dtype):
        if norm == "BatchNorm" or dtype != "float32":
            return None
        key = norm, given.x.shape, given.eps
        if key not in sessions:
            sessions[key] = session(norm, list(given.x.shape), given.eps)
        values = {"x": given.x[..., None] if norm == "GroupNorm" else given.x,
                  "gain": given.gain, "bias": given.bias}
        wanted = [i.name for i in sessions[key].get_inputs()]
        (y,) = sessions[key].run(None, {name: values[name] for name in wanted})
        return {"y": y.reshape(given.x.shape)}
    return step


# A library's column, what makes its step, and the package that its version is of.
LIBRARIES = {"keel": (keel, "keel_norms"), "PyTorch": (eager, "torch"),
             "torch.compile": (compiled, "torch"), "jax.jit": (jitted, "jax"),
             "flax": (flax, "flax"), "MLX": (mlx, "mlx"),
             "ONNX Runtime": (onnx_runtime, "onnxruntime")}


def version(package):
    if package == "keel_norms":
        from keel_norms import info
        return info()
    return importlib.metadata.version(package)
