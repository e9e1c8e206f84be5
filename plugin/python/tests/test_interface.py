"""The promises of keel/norm.h about wrong calls, the caller's threads and a lack of memory."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from keel_norms import _library  # noqa: E402

USAGE = 2
ROWS, WIDTH = 256, 512
WORK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, WORK, ctypes.c_void_p)
BODY = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
FOR = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, BODY,
                       ctypes.c_void_p)

# An allocator that has no memory once it is told so.
ALLOCATOR = """
#include <cstdlib>
#include <new>
extern "C" { bool has_none = false; }
void* operator new(std::size_t size) {
  void* memory = has_none ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
"""
WITHOUT_MEMORY = """
import ctypes, sys
keel = ctypes.CDLL(sys.argv[1])
has_none = ctypes.c_bool.in_dll(ctypes.CDLL(sys.argv[2]), "has_none")
for name in ("keel_info", "keel_norm_ops", "keel_norm_facts"):
    text = getattr(keel, name)
    text.restype = keel.keel_error.restype = ctypes.c_char_p
    has_none.value = True
    assert text() is None, name
    has_none.value = False
    assert b"memory" in keel.keel_error(), keel.keel_error()
    assert b"\\n" in text() or b"keel " in text()
"""


class Calls(unittest.TestCase):
    def setUp(self):
        self.keel = _library.load()
        self.plan = _library.plan("layer_norm", "", ((_library.F32, (ROWS, WIDTH)),))
        self.x = (ctypes.c_float * (ROWS * WIDTH))(*range(ROWS * WIDTH))
        self.results = [(ctypes.c_float * n)() for n in (ROWS * WIDTH, ROWS, ROWS)]
        self.inputs = (ctypes.c_void_p * 1)(ctypes.addressof(self.x))
        self.outputs = (ctypes.c_void_p * 3)(*map(ctypes.addressof, self.results))

    def run_plan(self, inputs, outputs, executor=None):
        """The status, and the words of what failed."""
        given = executor and ctypes.byref(executor)
        status = self.keel.keel_plan_run(self.plan._handle, inputs, outputs, None, given)
        return status, self.keel.keel_error().decode()

    def test_tables_that_are_missing(self):
        self.assertEqual(self.run_plan(self.inputs, self.outputs)[0], 0)
        for name, inputs, outputs in (("inputs", None, self.outputs),
                                      ("outputs", self.inputs, None)):
            status, words = self.run_plan(inputs, outputs)
            self.assertEqual(status, USAGE)
            self.assertIn(f"[layer_norm] {name}: expected", words)

    def on(self, run, context=None):
        address = ctypes.cast(run, ctypes.c_void_p)
        return self.run_plan(self.inputs, self.outputs, _library.Executor(address, context, 2))

    def test_blocks_that_are_left(self):
        ranges = {"all": lambda n: ((0, n),), "one left": lambda n: ((0, n - 1),),
                  "none": lambda n: (), "in two parts": lambda n: ((n // 2, n), (0, n // 2))}
        for name, parts in ranges.items():
            @RUN
            def run(_, blocks, work, argument, parts=parts):
                self.assertGreater(blocks, 1)
                for first, last in parts(blocks):
                    work(argument, first, last)

            with self.subTest(ranges=name):
                status, words = self.on(run)
                is_whole = name in ("all", "in two parts")
                self.assertEqual(status, 0 if is_whole else USAGE)
                self.assertTrue(is_whole or "every block once" in words, words)

    def test_a_parallel_for_that_fails(self):
        run = self.keel.keel_run_parallel_for
        for status in (0, 3, 0):
            @FOR
            def call(begin, end, _, body, argument):
                body(begin, end, argument)
                return status

            holder = ctypes.c_void_p(ctypes.cast(call, ctypes.c_void_p).value)
            got, words = self.on(run, ctypes.addressof(holder))
            self.assertEqual(got, USAGE if status else 0)
            if status:
                self.assertIn("the parallel for failed with 3", words)


class Memory(unittest.TestCase):
    @unittest.skipUnless(shutil.which("c++"), "needs a compiler")
    def test_a_lack_of_memory_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            source, library = pathlib.Path(folder) / "none.cpp", pathlib.Path(folder) / "none.so"
            source.write_text(ALLOCATOR, encoding="utf-8")
            subprocess.run(["c++", "-shared", "-fPIC", source, "-o", library], check=True)
            done = subprocess.run(
                [sys.executable, "-c", WITHOUT_MEMORY, _library.path(), str(library)],
                env={**os.environ, "LD_PRELOAD": str(library)}, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
