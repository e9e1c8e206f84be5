#!/usr/bin/env python3
"""What PyTorch reaches on this GPU, for the tables beside keel's.

usage: bench/torch_gpu.py ceilings | convolutions | norms

ceilings      bytes a second of a copy, operations a second of products in float32, tf32 and bf16
convolutions  us of the 3x3 convolutions of ResNet-20, forward, dx and dw: with tf32 as PyTorch
              comes, without it, and by algorithms that give the same bits twice
norms         us of forward and backward of torch.nn.LayerNorm and of keel_norms' (KEEL_NORM_LIBRARY
              names the library), as a user calls them
Each number is a median of GPU events, after warming up.
"""
import pathlib
import statistics
import sys

import torch

PICTURES = 128
LAYERS = ((16, 32), (32, 16), (64, 8))  # channels and side


def timed(call, rounds=15):
    """The median of the seconds of a call."""
    for _ in range(4):
        call()
    times = []
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return statistics.median(times)


def replayed(call):
    """The call as a CUDA graph, so that the host's time is not measured."""
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def ceilings():
    x = torch.randn(1 << 29, device="cuda")
    y = torch.empty_like(x)
    print(f"copy {2 * x.nbytes / timed(lambda: y.copy_(x)) / 1e12:.2f} TB/s")
    del x, y
    n = 8192
    for name, dtype, tf32 in (("float32", torch.float32, False), ("tf32", torch.float32, True),
                              ("bf16", torch.bfloat16, False)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        a, b = (torch.randn(n, n, device="cuda", dtype=dtype) for _ in range(2))
        print(f"{name} {2 * n ** 3 / timed(lambda: a @ b) / 1e12:.0f} TFLOP/s", flush=True)


def convolution(channels, side, layout):
    """The us of forward, dx and dw."""
    x = torch.randn(PICTURES, channels, side, side, device="cuda").contiguous(memory_format=layout)
    w = torch.randn(channels, channels, 3, 3, device="cuda").contiguous(memory_format=layout)
    dy = torch.randn_like(x)

    def gradient(of_x, of_w):
        return torch.ops.aten.convolution_backward(
            dy, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [of_x, of_w, False])
    calls = (lambda: torch.nn.functional.conv2d(x, w, padding=1),
             lambda: gradient(True, False), lambda: gradient(False, True))
    return [timed(replayed(call)) * 1e6 for call in calls]


def convolutions():
    torch.backends.cudnn.benchmark = True
    for tf32, deterministic in ((True, False), (False, False), (False, True)):
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.deterministic = deterministic
        for layout in (torch.contiguous_format, torch.channels_last):
            for channels, side in LAYERS:
                times = ", ".join(f"{us:.1f}" for us in convolution(channels, side, layout))
                print(f"tf32={tf32} deterministic={deterministic} {layout} "
                      f"{channels}x{side}x{side}: {times}", flush=True)


def norms():
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "plugin/python"))
    from keel_norms import torch as knn
    print("rows x width, type: PyTorch's us, keel_norms' us")
    for rows, width in ((256, 512), (4096, 512), (65536, 1024)):
        for dtype in (torch.float32, torch.bfloat16):
            times = []
            for make in (torch.nn.LayerNorm, knn.LayerNorm):
                norm = make(width).cuda().to(dtype)
                x = torch.randn(rows, width, device="cuda", dtype=dtype, requires_grad=True)
                dy = torch.randn_like(x)
                inputs = [x, *norm.parameters()]
                times.append(timed(lambda: torch.autograd.grad(norm(x), inputs, dy), 50) * 1e6)
            print(f"{rows}x{width} {dtype}: " + ", ".join(f"{us:.1f}" for us in times), flush=True)


if __name__ == "__main__":
    {"ceilings": ceilings, "convolutions": convolutions, "norms": norms}[sys.argv[1]]()
