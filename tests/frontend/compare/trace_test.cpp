// Traces: written in pieces, continued, and checked against another run.
#include "frontend/compare/walk/trace.h"

#include <filesystem>

#include "tests/frontend/compare/helpers.h"
#include "tests/support/temp_dir.h"

namespace keel::compare {
namespace {

const train::Job& traced_job() {
  static const train::Job job = test::small_job({"train.batch=8"});
  return job;
}

TraceFacts traced_facts(const TestBackends& backends) {
  std::string names;
  for (const Backend* backend : backends.all) {
    names += (names.empty() ? "" : ",") + std::string(backend->name());
  }
  return {{"subject", "mnist_mlp"}, {"backends", names}};
}

Comparison record(const TestBackends& backends, const std::filesystem::path& folder,
                  std::int64_t steps, const std::string& fault = "") {
  ModelSubject subject(*backends.reference, traced_job());
  TraceWriter writer(folder, traced_facts(backends));
  CompareOptions options{.walk = {}, .steps = steps};
  options.walk.record = &writer;
  return fault.empty() ? backends.compare(subject, options)
                       : backends.with_fault(subject, fault, options);
}

Comparison hold_against(const TestBackends& backends, const std::filesystem::path& folder,
                        std::int64_t steps) {
  ModelSubject subject(*backends.reference, traced_job());
  TraceReader reader(folder);
  CompareOptions options{.walk = {}, .steps = steps};
  options.walk.against = &reader;
  return backends.compare(subject, options);
}

TEST_CASE("trace: an honest one agrees, and its backends are compared besides") {
  const TestBackends backends;
  const test::TempDir temp;
  record(backends, temp / "t", 2);
  const Comparison c = hold_against(backends, temp / "t", 2);
  check_agrees(c);
  const bool is_there = std::ranges::any_of(c.nodes, [&](const NodeSummary& s) {
    return s.worst.backend == "recorded " + std::string(backends.all[0]->name());
  });
  CHECK(is_there);
}

TEST_CASE("trace: one of a CPU is held against CUDA's kernels") {
  const test::TempDir temp;
  record(TestBackends{}, temp / "t", 1);
  const TestBackends with_cuda(Emulated::kTakenIn);
  check_agrees(hold_against(with_cuda, temp / "t", 1));
}

TEST_CASE("trace: what was wrong when it was recorded is found later, by its node") {
  const TestBackends backends;
  const test::TempDir temp;
  const std::string path = "fc1/norm/layer_norm.backward/layer_norm_backward";
  record(backends, temp / "t", 2, "node=" + path + ",kind=scale,step=1");
  const Comparison c = hold_against(backends, temp / "t", 2);
  REQUIRE(c.first.has_value());
  CHECK(c.first->path == path);
  CHECK(c.first->step == 1);
  CHECK(c.first->backend == "recorded " + std::string(backends.all[0]->name()));
  CHECK(c.diverged() == 1);
}

TEST_CASE("trace: a recording goes on after the steps that it has, to the same bytes") {
  const TestBackends backends;
  const test::TempDir temp;
  record(backends, temp / "whole", 3);
  record(backends, temp / "parts", 1);
  CHECK(TraceReader(temp / "parts").steps() == 1);
  record(backends, temp / "parts", 2);
  CHECK(TraceReader(temp / "parts").steps() == 3);
  for (const auto& file : std::filesystem::directory_iterator(temp / "whole")) {
    CAPTURE(file.path().string());
    CHECK(test::read_bytes(file.path()) ==
          test::read_bytes(temp / "parts" / file.path().filename()));
  }
}

TEST_CASE("trace: a folder without one, another trace and missing steps are refused") {
  const TestBackends backends;
  const test::TempDir temp;
  CHECK_THROWS_AS(TraceReader(temp.path()), Error);
  record(backends, temp / "t", 1);
  CHECK_THROWS_AS(TraceWriter(temp / "t", {{"subject", "other"}, {"backends", ""}}), Error);
  CHECK_THROWS_AS(hold_against(backends, temp / "t", 2), Error);
}

TEST_CASE("trace: a changed byte in any of its files is found") {
  const TestBackends backends;
  const test::TempDir temp;
  record(backends, temp / "t", 1);
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(temp / "t")) {
    CAPTURE(file.path().string());
    const std::string whole = test::read_bytes(file.path());
    for (const double part : {0.01, 0.4, 0.99}) {
      std::string changed = whole;
      changed[std::size_t(part * double(whole.size()))] ^= 1;
      test::write_bytes(file.path(), changed);
      CHECK_THROWS_AS(hold_against(backends, temp / "t", 1), Error);
    }
    test::write_bytes(file.path(), whole);
    ++files;
  }
  CHECK(files == 3);
  check_agrees(hold_against(backends, temp / "t", 1));
}

}  // namespace
}  // namespace keel::compare
