// Every kernel on small shapes with remainders, in new memory that holds no zeros: what a sanitizer
// on a GPU is given to watch.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <vector>

#include "backends/cuda/backend.h"
#include "backends/cuda/runtime.h"
#include "frontend/compare/cases/layer_subjects.h"
#include "tests/backends/cuda/norm_step.h"
#include "tests/backends/cuda/steps.h"

namespace keel::cuda {
namespace {

constexpr std::byte kZero{0}, kPoison{0xFF};  // floats of such bytes are NaN

// New memory is filled with this while it lives.
struct Filled {
  explicit Filled(std::byte byte) { fill_new_memory(byte); }
  ~Filled() { fill_new_memory(kZero); }
};

// The cuda backend, which notes whose kernels it has given out.
class NotingBackend : public CudaBackend {
 public:
  explicit NotingBackend(std::set<std::string>& ops) : CudaBackend(Options{}), ops_(ops) {}
  Prepared prepare(const NodeContext& context) override {
    ops_.emplace(context.node.op->name);
    return CudaBackend::prepare(context);
  }

 private:
  std::set<std::string>& ops_;
};

struct Runs {
  compare::GraphSubject& subject;
  std::set<std::string>& ops;

  // The results of three runs of the first step, all from the same leaves: as it is, recorded,
  // replayed.
  std::vector<Results> results(std::byte fill) const {
    const Filled filled(fill);
    NotingBackend backend(ops);
    Variables variables(backend, subject.seed());
    const compare::SubjectStep step = subject.at(0);
    Program program(backend, variables, *step.graph, {.optimize = false});
    std::vector<Results> all;
    for (int run = 0; run < 3; ++run) {
      for (const auto& [name, value] : step.feeds) program.feed(name, value);
      for (int i = 0; i < step.graph->size(); ++i) {
        const Node& node = step.graph->node(i);
        if (node.kind != NodeKind::kParameter && node.kind != NodeKind::kState) continue;
        variables.write(node.name, compare::first_value(subject, node));
      }
      program.run();
      Results& made = all.emplace_back();
      for (const NamedValue& named : step.graph->outputs()) {
        made[named.name] = program.fetch(named.name);
      }
      for (const auto& [name, variable] : variables.all()) made[name] = variables.read(name);
    }
    return all;
  }
};

// Adds results to the file that KEEL_BITS names. tests/ptx/check_bits.py compares those of two
// programs.
void keep_bits(const std::string& subject, const Results& results) {
  const char* const path = std::getenv("KEEL_BITS");
  if (path == nullptr) return;
  std::ofstream file(path, std::ios::app | std::ios::binary);
  for (const auto& [name, tensor] : results) {
    file << subject << '\t' << name << '\t' << tensor.elements() << '\t' << tensor.bytes() << '\n';
    file.write(static_cast<const char*>(static_cast<const void*>(tensor.data())), tensor.bytes());
  }
}

// Returns the results of a run, which the others have, too.
Results check_run(compare::GraphSubject& subject, std::set<std::string>& ops) {
  CAPTURE(subject.name());
  const Runs runs{subject, ops};
  std::vector<Results> clean = runs.results(kZero);
  const std::vector<Results> poisoned = runs.results(kPoison);
  for (std::size_t run = 0; run < clean.size(); ++run) {
    CAPTURE(run);
    check_same_bits(clean[run], clean[0]);
    check_same_bits(poisoned[run], clean[0]);
  }
  return std::move(clean[0]);
}

void check_runs(const compare::Subjects& subjects, std::set<std::string>& ops) {
  for (const auto& subject : subjects) keep_bits(subject->name(), check_run(*subject, ops));
}

TEST_CASE("cuda once: every op and norm, run, recorded and replayed, reads what was written" *
          doctest::test_suite("slow")) {
  std::set<std::string> ops;
  for (const std::string& op : compare::subject_ops()) {
    if (compare::has_own_subject(op)) check_runs(compare::op_subjects(op), ops);
  }
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    check_runs(compare::norm_subjects(nn::Norm::parse(facts.any_width())), ops);
  }
  for (const std::string& op : compare::subject_ops()) {
    CAPTURE(op);
    CHECK(ops.contains(op));  // no kernel is left out
  }
}

TEST_CASE("cuda once: so does every op with bf16 factors, and every norm of bf16" *
          doctest::test_suite("slow")) {
  std::set<std::string> ops;
  const auto check_bf16 = [&](const compare::Subjects& subjects) {
    for (const auto& subject : subjects) {
      if (compare::has_bf16(subject->graph())) check_run(*subject, ops);
    }
  };
  for (const std::string& op : compare::subject_ops()) {
    if (compare::has_own_subject(op)) check_bf16(compare::op_subjects(op, {.is_narrow = true}));
  }
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    check_bf16(compare::norm_subjects(nn::Norm::parse(facts.any_width()), {.is_narrow = true}));
  }
  for (const char* op : {"matmul", "attention_backward", "conv2d", "layer_norm", "power_norm"}) {
    CAPTURE(op);
    CHECK(ops.contains(op));
  }
}

TEST_CASE("cuda once: every norm on rows of one and of several warps") {
  const auto check_shape = [](const std::string& name, const Shape& shape) {
    CAPTURE(name);
    const nn::Norm norm = nn::Norm::parse(name);
    const auto clean = norm_step(norm, shape);
    const Filled filled(kPoison);
    check_same_bits(norm_step(norm, shape), clean);
  };
  // As wide as suits each number of threads; the widest do not fit registers.
  for (const std::string& name : norms_of_rows()) {
    check_shape(name, {9, 13});
    for (const std::int64_t width : {200, 260, 1000, 1500, 3000, 6000, 9000, 17000, 17001}) {
      check_shape(name, {width > 5000 ? 1 : 3, width});
    }
  }
  check_shape("groupnorm{groups=2}", {1, 34000});
  check_shape("groupnorm{groups=1}", {1, 4, 66, 66});
  check_shape("instancenorm", {2, 11, 35});
  for (const char* name :
       {"batchnorm", "groupnorm{groups=1}", "instancenorm", "powernorm", "batchrenorm"}) {
    check_shape(name, {2, 4, 5, 7});
  }
}

TEST_CASE("cuda once: new memory holds what was asked for") {
  const Filled filled(kPoison);
  const auto backend = make_backend("cuda");
  const auto memory = backend->allocate(8);
  float values[2] = {0, 0};
  memory->download(0, values, sizeof values);
  CHECK(std::isnan(values[0]));
  CHECK(std::isnan(values[1]));
}

TEST_CASE("cuda once: what is uploaded arrives, though its source changes at once") {
  const auto backend = make_backend("cuda");
  const std::int64_t bytes = 30 << 20;
  const auto memory = backend->allocate(bytes);
  std::mt19937 random(1);
  std::vector<std::uint8_t> sent, got(static_cast<std::size_t>(bytes));
  // Large ones of more than four halves of 4 MiB, small ones, and sizes that are no whole words.
  for (const std::size_t size : {3u, 70'001u, 20u << 20, 1u, 65'536u, 65'537u, 5u << 20, 4097u}) {
    std::vector<std::uint8_t> source(size);
    const auto first = std::uint8_t(random());
    for (std::size_t i = 0; i < size; ++i) source[i] = std::uint8_t(first + i / 251);
    memory->upload(std::int64_t(sent.size()), source.data(), std::int64_t(size));
    sent.insert(sent.end(), source.begin(), source.end());
    std::ranges::fill(source, std::uint8_t{0xEE});
  }
  got.resize(sent.size());
  memory->download(0, got.data(), std::int64_t(got.size()));
  CHECK((got == sent));
}

}  // namespace
}  // namespace keel::cuda
