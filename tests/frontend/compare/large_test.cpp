// The large cases: beyond all that kernels take at a time, and with numbers that are hard.
#include <set>

#include "frontend/compare/cases/op_cases.h"
#include "tests/frontend/compare/helpers.h"

namespace keel::compare {
namespace {

std::set<std::string> ops_of(const Graph& graph) {
  std::set<std::string> ops;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.op != nullptr && !is_view(node)) ops.emplace(node.op->name);
  }
  return ops;
}

// The most elements, and the most rows of the last axis, of what an op reads and writes.
struct Sizes {
  std::int64_t elements = 0, rows = 0;

  void take(const Shape& shape) {
    elements = std::max(elements, shape.elements());
    if (shape.elements() > 0 && shape.rank() > 0)
      rows = std::max(rows, shape.elements() / shape.back());
  }
};
Sizes sizes_of(const Graph& graph, std::string_view op) {
  Sizes sizes;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.op == nullptr || node.op->name != op) continue;
    for (const TensorType& output : node.outputs) sizes.take(output.shape);
    for (const Value v : node.inputs) {
      if (v.valid()) sizes.take(graph.shape(v));
    }
  }
  return sizes;
}

TEST_CASE("large: every op agrees with the reference, forward and backward" *
          doctest::test_suite("slow")) {
  const TestBackends backends;
  for (const std::string& op : subject_ops()) {
    CAPTURE(op);
    if (!has_own_subject(op)) continue;
    for (const auto& subject : op_subjects(op, {.size = CaseSize::kLarge})) {
      check_agrees(backends.compare(*subject));
    }
  }
}

TEST_CASE("large: every norm agrees with the reference, forward and backward" *
          doctest::test_suite("slow")) {
  const TestBackends backends;
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    CAPTURE(facts.name);
    for (const auto& subject :
         norm_subjects(nn::Norm::parse(facts.any_width()), {.size = CaseSize::kLarge})) {
      check_agrees(backends.compare(*subject));
    }
  }
}

TEST_CASE("large: a large case has all kernels of an op that its small one has") {
  for (const std::string& op : subject_ops()) {
    CAPTURE(op);
    if (!has_own_subject(op)) continue;
    const auto small = op_subjects(op), large = op_subjects(op, {.size = CaseSize::kLarge});
    REQUIRE(small.size() == large.size());
    const std::set<std::string> expected = ops_of(small[0]->graph());
    const std::set<std::string> got = ops_of(large[0]->graph());
    for (const std::string& name : expected) {
      CAPTURE(name);
      CHECK((!name.starts_with(op) || got.contains(name)));
    }
  }
}

// 16 Ki elements are what a kernel takes at a time at most, unless it counts by rows.
TEST_CASE("large: an op takes more than 4,096 rows and more than a block of elements") {
  for (const auto& [op, cases] : op_cases()) {
    CAPTURE(std::string(op));
    if (op == "total_norm") continue;  // it takes one number a gradient
    const auto subjects = op_subjects(op, {.size = CaseSize::kLarge});
    const Sizes sizes = sizes_of(subjects[0]->graph(), op);
    CHECK(sizes.elements > 16 * 1024);
    CHECK(sizes.rows > (op == "conv2d" ? 1024 : 4096));
  }
}

TEST_CASE("large: a norm has cases of every kind that it takes") {
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    CAPTURE(facts.name);
    std::set<std::string> cases;
    for (const auto& subject :
         norm_subjects(nn::Norm::parse(facts.any_width()), {.size = CaseSize::kLarge})) {
      cases.insert(subject->input_case());
    }
    for (const char* name : {"many tokens", "wide tokens", "hard rows", "hard features"}) {
      CAPTURE(std::string(name));
      CHECK(cases.contains(name));
    }
    const bool takes_images = [&] {
      for (const auto& small : norm_subjects(nn::Norm::parse(facts.any_width()))) {
        if (small->input_case() == "images") return true;
      }
      return false;
    }();
    CHECK(cases.contains("many images") == takes_images);
    CHECK(cases.contains("wide images") == takes_images);
  }
}

TEST_CASE("large: numbers that are hard are sampled in rows and columns") {
  const Source rows{"x", {DType::kF32, {22, 5}}, Sampled::kHostileRows, 0};
  const Source columns{"x", {DType::kF32, {5, 22}}, Sampled::kHostileColumns, 0};
  const Tensor by_row = draw(rows, 0), by_column = draw(columns, 0);
  for (std::int64_t i = 0; i < 22; ++i) {
    const HostileMoments moments = hostile_moments(i);
    for (std::int64_t j = 0; j < 5; ++j) {
      const double room = 6 * moments.deviation + 0x1p-23 * std::abs(moments.mean);
      CHECK(std::abs(by_row.at(5 * i + j) - moments.mean) <= room);
      CHECK(std::abs(by_column.at(22 * j + i) - moments.mean) <= room);
    }
  }
  CHECK(by_row.at(5) != by_row.at(6));
  CHECK(by_column.at(1) != by_column.at(23));
}

TEST_CASE("large: a mask leaves some out, whatever its rank") {
  for (const Shape& shape : {Shape{6}, Shape{4, 9}}) {
    const Tensor mask = draw({"m", {DType::kU8, shape}, Sampled::kMask, 0}, 0);
    double kept = 0;
    for (std::int64_t e = 0; e < mask.elements(); ++e) kept += mask.at(e);
    CHECK(kept > 0);
    CHECK(kept < double(mask.elements()));
  }
}

}  // namespace
}  // namespace keel::compare
