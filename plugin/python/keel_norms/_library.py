"""keel_norm.so, the C interface of keel/norm.h, by ctypes.

The library is looked for at the path that KEEL_NORM_LIBRARY names, then beside this file, then
where the system's loader finds it."""
import ctypes
import functools
import os
import pathlib
from typing import NamedTuple

ABI = 2
NAME = f"libkeel_norm.so.{ABI}"
ABSENT, F32, F64, BF16, I32, U8 = -1, 0, 1, 2, 3, 4
ALIGNMENT = 64
CPU, CUDA = 0, 1


class KeelError(ValueError):
    """A refusal by keel, with its own words: "[layer_norm] gain: expected (64), got (32)"."""


class Type(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("sizes", ctypes.POINTER(ctypes.c_int64))]


class Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("index", ctypes.c_int32)]


class Request(ctypes.Structure):
    _fields_ = [("op", ctypes.c_char_p), ("attributes", ctypes.c_char_p), ("device", Device),
                ("count", ctypes.c_int32), ("inputs", ctypes.POINTER(Type))]


class Executor(ctypes.Structure):
    _fields_ = [("run", ctypes.c_void_p), ("context", ctypes.c_void_p),
                ("threads", ctypes.c_int32), ("stream", ctypes.c_void_p)]


class Arrays(ctypes.Structure):
    _fields_ = [("inputs", ctypes.POINTER(ctypes.c_void_p)),
                ("outputs", ctypes.POINTER(ctypes.c_void_p)),
                ("input_strides", ctypes.POINTER(ctypes.POINTER(ctypes.c_int64))),
                ("output_strides", ctypes.c_void_p)]


class Op(NamedTuple):
    inputs: tuple  # names by place
    defaults: dict  # the text of every attribute's default, by name
    outputs: tuple  # names by place
    gradient: str  # exact, detached, surrogate or none
    groups: str  # what shares a statistic: rows, parts, sequences, columns, elements or none


def path():
    """Where the library is, or its name for the system's loader."""
    if named := os.environ.get("KEEL_NORM_LIBRARY"):
        return named
    beside = pathlib.Path(__file__).parent / NAME
    return str(beside) if beside.exists() else NAME


class _Place(ctypes.Structure):
    """Dl_info of dladdr."""
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("address", ctypes.c_void_p)]


def folder():
    """The folder of the library that is loaded. The system's loader found a library that was asked
    for by its bare name, and only the loader knows where."""
    place, function = _Place(), ctypes.cast(load().keel_abi, ctypes.c_void_p)
    try:
        found = ctypes.CDLL(None).dladdr(function, ctypes.byref(place))
    except AttributeError:  # a C library without dladdr
        found = 0
    return os.path.dirname(os.fsdecode(place.file) if found and place.file else path())


def _declare(library):
    pointers, text = ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p
    signatures = {
        "keel_abi": (ctypes.c_int32,),
        "keel_info": (text,),
        "keel_error": (text,),
        "keel_norm_ops": (text,), "keel_norm_facts": (text,),
        "keel_norm_prepare": (ctypes.c_int, ctypes.POINTER(Request), pointers),
        "keel_plan_free": (None, ctypes.c_void_p),
        "keel_plan_outputs": (ctypes.c_int32, ctypes.c_void_p),
        "keel_plan_output": (Type, ctypes.c_void_p, ctypes.c_int32),
        "keel_plan_workspace": (ctypes.c_int64, ctypes.c_void_p),
        "keel_plan_run": (ctypes.c_int, ctypes.c_void_p, pointers, pointers, ctypes.c_void_p,
                          ctypes.c_void_p),
        "keel_plan_run_strided": (ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Arrays),
                                  ctypes.c_void_p, ctypes.c_void_p),
        "keel_plan_takes_strides": (ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32,
                                    ctypes.POINTER(ctypes.c_int64)),
    }
    for name, (result, *arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


@functools.cache
def load():
    """The library. Raises ImportError, saying why, if there is none or it has another interface."""
    name = path()
    try:
        library = _declare(ctypes.CDLL(name))
    except (OSError, AttributeError) as error:
        raise ImportError(f"keel_norms: cannot load {name}: {error}; KEEL_NORM_LIBRARY names "
                          "the file") from error
    if (abi := library.keel_abi()) != ABI:
        raise ImportError(f"keel_norms: expected version {ABI} of keel/norm.h, {name} has {abi}")
    return library


def info():
    """One line on keel's version and the instruction set of its kernels."""
    return _told(load().keel_info())


def _expect(status):
    if status != 0:
        raise KeelError(load().keel_error().decode())


def _told(text):
    """A text of the library, which gives none if there is no memory for it."""
    if text is None:
        raise MemoryError(load().keel_error().decode())
    return text.decode()


@functools.cache
def ops():
    """The ops of the library by name."""
    table = {}
    library = load()
    for line, facts in zip(_told(library.keel_norm_ops()).splitlines(),
                           _told(library.keel_norm_facts()).splitlines()):
        op, inputs, attributes = line.split("\t")
        _, outputs, gradient, groups = facts.split("\t")
        table[op] = Op(tuple(inputs.split(",")),
                       dict(pair.split("=", 1) for pair in attributes.split()),
                       tuple(outputs.split(",")), gradient, groups)
    return table


def input_names(op, count):
    """The names of the first `count` inputs of an op."""
    known = ops()[op].inputs if op in ops() else ()
    return [*known, *(f"input {place}" for place in range(len(known), count))][:count]


class Plan:
    """An op with attributes and the types of its inputs, (dtype, sizes) or None for an absent one,
    on a device, (kind, index). Any thread may run it at any time."""

    def __init__(self, op, attributes, types, device):
        self._library = load()
        handle = ctypes.c_void_p()
        kept = [_type(given) for given in types]
        request = Request(op.encode(), attributes.encode(), Device(*device), len(kept),
                          (Type * len(kept))(*kept))
        _expect(self._library.keel_norm_prepare(ctypes.byref(request), ctypes.byref(handle)))
        self._handle = handle
        self._run = self._library.keel_plan_run
        self.outputs = [self._output(j) for j in range(self._library.keel_plan_outputs(handle))]
        self.workspace = self._library.keel_plan_workspace(handle)
        self._inputs = ctypes.c_void_p * len(kept)
        self._outputs = ctypes.c_void_p * len(self.outputs)

    def _output(self, place):
        given = self._library.keel_plan_output(self._handle, place)
        return given.dtype, tuple(given.sizes[:given.rank])

    def takes_strides(self, place, strides):
        """Whether an input may have these strides, counted in elements; else it must be copied."""
        return bool(self._library.keel_plan_takes_strides(self._handle, place, _table(strides)))

    def run(self, inputs, outputs, workspace, executor=None, strides=None):
        """All are addresses as numbers, None for what is absent; `executor` that of an Executor.
        `strides` has those of inputs that are not contiguous, by place."""
        arrays = self._inputs(*inputs), self._outputs(*outputs)
        if not strides:
            return _expect(self._run(self._handle, *arrays, workspace, executor))
        tables = (ctypes.POINTER(ctypes.c_int64) * len(inputs))()
        for place, given in strides.items():
            tables[place] = _table(given)
        return _expect(self._library.keel_plan_run_strided(
            self._handle, ctypes.byref(Arrays(*arrays, tables)), workspace, executor))

    def __del__(self):
        if getattr(self, "_handle", None):
            self._library.keel_plan_free(self._handle)


def _table(strides):
    return (ctypes.c_int64 * len(strides))(*strides)


def attributes_text(attributes):
    """Attributes as the library reads them, in one order, so that equal ones have one plan."""
    return " ".join(f"{name}={_text(name, value)}"
                    for name, value in sorted(dict(attributes).items()))


def _text(name, value):
    """A value as text: a number, a boolean or a word; a scalar of NumPy or PyTorch by its value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and (not value or any(map(str.isspace, value))):
        raise KeelError(f"{name}: expected a word, got {value!r}")
    if isinstance(value, (int, float, str)):
        return str(value)
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return _text(name, value.item())
    raise TypeError(f"{name}: expected a number, a boolean or a word, got {type(value).__name__}")


def _type(given):
    if given is None:
        return Type(ABSENT, 0, None)
    dtype, sizes = given
    return Type(dtype, len(sizes), (ctypes.c_int64 * len(sizes))(*sizes))


@functools.lru_cache(maxsize=1024)
def plan(op, attributes, types, device=(CPU, 0)):
    """A plan, the same object for the same arguments as long as it is in use."""
    return Plan(op, attributes, types, device)
