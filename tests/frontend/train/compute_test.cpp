// Training with bf16 factors: state, checkpoints and resuming are those of float32; the measured
// choice between both.
#include <sys/stat.h>

#include <cstring>
#include <set>
#include <sstream>

#include "backends/backends.h"
#include "frontend/io/safetensors.h"
#include "frontend/train/compute_choice.h"
#include "frontend/train/step_graph.h"
#include "src/ops/elementwise.h"
#include "tests/frontend/compare/narrow_helpers.h"
#include "tests/support/checks.h"
#include "tests/support/each_bf16.h"
#include "tests/support/same_run.h"
#include "tests/support/small_run.h"
#include "tests/support/temp_dir.h"
#include "tests/support/thread_ranks.h"

namespace keel::test::compute_cases {
namespace {

namespace fs = std::filesystem;
using train::Compute;

bool runs_bf16() { return compare::runs_bf16_products(*make_backend(default_backend())); }

const Settings kNarrow{"train.compute=bf16", "train.epochs=2", "train.checkpoint_every=3"};

TEST_CASE("compute: parameters, states and updates of a bf16 step are float32") {
  const Graph g = train::build_step(small_job(kNarrow));
  int casts = 0;
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    const bool is_narrow = node.outputs[0].dtype == DType::kBF16;
    if (node.kind != NodeKind::kOp) CHECK_FALSE(is_narrow);
    casts += is_narrow && node.op == &elementwise_op(EwCode::kCast);
  }
  CHECK(casts > 0);
  for (const Update& update : g.updates()) CHECK(g.type(update.next).dtype != DType::kBF16);
  const Graph forward = train::build_evaluate(small_job(kNarrow), {4});
  for (int i = 0; i < forward.size(); ++i) {
    CHECK(forward.node(i).outputs[0].dtype != DType::kBF16);
  }
}

TEST_CASE("compute: a bf16 run that is stopped and resumed ends with the same bytes") {
  const EachBf16 each;
  if (!runs_bf16()) return;
  const TempDir temp;
  const train::Job whole = small_job(kNarrow);
  train_in(temp / "whole", whole);
  train_in(temp / "parts", small_job(kNarrow + Settings{"train.max_steps=7"}));
  const train::Summary end = train_in(temp / "parts", whole, true);
  check_same_end(temp / "whole", temp / "parts", end.state.step);
}

TEST_CASE("compute: checkpoints of both types have the same tensors and go on from each other") {
  const EachBf16 each;
  if (!runs_bf16()) return;
  const TempDir temp;
  const Settings wide{"train.epochs=2", "train.checkpoint_every=3"}, part{"train.max_steps=6"};
  train_in(temp / "narrow", small_job(kNarrow + part));
  train_in(temp / "wide", small_job(wide + part));
  const auto narrow = io::read_safetensors(step_file(temp / "narrow", 6), {});
  const auto other = io::read_safetensors(step_file(temp / "wide", 6), {});
  REQUIRE(narrow.tensors.size() == other.tensors.size());
  bool differs = false;
  for (const auto& [name, tensor] : narrow.tensors) {
    CAPTURE(name);
    REQUIRE(other.tensors.contains(name));
    CHECK(tensor.type() == other.tensors.at(name).type());
    for (std::int64_t e = 0; e < tensor.elements(); ++e) {
      differs = differs || tensor.at(e) != other.tensors.at(name).at(e);
    }
  }
  CHECK(differs);  // otherwise nothing was rounded
  const train::Summary on = train_in(temp / "narrow", small_job(wide), true);
  const train::Summary back = train_in(temp / "wide", small_job(kNarrow), true);
  CHECK(on.state.step == back.state.step);
}

TEST_CASE("compute: the number of threads changes no byte of a bf16 run") {
  const EachBf16 each;
  if (!runs_bf16()) return;
  for (const char* model : {"mnist_cnn", "mnist_mlp"}) {
    const train::Job job = small_job({"train.compute=bf16"}, model);
    std::map<std::string, Tensor> first;  // parameters and states after a run in one thread
    for (const int threads : {1, 2, 3, 13}) {
      const auto backend = make_backend(default_backend(), {threads});
      Variables variables(*backend, 1);
      Program step(*backend, variables, train::build_step(job), {.guard = "grad_norm"});
      Rows rows(job);
      std::vector<std::int64_t> numbers(std::size_t(job.train().batch));
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::int64_t(i);
      for (int i = 0; i < 3; ++i) {
        rows.feed(step, numbers);
        step.run();
      }
      for (const auto& [name, variable] : variables.all()) {
        CAPTURE(name);
        const Tensor now = variables.read(name);
        const Tensor& one = first.try_emplace(name, now.clone()).first->second;
        CHECK(std::memcmp(now.data(), one.data(), std::size_t(now.bytes())) == 0);
      }
    }
  }
}

TEST_CASE("compute: the number of ranks changes no byte of a bf16 run in shards") {
  const EachBf16 each;
  if (!runs_bf16()) return;
  const TempDir temp;
  const Settings settings = kNarrow + Settings{"train.shards=3", "train.max_steps=6"};
  train_in(temp / "1", small_job(settings));
  run_ranks(2, [&](Communicator& all) {
    const train::Job job = small_job(settings);
    const auto backend = make_backend(default_backend());
    train::RunOptions options{.folder = temp / "2", .quiet = true, .facts = {}};
    options.ranks = &all;
    train::Trainer(*backend, job, options).run();
  });
  check_same_end(temp / "2", temp / "1", 6);
}

// Three products of a layer as wide as the batch have factors of the same shapes and differ only in
// their attributes: forward, and the gradients of the weight and of the input.
TEST_CASE("compute: products that differ in an attribute alone have times of their own") {
  const EachBf16 each;
  if (!runs_bf16()) return;
  const TempDir temp;
  train::Job job = small_job({"train.compute=auto", "train.batch=16"});
  const auto backend = make_backend(default_backend());
  train::KeptTimes kept(temp / "compute.txt", "here");
  train::measure_products(*backend, job, kept);
  std::istringstream lines(read_bytes(temp / "compute.txt"));
  std::set<std::string> kinds;
  for (std::string line; std::getline(lines, line);) {
    const bool is_square = line.find(" f32 (16, 16)(16, 16)") != std::string::npos;
    if (is_square) kinds.insert(line.substr(0, line.rfind('\t')));
  }
  CHECK(kinds.size() >= 3);
}

TEST_CASE("compute: auto measures each kind of product once, and keeps the times") {
  const TempDir temp;
  const fs::path file = temp / "keel" / "compute.txt";
  train::Job job = small_job({"train.compute=auto"});
  const auto backend = make_backend(default_backend());
  train::KeptTimes first(file, "this machine");
  const train::ProductTimes times = train::measure_products(*backend, job, first);
  CHECK((times.f32 > 0 || times.bf16 == INFINITY));
  CHECK(times.bf16 > 0);
  train::KeptTimes again(file, "this machine");
  const train::ProductTimes known = train::measure_products(*backend, job, again);
  CHECK(known.f32 == times.f32);
  CHECK(known.bf16 == times.bf16);
  int measured = 0;
  const auto measure = [&] {
    ++measured;
    return 3.0;
  };
  train::KeptTimes other(file, "another machine");
  CHECK(other.of("cast", measure) == 3);
  CHECK(other.of("cast", measure) == 3);
  CHECK(measured == 1);
  CHECK(train::KeptTimes(file, "another machine").of("cast", measure) == 3);
  CHECK(measured == 1);
}

TEST_CASE("compute: kept times that are spoilt, or have no place, are measured anew") {
  const TempDir temp;
  const auto three = [] { return 3.0; };
  for (const char* line : {"", "\t", "\t\t", "here, cast", "here, cast\t", "here, cast\tx",
                           "here, cast\t2x", "here, cast\t-1", "here, cast\tnan", "here, cast\tinf",
                           "here, cast\t0", "here, cast\t1\t2"}) {
    CAPTURE(line);
    write_bytes(temp / "times", std::string(line) + "\n");
    CHECK(train::KeptTimes(temp / "times", "here").of("cast", three) == 3);
  }
  CHECK(train::KeptTimes({}, "here").of("cast", three) == 3);
  CHECK(train::KeptTimes("/proc/none/times", "here").of("cast", three) == 3);
}

// Reading from a pipe would wait for ever, and a device may have no end.
TEST_CASE("compute: kept times in a pipe or a device are refused") {
  const TempDir temp;
  REQUIRE(mkfifo((temp / "pipe").c_str(), 0600) == 0);
  for (const std::string& file : {(temp / "pipe").string(), std::string("/dev/zero")}) {
    test::check_refused([&] { train::KeptTimes(file, "here"); }, file + ": expected a regular file",
                        "", ErrorKind::kIo);
  }
}

TEST_CASE("compute: what was refused is not kept") {
  const TempDir temp;
  const auto refused = [] { return double(INFINITY); };
  CHECK(train::KeptTimes(temp / "times", "here").of("cast", refused) == INFINITY);
  CHECK_FALSE(fs::exists(temp / "times"));
}

// Such a step has the weight of its recurrent layer in panels, which products of bf16 do not read.
TEST_CASE("compute: auto measures bf16 for recurrent models, too") {
  const EachBf16 each;
  const auto backend = make_backend(default_backend());
  if (!train::takes_bf16(*backend)) return;
  train::KeptTimes kept({}, "here");
  for (const char* model : {"char_lm", "word_lm"}) {
    CAPTURE(model);
    train::Job job = small_job({"train.compute=auto", "train.batch=64"}, model);
    const train::ProductTimes times = train::measure_products(*backend, job, kept);
    CHECK(times.f32 > 0);
    CHECK(std::isfinite(times.bf16));
  }
}

// In float32 onednn computes the loss over words and its backward as one op.
TEST_CASE("compute: auto measures the loss over words in both types") {
  const EachBf16 each;
  const auto backend = make_backend(default_backend());
  if (!train::takes_bf16(*backend)) return;
  const TempDir temp;
  train::KeptTimes kept(temp / "times", "here");
  train::Job job = small_job({"train.compute=auto", "train.batch=64"}, "word_lm");
  train::measure_products(*backend, job, kept);
  std::map<std::string, int> losses;  // by type
  std::istringstream lines(read_bytes(temp / "times"));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("linear_cross_entropy") == std::string::npos) continue;
    ++losses[line.find(" f32 ") != std::string::npos ? "f32" : "bf16"];
  }
  CHECK(losses["f32"] > 0);
  CHECK(losses["bf16"] > 0);
}

TEST_CASE("compute: a step whose type is not settled is not built") {
  CHECK_THROWS_WITH_AS(train::build_step(small_job({"train.compute=auto"})),
                       doctest::Contains("got auto"), Error);
}

TEST_CASE("compute: bf16 has to win clearly") {
  CHECK(train::ProductTimes{1, 0.8}.faster() == Compute::kBf16);
  CHECK(train::ProductTimes{1, 0.95}.faster() == Compute::kF32);
  CHECK(train::ProductTimes{0, INFINITY}.faster() == Compute::kF32);
}

}  // namespace
}  // namespace keel::test::compute_cases
