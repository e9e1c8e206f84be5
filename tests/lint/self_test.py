"""Proves that each lint script finds what it is for: plants one violation at a time."""
import pathlib
import subprocess
import sys
import tempfile

import check_layers
import check_sizes

HERE = pathlib.Path(__file__).parent
TOP = "// A file.\n#pragma once\n"

# A small tree without a fault.
CLEAN = {
    "src/core/a.h": TOP + "#include <vector>\n",
    "src/ops/norm/b.h": TOP + '#include <fmt/format.h>\n#include "src/core/a.h"\n'
                        "// What it writes is read. Of two the first is taken. None is\n"
                        "// left behind. Those are kept. What follows: a label\n",
    "src/ops/norm/b.cpp": '#include "src/ops/norm/b.h"\n#include "norm_list.inc"\n',
    "backends/backends.cpp": '// Names all.\n#include "backends/cuda/c.h"\n',
    "backends/cuda/c.h": TOP + '#include <cuda_runtime.h>\n#include "src/runtime/backend.h"\n',
    "backends/onednn/simd/row-inl.h": "// Parts.\n#ifdef HWY_TARGET_TOGGLE\n#endif\n",
    "backends/onednn/primitives.cpp": "// Owner.\n#include <oneapi/dnnl/dnnl.hpp>\n",
    "backends/onednn/threads.cpp": "// Threads.\n#include <tbb/parallel_for.h>\n",
    "frontend/train/config.cpp": "// Recipes.\n#include <toml++/toml.h>\n",
    "bench/ops_bench.cpp": '// Speed.\n#include "frontend/compare/cases.h"\n',
    "tests/a_test.cpp": '// Tests.\n#include <Eigen/Dense>\n#include "tests/support/cases.h"\n'
                        'TEST_CASE("a, b") {\n  f("/tmp/x");\n}\nTEST_CASE("b") {}\n',
    "tools/setup": "#!/usr/bin/env bash\n# Sets up. --test\n",
    "tests/mutants/a.txt": "# Some.\nfile src/core/a.h\nterm: no pragma\n- #pragma once\n+\n",
    "backends/cuda/kernels/a.cu": "// A kernel.\nlaunch(a);\n",
    "tests/ptx/faults.txt": "# Some.\nsource a\ntests b\nno launch\n- launch\n+ skip\n",
    "README.md": "# keel\n\nSee [train](docs/cli.md#keel-train), `src/core/a.h`, "
                 "`src/ops/FILE.cpp` and `tools/setup --test`.\n\n"
                 "    build/keel train a --out b --recipe laptop --set train.lr=3 | head\n",
    "docs/cli.md": "# Options\n\n## keel train\n\n| `--out A` | where |\n\nShared: `--set`,\n"
                   "`--recipe`.\n",
    "docs/keys.md": "| `train.lr` | 1 |\n",
    "program/options.cpp": '// Options.\nvoid f() {\n  a.add_option("--out", b);\n'
                           '  a.add_flag("--set");\n  a.add_flag("--recipe");\n}\n',
    "frontend/nn/a.cpp": "// Local names.\nnamespace a {\nnamespace {\nstruct S {\n  int x;\n};\n"
                         "int f(int x, const S& s) { return x; }\n}\n}\n",
    "frontend/nn/b.cpp": "// The same in other namespaces, and of other types.\n"
                         "namespace b {\nnamespace {\nstruct S {};\n}\n}\nnamespace a {\n"
                         "int x(int y) { return y; }\nnamespace {\n"
                         "int f(double x, const S& s) { return 1; }\n}\n}\n",
    "frontend/meson.build": "# Parts.\nparts = {'io': files('io/a.cpp', 'text/b.cpp')}\n",
    "frontend/io/a.cpp": "// A.\nnamespace {\nconstexpr int kSize = 3;\n}\n",
    "models/a/laptop.toml": "[train]\n",
    "include/keel/a.h": TOP + '#include <fmt/format.h>\n#include "src/core/a.h"\n',
}

CYCLE = "a cycle of includes"
LONG_BODY = "".join(f"  x += {i};\n" for i in range(60))


def include(header):
    return f"// A file.\n#include {header}\n"


# Script, file, its content, and the complaint that is expected of the script.
PLANTED = [
    *(("check_docs", "docs/x.md", f"# X\n\n{line}\n", f":3: {message}") for line, message in (
        ("See [y](y.md).", "a link to y.md, and docs/y.md is not there"),
        ("See [y](../y.md).", "a link to ../y.md, and y.md is not there"),
        ("See [y](#y).", "a link to #y, and docs/x.md has no such heading"),
        ("See [y](cli.md#y).", "a link to cli.md#y, and docs/cli.md has no such heading"),
        ("See `src/core/x.h`.", "src/core/x.h is not there"),
        ("See `src/core/{a,x}.h`.", "src/core/x.h is not there"),
        ("See `src/core/*.cpp`.", "src/core/*.cpp is not there"),
        ("See `keel train --in x`.", "keel train has no option --in"),
        ("    keel trian a", "keel trian: no such subcommand"),
        ("    echo a | build/keel train --in x", "keel train has no option --in"),
        ("    A=b keel train a \\\n        --in x", "keel train has no option --in"),
        ("    keel train a --set train.rate=3", "no key is called train.rate"),
        ("    keel train a --recipe desktop", "no recipe is called desktop"),
        ("    keel train 'a", "not a command: No closing quotation"),
        ("    tools/setup --tset", "tools/setup has no option --tset"),
        ("    tools/steup", "tools/steup is not there"))),
    ("check_docs", "docs/x.md", "```sh\nkeel train --in x\n```\n", ":2: keel train has no"),
    ("check_docs", "program/x.cpp", '// X.\nvoid f() { a.add_flag("--in"); }\n',
     "docs/cli.md:1: the program has --in"),
    ("check_docs", "docs/cli.md",
     "# A\n\n## keel train\n\nShared: `--set`, `--out`,\n`--recipe`, `--in`.\n",
     ":1: the program has no option --in"),
    ("check_verdicts", "studies/x.cpp", "// A.\nvoid f(R& r) { r.near(1); }\n", ":2: a claim is"),
    ("check_results", "bench/results/x.md",
     "| PyTorch | keel, in turns | PyTorch / keel |\n|---|---|---|\n| 12 usual | 14 | 0.86 |\n"
     "| 1220 | 1141 | 0.86 |\n", ":4: the ratio 0.86 is not 1220.0 over 1141.0"),
    ("check_layers", "src/core/x.cpp", include('"src/graph/g.h"'), ":2: src/core may not include"),
    ("check_layers", "src/graph/x.cpp", include('"src/ops/o.h"'), ":2: src/graph may not include"),
    ("check_layers", "src/core/x.cpp", include('"norm_list.inc"'), ":2: src/core may not include"),
    ("check_layers", "src/passes/x.cpp", include('"src/autodiff/g.h"'), ":2: src/passes may not"),
    ("check_layers", "src/runtime/x.cpp", include('"backends/null/n.h"'), ":2: src stands before"),
    ("check_layers", "backends/onednn/x.cpp", include('"backends/cuda/c.h"'), ":2: backends/onedn"),
    ("check_layers", "frontend/nn/x.cpp", include('"src/runtime/r.h"'), ":2: frontend/nn may not"),
    ("check_layers", "frontend/data/x.cpp", include('"src/graph/g.h"'), ":2: frontend/data may"),
    ("check_layers", "frontend/train/x.cpp", include('"backends/backends.h"'), ":2: frontend/trai"),
    ("check_layers", "models/mlp/x.cpp", include('"frontend/optim/sgd.h"'), ":2: models may not"),
    ("check_layers", "tests/x.cpp", include('"program/options.h"'), ":2: tests may not"),
    ("check_layers", "tests/x.cpp", "// A.\nint i = std::clamp(1, 2, 3);\n", ":2: clamp without"),
    ("check_layers", "frontend/train/x.cpp", include('"src/ops/norm/b.h"'), ":2: only NORM_USERS"),
    ("check_layers", "other/x.cpp", include('"src/core/a.h"'), ":2: this folder is not in the"),
    ("check_layers", "src/core/x.cpp", include('"a.h"'), ':2: "a.h" is not written from the root'),
    ("check_layers", "src/core/x.cpp", include("<unistd.h>"), ":2: a library or system header"),
    ("check_layers", "backends/onednn/x.cpp", include("<Eigen/Dense>"), ":2: Eigen"),
    ("check_layers", "backends/onednn/x.cpp", include('"dnnl.hpp"'), ":2: oneDNN"),
    ("check_layers", "backends/onednn/x.cpp", include("<oneapi/tbb/task_arena.h>"), ":2: TBB"),
    ("check_layers", "backends/reference/x.cpp", include('"hwy/highway.h"'), ":2: Highway"),
    ("check_layers", "src/runtime/x.cpp", include("<cublasLt.h>"), ":2: CUDA"),
    ("check_layers", "models/mlp/x.cpp", include("<toml++/toml.h>"), ":2: toml++"),
    ("check_layers", "src/core/x.cpp", include("<CLI/CLI.hpp>"), ":2: CLI11"),
    ("check_layers", "src/core/x.h", "// A file.\n", ":1: no #pragma once"),
    *(("check_public_headers", "include/keel/x.h", f"{TOP}#include {header}\n", f":3: {message}")
      for header, message in (
          ("<oneapi/dnnl/dnnl.hpp>", "a public header includes <oneapi/dnnl/dnnl.hpp>"),
          ("<tbb/parallel_for.h>", "a public header includes <tbb/"),
          ("<hwy/highway.h>", "a public header includes <hwy/"),
          ("<cuda_runtime.h>", "a public header includes <cuda_runtime.h>"),
          ("<Eigen/Dense>", "a public header includes <Eigen/"),
          ("<nlohmann/json.hpp>", "a public header includes <nlohmann/"),
          ('"program/options.cpp"', "a public header includes program/options.cpp"),
          ('"src/core/x.h"', "src/core/x.h is not there"))),
    ("check_sizes", "src/core/x.cpp", "//\n" * 401, ":401: 401 lines"),
    ("check_sizes", "src/core/x.cpp", "// " + 98 * "x" + "\n", ":1: 101 columns"),
    ("check_sizes", "src/core/x.cpp", f"void f() {{\n{LONG_BODY}}}\n", ":1: f has 62 lines"),
    ("check_sizes", "backends/onednn/kernels/x.cpp",
     f"void f() {{\n{LONG_BODY}{LONG_BODY}}}\n", ":1: f has 122 lines, the cap is 80"),
    ("check_sizes", "tests/x_test.cpp", f'TEST_CASE("x") {{\n{LONG_BODY}}}\n', ":1: TEST_CASE has"),
    ("check_sizes", "tools/x.py", "def f(a, b, c, d, e, f):\n    pass\n", ":1: f has 6 parameters"),
    ("check_sizes", "backends/cuda/kernels/x.cu",
     "__global__ void __launch_bounds__(256, 2) k(int a, int b, std::pair<int, int> c, int d,\n"
     "    int e, int f) {\n}\n", ":1: k has 6 parameters"),
    *(("check_unity", path, f"// A file.\n{code}\n", f":2: {name} has a namesake in {other}")
      for path, code, name, other in (
          ("frontend/nn/x.cpp", "namespace a { namespace { int f(int, const S& t) {} } }", "f",
           "frontend/nn/a.cpp:7"),
          ("frontend/nn/x.cpp", "namespace a { namespace { class S {}; } }", "S",
           "frontend/nn/a.cpp:4"),
          ("frontend/text/b.cpp", "namespace { const char* kSize; }", "kSize",
           "frontend/io/a.cpp:3"))),
    *(("check_text", "program/x.cpp", f"// A file.\n  {code}\n", ":2: a message past")
      for code in ('fmt::print(stderr, "a");', "std::cerr << 1;", "std::clog << 1;", 'perror("a");',
                   'printf("a");', "if (a) write(STDERR_FILENO, b, 1);", "write(2, b, 1);")),
    ("check_text", "frontend/compare/walk/x.cpp", '// A file.\nstd::getenv("KEEL_THOROUGH");\n',
     ":2: a switch of the tests in the program"),
    *(("check_text", "src/core/x.cpp", f"// A file.\n// {mark}: more\n", f":2: {mark} left")
      for mark in ("TO" "DO", "FIX" "ME", "X" "XX", "HA" "CK")),
    *(("check_mutants", "tests/mutants/b.txt", f"file {file}\nsign: turned\n{change}\n", message)
      for file, change, message in (
          ("src/core/a.h", "- vectors\n+ vector", ":2: stale: occurs 0 times"),
          ("src/core/a.h", "- e\n+ i", ":2: stale: occurs 4 times"),
          ("src/core/b.h", "- vector\n+ list", ":2: stale: occurs 0 times"),
          ("src/core/a.h", "- vector\n+ vector", ":2: changes nothing"),
          ("src/core/a.h", "- vector", ":2: expected - and +"))),
    ("check_mutants", "tests/mutants/b.txt", "file src/core/a.h\nsing: s\n", ":2: expected file"),
    ("check_mutants", "tests/mutants/b.txt",
     "file src/core/a.h\ntests a*,c*\nterm: no vector\n- vector\n+ list\n", ":3: no test case is"),
    ("check_mutants", "src/ops/norm/norms.txt", "b B\n", ":1: expected at least 3 mutants of b"),
    ("check_mutants", "tests/ptx/faults.txt", "source a\ntests b\nx\n- lunch\n+ a\n",
     ":3: occurs 0 times in a.cu, expected once"),
    ("check_mutants", "tests/ptx/faults.txt", "source a\ntests z*\nx\n- launch\n+ a\n",
     ":3: no test case is called z*"),
    ("check_mutants", "backends/cuda/kernels/norm/b.cu", "// B.\nlaunch(b);\n",
     ": expected faults of it in tests/ptx/faults.txt, got none"),
    ("check_text", "src/core/x.cpp", "// A file.\nint a; \n", ":2: white space"),
    ("check_text", "src/core/x.cpp", "// A file.\r\n", ":1: white space"),
    ("check_text", "src/core/x.cpp", "// A file.\n\tint a;\n", ":2: a tab"),
    ("check_text", "src/core/x.cpp", '// A file.\nf("/tm' 'p/x");\n', ":2: a path of one machine"),
    ("check_text", "tests/x.cpp", '// A file.\nf("/wor' 'k/x");\n', ":2: a path of one machine"),
    ("check_text", "src/core/x.cpp", "// A file.", ":1: no newline at the end"),
    ("check_text", "src/core/x.cpp", "int a;\n", ":1: no opening comment"),
    ("check_text", "tools/x.py", "import os\n", ":1: no opening comment"),
    ("check_text", "tools/x", "#!/usr/bin/env bash\nls\n", ":1: no opening comment"),
    ("check_text", "models/x.toml", "name = '\udce4'\n", ":1: not UTF-8"),
]


def complaints(script, extra):
    """Runs a script on the clean tree with the extra files; its exit code and output."""
    with tempfile.TemporaryDirectory() as folder:
        for path, content in {**CLEAN, **extra}.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode("utf-8", "surrogateescape"))
        done = subprocess.run([sys.executable, HERE / f"{script}.py", folder],
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def check_cycles():
    """Whether a ring of folders is found, and none where there is none."""
    ring = check_layers.cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}})
    return ring == ["b", "c", "b"] and check_layers.cycle({"a": {"b", "c"}, "b": {"c"}}) is None


def main():
    failures = 0
    rings = complaints("check_layers", {"src/core/x.cpp": include('"backends/b.h"')})[1]
    if not check_cycles() or CYCLE not in rings:
        failures += 1
        print("self_test.py:1: check_layers does not see a cycle of folders")
    for script in ("check_docs", "check_layers", "check_mutants", "check_public_headers",
                   "check_sizes", "check_text", "check_unity"):
        code, output = complaints(script, {})
        if code != 0:
            failures += 1
            print(f"self_test.py:1: {script} complains about a clean tree:\n{output}")
    for script, path, content, expected in PLANTED:
        if " has " in expected and check_sizes.universal_ctags() is None:
            continue
        code, output = complaints(script, {path: content})
        # An include against the order of folders closes a ring as well.
        output = "".join(line for line in output.splitlines(True) if CYCLE not in line)
        wanted = expected if expected.startswith("docs/") else path + expected
        if code != 1 or not output.startswith(wanted) or output.count("\n") != 1:
            failures += 1
            print(f"self_test.py:1: {script} on {path}: expected {wanted}, got\n{output}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
