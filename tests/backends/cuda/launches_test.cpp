// The launches of a training step of every task, and the bytes that its nodes read and write. There
// are fewer launches than kernels, because many updates, sums of squares and copies share one.
// Counted on the emulator, whose products are no launches.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "backends/cuda/emulator/simt.h"
#include "frontend/train/step_graph.h"
#include "models/registry.h"
#include "src/graph/op_info.h"
#include "src/runtime/program.h"
#include "tests/backends/cuda/steps.h"

namespace keel::cuda {
namespace {

struct StepLaunches {
  std::int64_t single, joined;  // of the kernels one by one, and of the step
  std::int64_t kib;             // that its nodes read and write
};

// The KiB of the inputs and outputs of all nodes that run. Kernels that run together move less.
std::int64_t moved_kib(const Graph& graph) {
  std::int64_t bytes = 0;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.kind != NodeKind::kOp || node.op->view != View::kNo) continue;
    for (const TensorType& output : node.outputs) bytes += output.bytes();
    for (const Value& input : node.inputs) {
      if (input.valid()) bytes += graph.type(input).bytes();
    }
  }
  return bytes / 1024;
}

// The networks are those of tests/support/small_run.cpp. A step that is not fed runs on zeros.
StepLaunches launches_of_step(const std::string& task) {
  const train::Job job = test::small_job({}, task);
  const auto backend = make_backend("cuda");
  Variables variables(*backend, 1);
  Program step(*backend, variables, train::build_step(job), {.guard = "grad_norm"});
  const std::int64_t start = simt::counts.launches;
  step.profile(1);
  const std::int64_t single = simt::counts.launches - start;
  step.run();
  return {single, simt::counts.launches - start - single, moved_kib(step.graph())};
}

// A change of a task, a pass or a kernel that saves or adds launches or bytes changes them.
const std::map<std::string, StepLaunches> kLaunches{
    {"mnist_mlp", {42, 21, 779}},           {"mnist_cnn", {63, 36, 37478}},
    {"text_classifier", {124, 64, 2060}},   {"dependency_parser", {60, 36, 517}},
    {"translation", {263, 125, 6816}},      {"order_embeddings", {299, 257, 960}},
    {"attentive_reader", {900, 801, 7866}}, {"skip_thoughts", {892, 778, 10321}},
    {"handwriting", {394, 331, 1459}},      {"draw", {229, 172, 6576}},
    {"char_lm", {192, 103, 3104}},          {"word_lm", {125, 74, 517}},
    {"cifar_resnet20", {190, 124, 31362}},  {"cifar_vgg", {248, 137, 12100}},
    {"deep_linear", {54, 24, 57}}};

TEST_CASE("cuda launches: those of a step of each task, and its bytes") {
  for (const models::ModelEntry& entry : models::all_models()) {
    CAPTURE(entry.name);
    const auto expected = kLaunches.find(entry.name);
    REQUIRE(expected != kLaunches.end());
    const StepLaunches launches = launches_of_step(entry.name);
    CHECK(launches.single == expected->second.single);
    CHECK(launches.joined == expected->second.joined);
    CHECK(launches.kib == expected->second.kib);
  }
}

}  // namespace
}  // namespace keel::cuda
