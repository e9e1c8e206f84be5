// Nothing that a node gives is left out: a fault in any output, and in any leaf that an update
// gives its new value, is named.
#include <set>

#include "tests/frontend/compare/helpers.h"

namespace keel::compare {
namespace {

// An output of a node, as a fault names it.
struct Output {
  std::string path;
  int port;
  auto operator<=>(const Output&) const = default;
};

// Outputs that have a number larger than what rounding may do to it, so that its sign matters.
std::set<Output> outputs_of(const TestBackends& backends, Subject& subject) {
  std::set<Output> found;
  CompareOptions options;
  options.sink = [&](const NodeReport& report, const NodeTensors& tensors) {
    if (report.op == "update") return;
    for (std::size_t j = 0; j < tensors.expected.size(); ++j) {
      for (std::int64_t e = 0; e < tensors.expected[j].elements(); ++e) {
        const double value = std::abs(tensors.expected[j].at(e));
        if (std::isfinite(value) && value > tensors.bounds[j].at(e)) {
          found.insert({report.path, int(j)});
        }
      }
    }
  };
  check_agrees(backends.compare(subject, options));
  return found;
}

// Returns how many outputs there are after the first.
int check_each_output(const TestBackends& backends, Subject& subject) {
  int further = 0;
  for (const Output& output : outputs_of(backends, subject)) {
    const std::string fault = fmt::format("node={},kind=sign,port={}", output.path, output.port);
    CAPTURE(fault);
    Comparison c;
    try {
      c = backends.with_fault(subject, fault);
    } catch (const Error& error) {
      // A byte has no sign.
      CHECK(std::string(error.what()).find("changes nothing") != std::string::npos);
      continue;
    }
    REQUIRE(c.first.has_value());
    CHECK(c.first->path == output.path);
    CHECK(c.first->errors.worst.port == output.port);
    further += output.port > 0;
  }
  return further;
}

TEST_CASE("outputs: a fault in any output of any op is named" * doctest::test_suite("slow")) {
  const TestBackends backends;
  int further = 0;
  for (const std::string& op : subject_ops()) {
    if (!has_own_subject(op)) continue;
    for (const auto& subject : op_subjects(op)) {
      further += check_each_output(backends, *subject);
    }
  }
  CHECK(further >= 40);
}

TEST_CASE("outputs: a fault in any output of any norm is named" * doctest::test_suite("slow")) {
  const TestBackends backends;
  int further = 0;
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    const auto subjects = norm_subjects(nn::Norm::parse(facts.any_width()));
    further += check_each_output(backends, *subjects.back());
  }
  CHECK(further >= 60);
}

// The leaves that take a new value in a step, and those of the reports.
std::set<std::string> updated_leaves(const Graph& graph) {
  std::set<std::string> names;
  for (const Update& update : graph.updates()) names.insert(graph.node(update.leaf).name);
  return names;
}

TEST_CASE("outputs: every leaf that a step updates is compared, and a fault in it is named" *
          doctest::test_suite("slow")) {
  const TestBackends backends;
  for (const char* optimizer : {"sgd", "adam", "adagrad", "rmsprop_graves"}) {
    for (const char* mode : {"isolated", "chained"}) {
      CAPTURE(optimizer);
      CAPTURE(mode);
      const train::Job job =
          test::small_job({std::string("train.optimizer=") + optimizer, "train.batch=8",
                           "model.hidden=4", "model.norm=batchnorm"});
      ModelSubject subject(*backends.reference, job);
      CompareOptions options;
      options.walk.mode = parse_choice<WalkMode>(mode);
      std::set<std::string> compared;
      for (const NodeSummary& s : backends.compare(subject, options).nodes) {
        if (s.worst.op == "update") compared.insert(s.worst.path);
      }
      CHECK(compared == updated_leaves(*subject.at(0).graph));
      for (const std::string& leaf : compared) {
        const std::string fault = fmt::format("node={},kind=offset,by=0.5", leaf);
        CAPTURE(fault);
        const Comparison c = backends.with_fault(subject, fault, options);
        REQUIRE(c.first.has_value());
        CHECK(c.first->path == leaf);
        CHECK(c.first->op == "update");
        CHECK(c.diverged() == 1);
      }
    }
  }
}

}  // namespace
}  // namespace keel::compare
