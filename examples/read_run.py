#!/usr/bin/env python3
"""A run's weights and metrics in Python, with NumPy alone. usage: read_run.py RUN"""
import json
import sys

import numpy as np

TYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1"}


def tensors(path):
    """The arrays of a safetensors file by name, and its metadata."""
    data = open(path, "rb").read()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    meta = header.pop("__metadata__", {})
    return {name: np.frombuffer(data[start:][slice(*t["data_offsets"])], TYPES[t["dtype"]])
            .reshape(t["shape"]) for name, t in header.items()}, meta


weights, _ = tensors(f"{sys.argv[1]}/checkpoints/best.safetensors")
for name, array in weights.items():
    print(f"{name} {array.shape}: mean {array.mean():.4f}, deviation {array.std():.4f}")
rows = [json.loads(line) for line in open(f"{sys.argv[1]}/metrics.jsonl") if line.endswith("\n")]
print("valid error by epoch:", [row["error"] for row in rows if row.get("split") == "valid"])
