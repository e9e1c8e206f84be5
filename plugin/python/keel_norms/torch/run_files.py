"""Checkpoints of keel's program. A file is safetensors with a CRC-32 of its header and of every
tensor; docs/formats.md describes it."""
import json
import pathlib
import re
import zlib
from typing import NamedTuple

import numpy as np
import torch

from .._library import KeelError

_TYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "U8": np.uint8}
_OWN_CHECKSUM = re.compile(rb'("keel\.header_crc32":")([0-9a-f]{8})"')


class Run(NamedTuple):
    """The facts of a network in its checkpoint."""
    path: pathlib.Path
    task: str
    options: dict  # the recipe's table [model]
    assets: dict  # what the network took from the data: a vocabulary, names of classes
    tensors: dict  # parameters and states by keel's names, without an optimizer's moments
    step: int  # updates done


def checkpoint_path(path):
    """The best checkpoint of a run's folder, as `keel predict` takes it, or the file itself."""
    path = pathlib.Path(path)
    if not path.is_dir():
        return path
    if not (path / "checkpoints").is_dir():
        raise FileNotFoundError(f"{path}: expected a checkpoint or a run's folder, got a folder "
                                "without checkpoints")
    return path / "checkpoints" / "best.safetensors"


def read_run(path):
    """The Run of a checkpoint, or of the best one in a run's folder."""
    path = checkpoint_path(path)
    metadata, tensors = _read(path)
    if "model" not in metadata or "recipe" not in metadata:
        raise KeelError(f"{path}: expected a checkpoint of keel, got no name of its task")
    recipe = _toml().loads(metadata["recipe"])
    kept = {name: tensor for name, tensor in tensors.items()
            if "." not in name and ":" not in name}  # moments are NAME.m, memories carry:NAME
    for name, tensor in kept.items():
        if not torch.isfinite(tensor).all():
            raise KeelError(f"{path}: tensor {name}: expected finite numbers")
    assets = {key.removeprefix("asset."): text for key, text in metadata.items()
              if key.startswith("asset.")}
    return Run(path, metadata["model"], recipe["model"], assets, kept, int(metadata["step"]))


def _toml():
    try:
        import tomllib
    except ImportError:  # Python 3.10
        try:
            import tomli as tomllib
        except ImportError:
            raise ImportError("keel_norms: Python 3.10 reads recipes by the package tomli, which "
                              "is not installed; Python 3.11 needs none") from None
    return tomllib


def _read(path):
    """The metadata and the tensors of a file, all of whose checksums are right."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, body = data[8:8 + size], memoryview(data)[8 + size:]
    own = _OWN_CHECKSUM.search(header)
    if len(header) != size or own is None:
        raise KeelError(f"{path}: expected a checkpoint of keel, got another file, or a part of it")
    blank = header[:own.start(2)] + b"0" * 8 + header[own.end(2):]
    if zlib.crc32(blank) != int(own[2], 16):
        raise KeelError(f"{path}: the header does not match its checksum")
    facts = json.loads(header)
    metadata = facts.pop("__metadata__")
    return metadata, {name: _tensor(path, name, fact, body, metadata) for name, fact in
                      facts.items() if fact["dtype"] in _TYPES}


def _tensor(path, name, fact, body, metadata):
    first, last = fact["data_offsets"]
    if last > len(body):
        raise KeelError(f"{path}: tensor {name}: the file is cut")
    found = body[first:last]
    if f"{zlib.crc32(found):08x}" != metadata.get(f"keel.crc32:{name}"):
        raise KeelError(f"{path}: tensor {name} does not match its checksum")
    array = np.frombuffer(found, _TYPES[fact["dtype"]]).reshape(fact["shape"])
    return torch.from_numpy(array.copy())
