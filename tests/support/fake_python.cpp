#include "tests/support/fake_python.h"

#include <cstdlib>

namespace keel::test {

const char* const kDetachNormPeer = R"(#!/usr/bin/env python3
import json, struct, sys
def say(answer):
    print(json.dumps(answer), flush=True)
def probe(values):
    count = min(16, len(values))
    return [values[i * len(values) // count] for i in range(count)]
def rows(values, width):
    return [values[i:i + width] for i in range(0, len(values), width)]
def read(facts):
    count = facts["shape"][0] * facts["shape"][1]
    return struct.unpack(f"{count}f", sys.stdin.buffer.read(4 * count))
version = "fake on " + " ".join(sys.argv[3:])
say({"torch": version, "jax": version})
for line in sys.stdin.buffer:
    request = json.loads(line)
    if "rounds" in request:
        seconds = []
        for mode in request["modes"]:
            unit = request["repeats"] * (1e-6 if mode == "usual" else 2e-6)
            seconds += [[unit] * request["rounds"], [3 * unit] * request["rounds"]]
        say({"seconds": seconds})
        continue
    x, dy = [read(facts) for facts in request["tensors"]]
    if request["case"]["norm"]["name"] != "detachnorm":
        reason = {"reason": "no " + request["case"]["norm"]["name"]}
        say({"modes": {mode: reason for mode in request["modes"]}})
        continue
    y, dx, width = [], [], request["tensors"][0]["shape"][1]
    for row, slope in zip(rows(x, width), rows(dy, width)):
        mean = sum(row) / width
        rstd = (sum((v - mean) ** 2 for v in row) / width + 1e-5) ** -0.5
        y += [(v - mean) * rstd for v in row]
        dx += [v * rstd for v in slope]
    usual = {"values": {"y": probe(y), "gradient of x": probe(dx)}}
    others = {"compiled": {"reason": "no compiler"}, "plain": usual}
    say({"modes": {mode: others.get(mode, usual) for mode in request["modes"]}})
)";

FakePython::FakePython(const std::string& program) {
  namespace fs = std::filesystem;
  const fs::path path = folder_ / "python";
  write_bytes(path, program);
  fs::permissions(path, fs::perms::owner_all);
  if (const char* before = std::getenv("KEEL_PYTHON")) before_ = before;
  setenv("KEEL_PYTHON", path.c_str(), 1);
}

FakePython::~FakePython() {
  if (before_) {
    setenv("KEEL_PYTHON", before_->c_str(), 1);
  } else {
    unsetenv("KEEL_PYTHON");
  }
}

}  // namespace keel::test
