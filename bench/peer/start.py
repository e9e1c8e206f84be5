"""Another library beside keel: the child process of `keel bench ... --peer torch` or `jax`.

    python3 -c SCRIPT DEVICE THREADS [tf32]     (cpu or cuda; 0 threads: all)

SCRIPT is start.py, then the library's own files, for PyTorch those of this folder and for JAX those
of jax/, then serve.py, as bench/meson.build has them. Their load.py loads the library and says
{"torch": VERSION}, {"jax": VERSION} or {"missing": REASON}; serve.py answers the requests.
"""
import ctypes
import gc
import json
import math
import os
import sys
import time
import warnings


def tune(threads):
    """Sets what a careful user sets before a library is loaded. Variables that are set already
    stay, but for the number of threads."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        if " avx512bw " in info.read():
            os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx512")
            os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
    # Freed memory is kept: taking it from the system again costs more than most norms.
    m_trim_threshold, m_mmap_max = -1, -4
    allocator = ctypes.CDLL(None)
    allocator.mallopt(m_mmap_max, 0)
    allocator.mallopt(m_trim_threshold, -1)
    gc.disable()


def say(answer):
    print(json.dumps(answer, allow_nan=False), flush=True)


def leave(problem):
    """For want of the library; one that is broken is as good as none."""
    say({"missing": " ".join(str(problem).split())})
    sys.exit(0)


DEVICE = sys.argv[1]
THREADS = int(sys.argv[2]) or len(os.sched_getaffinity(0))
sys.path = [folder for folder in sys.path if folder]  # nothing of the working directory
warnings.simplefilter("ignore")
