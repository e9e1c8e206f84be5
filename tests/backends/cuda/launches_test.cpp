// The launches of a training step of every task: fewer than kernels, because many updates, sums of
// squares and copies share one. Counted on the emulator, whose products are no launches.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "backends/cuda/emulator/simt.h"
#include "frontend/train/step_graph.h"
#include "models/registry.h"
#include "src/runtime/program.h"
#include "tests/backends/cuda/steps.h"

namespace keel::cuda {
namespace {

struct StepLaunches {
  std::int64_t single, joined;  // of the kernels one by one, and of the step
};

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
  return {single, simt::counts.launches - start - single};
}

// A change of a task, a pass or a kernel that saves or adds launches changes these numbers.
const std::map<std::string, StepLaunches> kLaunches{
    {"mnist_mlp", {42, 21}},          {"mnist_cnn", {63, 36}},
    {"text_classifier", {124, 64}},   {"dependency_parser", {60, 36}},
    {"translation", {263, 125}},      {"order_embeddings", {299, 257}},
    {"attentive_reader", {900, 801}}, {"skip_thoughts", {892, 778}},
    {"handwriting", {394, 331}},      {"draw", {229, 172}},
    {"char_lm", {192, 103}},          {"word_lm", {125, 74}},
    {"cifar_resnet20", {190, 124}},   {"cifar_vgg", {248, 137}},
    {"deep_linear", {54, 24}}};

TEST_CASE("cuda launches: those of a step of each task") {
  for (const models::ModelEntry& entry : models::all_models()) {
    CAPTURE(entry.name);
    const auto expected = kLaunches.find(entry.name);
    REQUIRE(expected != kLaunches.end());
    const StepLaunches launches = launches_of_step(entry.name);
    CHECK(launches.single == expected->second.single);
    CHECK(launches.joined == expected->second.joined);
  }
}

}  // namespace
}  // namespace keel::cuda
