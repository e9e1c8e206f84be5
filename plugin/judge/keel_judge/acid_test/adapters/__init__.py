"""How the arrays of a library come and go. A library is a class with two or three methods."""
import importlib
import sys

import torch

from keel_judge.acid_test.adapters.base import Adapter

# library: (module of the adapter, modules whose use tells it).
LIBRARIES = {"jax": ("jax", "flax", "equinox", "haiku"), "mlx": ("mlx",),
             "onnx": ("onnxruntime",), "torch": ("torch", "triton", "liger_kernel"),
             "numpy": ("numpy",)}


def adapter_named(name):
    """The class of an adapter: one of LIBRARIES, or MODULE:CLASS."""
    if ":" in name:
        module, _, attribute = name.partition(":")
        return getattr(importlib.import_module(module), attribute)
    if name not in LIBRARIES:
        raise ValueError(f"--adapter {name}: expected one of {', '.join(LIBRARIES)}, or "
                         "MODULE:CLASS")
    module = importlib.import_module(f"keel_judge.acid_test.adapters.of_{name}")
    return module.LibraryAdapter


def library_of(function):
    """The library whose arrays a callable takes: told by its own module, then by what that uses."""
    if isinstance(function, torch.nn.Module) or hasattr(function, "_schema") \
            or hasattr(function, "overloads"):
        return "torch"
    own = (getattr(function, "__module__", None) or type(function).__module__).partition(".")[0]
    if type(function).__module__.startswith("onnxruntime") or str(function).endswith(".onnx"):
        return "onnx"
    for library, modules in LIBRARIES.items():
        if own in modules:
            return library
    used = {getattr(v, "__name__", "").partition(".")[0]
            for v in vars(sys.modules.get(getattr(function, "__module__", ""), object)).values()
            if isinstance(v, type(sys))} | names_used(function)
    for library, modules in LIBRARIES.items():
        if used & set(modules) and library != "torch":
            in_function = names_used(function)
            if not in_function or in_function & set(modules) or "torch" not in used:
                return library
    return "torch"


def names_used(function):
    """Modules that the code of a function itself names."""
    code = getattr(function, "__code__", None)
    space = getattr(function, "__globals__", {})
    named = (space.get(name) for name in (code.co_names if code else ()))
    return {m.__name__.partition(".")[0] for m in named if isinstance(m, type(sys))}


__all__ = ["Adapter", "adapter_named", "library_of"]
