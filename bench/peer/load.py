"""Loads PyTorch."""


def tune_gpu(tf32):
    """The precision of our products, and convolutions by the fastest algorithm."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True


try:
    tune(THREADS)
    import torch
    from torch.nn import functional as F
    torch.set_num_threads(THREADS)
    torch.set_flush_denormal(True)
    torch.empty(0, device=DEVICE)
    if DEVICE == "cuda":
        tune_gpu("tf32" in sys.argv[3:])
    say({"torch": torch.__version__})
except Exception as problem:
    leave(problem)
