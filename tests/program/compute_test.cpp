// --compute of the commands that take it: what is refused, what runs by emulation, and what the
// answers say of the type.
#include <fstream>

#include "tests/program/helpers.h"

namespace keel::cli {
namespace {

using Words = std::vector<std::string>;
using test::small_train;

ProcessResult run_emulated(const Words& words) {
  return run_keel(words, {.environment = {{"KEEL_BF16", "emulated"}}});
}

ProcessResult compare_emulated(Words words) {
  words.insert(words.begin(), "compare");
  words.insert(words.end(), {"--compute", "bf16", "--backends", "onednn", "--strict"});
  return run_emulated(words);
}

bool has_instructions_for_bf16() {
  std::ifstream file("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return holds(text, "avx512_bf16") || holds(text, "amx_bf16");
}

TEST_CASE("compute: bf16 is refused by name on a processor without instructions for it") {
  if (!has_onednn()) return;
  if (has_instructions_for_bf16()) {
    MESSAGE("skipped: this processor has instructions for bf16");
    return;
  }
  const test::TempDir temp;
  const test::ProcessOptions plain{.environment = {{"KEEL_BF16", {}}}};
  check_refusal(run_keel(small_train(temp / "run", {"train.compute=bf16"}), plain), 7, "bf16");
  check_refusal(
      run_keel({"bench", "step", "mnist_mlp", "--compute", "bf16", "--rounds", "3"}, plain), 7,
      "bf16");
}

TEST_CASE("compute: a run keeps its type, and goes on in the other") {
  if (!has_onednn()) return;
  const test::TempDir temp;
  const std::string folder = temp / "run";
  const Words train = small_train(folder, {"train.max_steps=2", "train.compute=bf16"});
  REQUIRE(run_emulated(train).code == 0);
  CHECK(holds(test::read_bytes(temp / "run" / "config.toml"), "compute = \"bf16\""));
  const ProcessResult on = run_emulated(
      {"train", "--resume", folder, "--compute", "f32", "--quiet", "--set", "train.max_steps=4"});
  CHECK(on.err == "");
  CHECK(on.code == 0);
}

TEST_CASE("compute: a model, an op and a norm are compared in bf16" * doctest::test_suite("slow")) {
  if (!has_onednn()) return;
  const ProcessResult model = compare_emulated({"mnist_mlp"});
  CHECK(model.code == 0);
  CHECK(holds(model.out, " nodes match float64 within rounding error"));
  const ProcessResult op = compare_emulated({"op", "matmul", "--rank"});
  CHECK(op.code == 0);
  CHECK(holds(op.out, "cast"));
  CHECK(compare_emulated({"norm", "layernorm", "--case", "hard rows"}).code == 0);
}

TEST_CASE("compute: a fault of 1 % beside bf16 factors ends compare with code 1") {
  if (!has_onednn()) return;
  const ProcessResult found = compare_emulated({"norm", "layernorm", "--case", "tokens", "--inject",
                                                "node=norm/layer_norm,kind=scale,by=1.01"});
  CHECK(found.code == 1);
  CHECK(holds(found.out, "keel compare norm layernorm --case tokens --compute bf16 "));
}

TEST_CASE("compute: compare has nothing in bf16 of other ops, and measures nothing") {
  check_refusal(run_keel({"compare", "op", "softmax", "--compute", "bf16"}), 2, "op with products");
  check_refusal(run_keel({"compare", "norm", "weightnorm", "--compute", "bf16"}), 2, "a norm of x");
  check_refusal(run_keel({"compare", "op", "matmul", "--compute", "auto"}), 2,
                "expected f32 or bf16, got 'auto'");
}

TEST_CASE("compute: a measurement says its type") {
  if (!has_onednn()) return;
  const ProcessResult step =
      run_emulated({"bench", "step", "mnist_mlp", "--set", "model.hidden=16", "--rounds", "3",
                    "--data", test::small_digits(), "--compute", "bf16", "--json"});
  CHECK(json_of(step).at("compute") == "bf16");
}

}  // namespace
}  // namespace keel::cli
