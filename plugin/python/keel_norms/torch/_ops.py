"""torch.ops.keel_norms: keel's ops for PyTorch's dispatcher, made from the table of norms, for
tensors on CPUs and on GPUs. All tensors of a call lie on one device.

An op takes the inputs of keel by place, of which all but x may be None, and the attributes as text.
It gives every output of keel; one that does not apply has the shape (0). Ops are pure: states come
in as inputs and go out as outputs. Only `commit` writes: next states into states.

The kernels are those of libkeel_norm_torch.so, which lies beside libkeel_norm.so. Where it is
missing, or the variable KEEL_NORM_BINDING is "ctypes", they are those of this file, which call
keel/norm.h by ctypes and take longer for a call."""
import ctypes
import functools
import os
import warnings

import torch

from .. import _library
from .._norms import ALL
from . import _shapes

# By name; a dictionary of the module, so that torch.compile reads it and does not look into it.
OPS = _library.ops()

_DTYPES = {torch.float32: _library.F32, torch.float64: _library.F64,
           torch.bfloat16: _library.BF16, torch.int32: _library.I32, torch.uint8: _library.U8}
_TYPES = {number: dtype for dtype, number in _DTYPES.items()}
_FLOATS = "float32 or float64"
_EXPECTED = {"mask": "uint8", "step": "int32"}
_CPU = torch.device("cpu")
_ops = torch.library.Library("keel_norms", "DEF")


@functools.cache
def _parallel_for():
    """PyTorch's own threads as an executor's run: address of the function, and its holder."""
    try:
        function = ctypes.CDLL("libtorch_cpu.so").torch_parallel_for
    except (OSError, AttributeError) as error:
        raise ImportError("keel_norms: expected a PyTorch of 2.10 or newer, whose threads C can "
                          f"use, got {torch.__version__}: {error}") from error
    address = ctypes.cast(function, ctypes.c_void_p)
    run = ctypes.cast(_library.load().keel_run_parallel_for, ctypes.c_void_p)
    return run, ctypes.pointer(address)


_parallel_for()  # what PyTorch lacks shows at the import, not at the first call


# Executors and plans are made once, for a call may take no longer than the kernel that it starts.
@functools.cache
def _executor(threads):
    run_of, holder = _parallel_for()
    executor = _library.Executor(run_of, ctypes.cast(holder, ctypes.c_void_p), threads)
    return executor, ctypes.addressof(executor)


@functools.lru_cache(maxsize=64)
def _stream_executor(stream):
    """An executor whose stream is a cudaStream_t."""
    executor = _library.Executor(None, None, 1, stream)
    return executor, ctypes.addressof(executor)


def _executor_on(device):
    """The address of an executor of PyTorch's own threads, or of its current stream of a GPU."""
    if device.type == "cuda":
        return _stream_executor(torch.cuda.current_stream(device).cuda_stream)[1]
    return _executor(torch.get_num_threads())[1]


def _device_of(op, tensors):
    """The device on which all tensors lie."""
    found = _CPU
    for place, tensor in enumerate(t for t in tensors if t is not None):
        own = tensor.device if tensor.is_cuda else _CPU
        if place > 0 and own != found:
            raise ValueError(f"[{op}] expected all tensors on one device, got {found} and {own}")
        found = own
    return found


def _ready(tensor):
    """The tensor, or a copy that keel can read: contiguous, and on a GPU aligned to 16 bytes."""
    tensor = tensor.contiguous()
    is_off = tensor.is_cuda and tensor.data_ptr() % 16
    return tensor.clone() if is_off else tensor


def _made_readable(plan, tensors):
    """The tensors, or copies of those that keel does not read in place; and the strides of those
    that are not contiguous, by place."""
    ready, strides = list(tensors), {}
    for place, tensor in enumerate(tensors):
        if tensor is None:
            continue
        if not tensor.is_contiguous() and plan.takes_strides(place, tensor.stride()):
            strides[place] = tensor.stride()
        else:
            ready[place] = _ready(tensor)
    return ready, strides


@functools.lru_cache(maxsize=1024)
def _plan(op, attributes, types, device=_CPU):
    """A plan and the sizes and element types of its outputs; `types` are those of PyTorch."""
    for given, name in zip(types, OPS[op].inputs):
        if given is not None and given[0] not in _DTYPES:
            raise TypeError(f"[{op}] {_said(op, name)}: expected {_EXPECTED.get(name, _FLOATS)}, "
                            f"got {given[0]}")
    try:
        plan = _library.plan(op, attributes, tuple(
            None if given is None else (_DTYPES[given[0]], tuple(given[1])) for given in types),
            (_library.CUDA, device.index) if device.type == "cuda" else (_library.CPU, 0))
    except _library.KeelError as error:
        # A sum is refused in the words of its norm.
        words = str(error).replace("] gain:", f"] {_said(op, 'gain')}:")
        raise _library.KeelError(words) from None
    return plan, [(sizes, _TYPES[dtype]) for dtype, sizes in plan.outputs]


def run(op, tensors, attributes):
    """The outputs of an op, past PyTorch's dispatcher."""
    device = _device_of(op, tensors)
    plan, results = _plan(op, attributes, tuple([None if t is None else (t.dtype, t.shape)
                                                 for t in tensors]), device)
    tensors, strides = _made_readable(plan, tensors)
    outputs = [torch.empty(sizes, dtype=dtype, device=device) for sizes, dtype in results]
    workspace = None
    if plan.workspace:  # PyTorch aligns to 64 bytes
        workspace = torch.empty(plan.workspace, dtype=torch.uint8, device=device)
    plan.run([None if t is None else t.data_ptr() for t in tensors],
             [t.data_ptr() for t in outputs], workspace if workspace is None
             else workspace.data_ptr(), _executor_on(device), strides)
    return tuple(outputs)


def _enter_kernels(names):
    """Enters the kernels of libkeel_norm_torch.so for the ops; False where there are none."""
    path = os.path.join(_library.folder(), "libkeel_norm_torch.so")
    if os.environ.get("KEEL_NORM_BINDING") == "ctypes" or not os.path.exists(path):
        return False
    enter = ctypes.CDLL(path).keel_norm_torch
    enter.restype, enter.argtypes = ctypes.c_char_p, (ctypes.POINTER(ctypes.c_char_p),
                                                      ctypes.c_int32)
    failure = enter((ctypes.c_char_p * len(names))(*map(str.encode, names)), len(names))
    if failure is not None:
        warnings.warn(f"keel_norms: {path}: {failure.decode()}; calls go by ctypes and take longer",
                      RuntimeWarning, stacklevel=2)
    return failure is None


def attributes_of(op, text):
    """All attributes of an op by name, the defaults included."""
    given = dict(pair.split("=", 1) for pair in text.split())
    return {**OPS[op].defaults, **given}


def _fake_forward(norm, tensors, text):
    x = tensors[0]  # v of weight_norm
    dtypes = {"next_step": torch.int32, ALL[norm].outputs[0]: x.dtype}
    shapes = _shapes.forward(norm, x, attributes_of(norm, text))
    return tuple(x.new_empty(shape, dtype=dtypes.get(name, _of_parameters(x)))
                 for name, shape in zip(ALL[norm].outputs, shapes))


def _fake_backward(norm, tensors, text):
    op = norm + "_backward"
    values = dict(zip(OPS[op].inputs, tensors))
    shapes = _shapes.backward(norm, values, attributes_of(op, text))
    like = values["dw" if norm == "weight_norm" else "dy"]
    return tuple(like.new_empty(shapes.get(name, _shapes.NONE),
                                dtype=like.dtype if name == "dx" else _of_parameters(like))
                 for name in ALL[norm].gradients)


def _of_parameters(x):
    """The type of statistics, parameters and their gradients."""
    return torch.float32 if x.dtype == torch.bfloat16 else x.dtype


def _define(op, outputs, fake):
    inputs = OPS[op].inputs
    # x may be absent in the backward of a norm that does not need it.
    is_forward = not op.endswith("_backward")
    kinds = [f"Tensor{'' if is_forward and place == 0 else '?'} {name}"
             for place, name in enumerate(inputs)]
    results = ", ".join(["Tensor"] * outputs)
    _ops.define(f"{op}({', '.join(kinds)}, str attributes='') -> "
                f"{results if outputs == 1 else f'({results})'}")

    def kernel(*arguments):
        made = run(op, *_split(arguments, len(inputs)))
        return made[0] if outputs == 1 else made

    def shapes(*arguments):
        tensors, text = _split(arguments, len(inputs))
        made = fake(tensors, text)
        return made[0] if outputs == 1 else made

    if not IS_COMPILED:
        _ops.impl(op, kernel, "CPU")
        _ops.impl(op, kernel, "CUDA")
    torch.library.register_fake(f"keel_norms::{op}", shapes, lib=_ops)


def _split(arguments, count):
    tensors, rest = arguments[:count], arguments[count:]
    return tensors, rest[0] if rest else ""


def _commit(states, following):
    following = [value.to(state.dtype) for state, value in zip(states, following)]
    if all(bool(torch.isfinite(value).all()) for value in following):
        for state, value in zip(states, following):
            state.copy_(value)


def commit_unseen(states, following):
    """The same without a look at the numbers: nobody waits for a GPU, and torch.compile can trace
    it."""
    following = [value.to(state.dtype) for state, value in zip(states, following)]
    found = [torch.isfinite(value).all() for value in following if value.is_floating_point()]
    is_finite = functools.reduce(torch.logical_and, found)
    for state, value in zip(states, following):
        state.copy_(torch.where(is_finite, value, state))


def _no_shapes(states, following):
    pass


_NAMES = [op for norm in ALL for op in (norm, norm + "_backward")]
# Whether calls go by libkeel_norm_torch.so.
IS_COMPILED = _enter_kernels(_NAMES)
for _norm, _facts in ALL.items():
    _define(_norm, len(_facts.outputs), functools.partial(_fake_forward, _norm))
    _define(_norm + "_backward", len(_facts.gradients), functools.partial(_fake_backward, _norm))
_ops.define("commit(Tensor(a!)[] states, Tensor[] following) -> ()")
if not IS_COMPILED:
    _ops.impl("commit", _commit, "CPU")
_ops.impl("commit", commit_unseen, "CUDA")
torch.library.register_fake("keel_norms::commit", _no_shapes, lib=_ops)

OVERLOADS = {op: getattr(torch.ops.keel_norms, op).default for op in _NAMES}
commit = torch.ops.keel_norms.commit.default


def call(op, tensors, attributes):
    """The outputs of an op as a tuple."""
    if torch.compiler.is_compiling():
        result = OVERLOADS[op](*tensors, attributes)
    else:
        try:
            result = OVERLOADS[op](*tensors, attributes)
        except (ValueError, RuntimeError) as error:
            raise refusal(op, tensors, attributes, error) from None
    return result if isinstance(result, (tuple, list)) else (result,)


caches_of_texts = []


def refusal(op, tensors, attributes, error):
    """The error of a kernel; what keel refuses has the same kind and words by either library."""
    for cached in caches_of_texts:
        cached.cache_clear()
    try:
        device = _device_of(op, tensors)
        _plan(op, attributes,
              tuple([None if t is None else (t.dtype, t.shape) for t in tensors]), device)
    except (TypeError, ValueError) as refused:  # a KeelError is a ValueError
        return refused
    return error


def no_tensor(op, given):
    """The error of inputs of which one is no tensor; None if all are."""
    for name, value in zip(OPS[op].inputs, given):
        if value is not None and not isinstance(value, torch.Tensor):
            return TypeError(f"[{op}] {_said(op, name)}: expected a tensor, got "
                             f"{type(value).__name__}")
    return None


def unlike(op, x, given):
    """The error of a tensor without numbers beside one that has some: in C++ it would count as
    absent."""
    return _library.KeelError(f"[{op}] expected all tensors on one device, got {x.device} and "
                              f"{given.device}")


def _said(op, name):
    """The name of an input here: weight where PyTorch has that word, too."""
    is_weight = name == "gain" and not op.startswith("scale_norm")
    return "weight" if is_weight else name
