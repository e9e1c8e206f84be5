"""keel_norms.torch on GPUs. What needs a GPU is skipped where there is none. tests/plugin of keel
holds the same kernels to the judge on an emulator."""
import os
import pathlib
import subprocess
import sys
import unittest

import torch
from torch._subclasses import FakeTensorMode

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import KeelError, _library  # noqa: E402
from keel_norms import torch as knn  # noqa: E402
from keel_norms._norms import NORMS  # noqa: E402
from keel_norms.torch import _ops  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from test_binding import calls  # noqa: E402

HAS_GPU = torch.cuda.is_available()
NAMES = [op for norm in NORMS for op in (norm, norm + "_backward")]
X = ((_library.F32, (4, 6)),)


def on_gpu(value):
    return None if value is None else value.cuda()


class WithoutGpu(unittest.TestCase):
    def test_every_op_has_a_kernel_for_gpus(self):
        for op in (*NAMES, "commit"):
            with self.subTest(op=op):
                self.assertTrue(torch._C._dispatch_has_kernel_for_dispatch_key(
                    f"keel_norms::{op}", "CUDA"))

    def test_what_a_gpu_would_give_lies_there(self):
        with FakeTensorMode():
            x, gain = torch.empty(4, 6, device="cuda"), torch.empty(6, device="cuda")
            for output in torch.ops.keel_norms.layer_norm(x, gain, None, ""):
                self.assertEqual(output.device.type, "cuda")

    def test_where_keels_kernels_for_gpus_are_missing_it_says_so(self):
        program = ("from keel_norms import _library as l\n"
                   "try: l.plan('rms_norm', '', ((l.F32, (4, 6)),), (l.CUDA, 0))\n"
                   "except l.KeelError as error: print(error)")
        environment = {**os.environ, "KEEL_NORM_CUDA_LIBRARY": "/nowhere/kernels.so",
                       "PYTHONPATH": os.pathsep.join(sys.path)}
        said = subprocess.run([sys.executable, "-c", program], env=environment, text=True,
                              capture_output=True, check=True).stdout
        self.assertRegex(said, r"CUDA: keel's kernels for GPUs cannot be loaded: /nowhere/kernels")

    @unittest.skipIf(HAS_GPU, "there is a GPU")
    def test_a_plan_on_a_gpu_is_refused(self):
        with self.assertRaises(KeelError):
            _library.plan("rms_norm", "", X, (_library.CUDA, 0))
        with self.assertRaisesRegex(KeelError, "expected a kind of enum keel_device_kind, got 5"):
            _library.plan("rms_norm", "", X, (5, 0))

    def test_the_states_move_without_a_look_at_the_numbers(self):
        """The commits of a GPU, on tensors of the CPU."""
        for bad in (None, float("nan"), float("inf")):
            states = [torch.zeros(3), torch.zeros((), dtype=torch.int32),
                      torch.zeros(2, dtype=torch.float16)]
            following = [torch.ones(3), torch.ones((), dtype=torch.int32), torch.ones(2)]
            if bad is not None:
                following[2][1] = bad
            _ops.commit_unseen(states, following)
            for state in states:
                self.assertEqual(float(state.float().mean()), float(bad is None))

    def test_tensors_of_the_cpu_by_any_name_are_on_one_device(self):
        x = torch.randn(4, 6)
        y = _ops.call("layer_norm", (x, torch.ones(6, device="cpu:0"), None), "")[0]
        torch.testing.assert_close(y, torch.nn.functional.layer_norm(x, (6,)))


@unittest.skipUnless(HAS_GPU, "no GPU")
class OnGpu(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)

    def test_every_op_agrees_with_the_cpu(self):
        for norm in NORMS:
            for op, inputs, text in calls(norm, torch.float32, False):
                with self.subTest(op=op):
                    pairs = zip(_ops.call(op, list(map(on_gpu, inputs)), text),
                                _ops.call(op, inputs, text), strict=True)
                    for got, expected in pairs:
                        torch.testing.assert_close(got.cpu(), expected, rtol=1e-5, atol=1e-5)

    def test_a_module_trains_as_on_the_cpu(self):
        x = torch.randn(32, 8)
        host, device = knn.PowerNorm(8, warmup=2), knn.PowerNorm(8, warmup=2).cuda()
        for _ in range(4):
            for module, batch in ((host, x), (device, x.cuda())):
                (module(batch) ** 2).sum().backward()
        torch.testing.assert_close(device.weight.grad.cpu(), host.weight.grad, rtol=1e-4,
                                   atol=1e-4)
        for name, state in host.named_buffers():
            torch.testing.assert_close(device.get_buffer(name).cpu(), state, rtol=1e-4, atol=1e-4)

    def test_the_work_is_on_the_current_stream(self):
        x = torch.randn(4096, 1024, device="cuda")
        expected = _ops.call("rms_norm", (x, None, None), "")[0]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(10_000_000)
            moved = x + 0
            y = _ops.call("rms_norm", (moved, None, None), "")[0]
        stream.synchronize()
        self.assertTrue(torch.equal(y, expected))

    def test_a_graph_is_captured_and_replayed(self):
        norm = knn.LayerNorm(64).cuda()
        x = torch.randn(16, 64, device="cuda")
        norm(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            y = norm(x)
        x.copy_(torch.randn(16, 64))
        graph.replay()
        torch.testing.assert_close(y, torch.nn.functional.layer_norm(x, (64,)))

    def test_refusals(self):
        x = torch.randn(4, 6, device="cuda")
        with self.assertRaisesRegex(KeelError, "the kernel of cuda takes f32 or bf16, got f64"):
            _ops.call("layer_norm", (x.double(), None, None), "")
        with self.assertRaisesRegex(ValueError, "one device, got cuda:0 and cpu"):
            _ops.call("layer_norm", (x, torch.ones(6), None), "")

    def test_views_that_begin_anywhere(self):
        x = torch.randn(4 * 8 + 1, device="cuda")[1:].view(4, 8)
        y = _ops.call("layer_norm", (x, None, None), "")[0]
        torch.testing.assert_close(y, torch.nn.functional.layer_norm(x, (8,)))


if __name__ == "__main__":
    unittest.main()
