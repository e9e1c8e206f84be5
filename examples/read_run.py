#!/usr/bin/env python3
"""A run's weights and metrics in Python, with only NumPy. usage: read_run.py RUN"""
import json
import sys

import numpy as np

TYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1"}

data = open(f"{sys.argv[1]}/checkpoints/best.safetensors", "rb").read()
start = 8 + int.from_bytes(data[:8], "little")  # of the numbers, after the header
for name, tensor in json.loads(data[8:start]).items():
    if name != "__metadata__":
        first, end = (start + offset for offset in tensor["data_offsets"])
        array = np.frombuffer(data[first:end], TYPES[tensor["dtype"]]).reshape(tensor["shape"])
        print(f"{name} {array.shape}: mean {array.mean():.4f}, deviation {array.std():.4f}")

rows = [json.loads(line) for line in open(f"{sys.argv[1]}/metrics.jsonl") if line.endswith("\n")]
print("valid error by epoch:", [row["error"] for row in rows if row.get("split") == "valid"])
