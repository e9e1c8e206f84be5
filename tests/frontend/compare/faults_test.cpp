// Planted faults: each is named, and nothing else is.
#include <map>

#include "models/registry.h"
#include "tests/frontend/compare/helpers.h"

namespace keel::compare {
namespace {

// The planted faults, by the phase of their nodes.
struct Tally {
  std::map<std::string, int> phases, kinds, ops;
  int count = 0;
};

// Only the fault is named, by the path of its node.
void check_named(const Comparison& c, const std::string& path, const std::string& fault) {
  CAPTURE(fault);
  INFO(text_of(c));
  REQUIRE(c.first.has_value());
  CHECK(c.first->path == path);
  CHECK(c.first->place.starts_with("("));
  CHECK(c.diverged() == 1);
}

TEST_CASE("faults: of two in a step the first is the one that comes first in the walk") {
  const TestBackends backends;
  const Subjects subjects = op_subjects("softmax");
  for (const char* mode : {"isolated", "chained"}) {
    CAPTURE(mode);
    CompareOptions options;
    options.walk.mode = parse_choice<WalkMode>(mode);
    options.steps = 2;
    const Comparison honest = backends.compare(*subjects[0], options);
    std::vector<std::string> paths;
    for (const NodeSummary& node : honest.nodes) {
      const bool is_known = std::ranges::find(paths, node.worst.path) != paths.end();
      if (!is_known && node.worst.op.starts_with("softmax")) paths.push_back(node.worst.path);
    }
    REQUIRE(paths.size() >= 2);
    for (const bool turned : {false, true}) {
      CompareOptions faulty = options;
      for (const std::string& path : {paths[std::size_t(turned)], paths[std::size_t(!turned)]}) {
        faulty.walk.faults.push_back(Fault::parse("node=" + path + ",kind=sign"));
      }
      const Comparison c = backends.compare(*subjects[0], faulty);
      REQUIRE(c.first.has_value());
      CHECK(c.first->path == paths[0]);
      CHECK(c.first->step == 0);
      CHECK(c.diverged() == 2);
    }
  }
}

// Where a value is nothing but rounding, a fault in it is none.
bool is_noise(const NodeReport& r) {
  return std::abs(r.errors.worst.expected) <= r.errors.worst.bound;
}

// Plants a fault in every `every`-th node, or in about seven if there are more, the kinds in turn.
void plant_in_turn(const TestBackends& backends, Subject& subject, const CompareOptions& options,
                   std::size_t every, Tally& tally) {
  constexpr auto kKinds = choice_words(FaultKind{});
  constexpr std::size_t kMost = 7;
  const Comparison honest = backends.compare(subject, options);
  check_agrees(honest);
  every = std::max(every, honest.nodes.size() / kMost);
  for (std::size_t i = std::size_t(tally.count) % every; i < honest.nodes.size(); i += every) {
    const NodeReport& r = honest.nodes[i].worst;
    if (r.backend != honest.nodes[0].worst.backend || is_noise(r)) continue;
    const std::string kind(kKinds[std::size_t(tally.count) % kKinds.size()]);
    const std::string fault =
        fmt::format("node={},kind={},port={}", r.path, kind, r.errors.worst.port);
    try {
      check_named(backends.with_fault(subject, fault, options), r.path, fault);
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("changes nothing") != std::string::npos);
      continue;
    }
    ++tally.count;
    ++tally.phases[r.phase];
    ++tally.kinds[kind];
    ++tally.ops[r.op];
  }
}

TEST_CASE("faults: in models, one by one, each named by its node" * doctest::test_suite("slow")) {
  const TestBackends backends;
  Tally tally;
  for (const models::ModelEntry& model : models::all_models()) {
    for (const char* mode : {"isolated", "chained"}) {
      CAPTURE(model.name);
      CAPTURE(mode);
      const train::Job job = test::small_job({"train.batch=8"}, model.name);
      ModelSubject subject(*backends.reference, job);
      CompareOptions options;
      options.walk.mode = parse_choice<WalkMode>(mode);
      plant_in_turn(backends, subject, options, 7, tally);
    }
  }
  CHECK(tally.count >= 100);
  for (const char* phase : {"forward", "backward", "clip", "optimizer", "state"}) {
    CAPTURE(phase);
    CHECK(tally.phases[phase] > 0);
  }
  CHECK(tally.kinds.size() == 6);
}

TEST_CASE("faults: in norms, one by one, each named by its node" * doctest::test_suite("slow")) {
  const TestBackends backends;
  Tally tally;
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    CAPTURE(facts.name);
    for (const auto& subject : norm_subjects(nn::Norm::parse(facts.any_width()))) {
      plant_in_turn(backends, *subject, {}, 2, tally);
    }
  }
  CHECK(tally.count >= 60);
  CHECK(tally.phases["state"] > 0);
}

TEST_CASE("faults: in ops, one by one, each named by its node") {
  const TestBackends backends;
  Tally tally;
  for (const std::string& op : subject_ops()) {
    CAPTURE(op);
    if (!has_own_subject(op)) continue;
    for (const auto& subject : op_subjects(op)) {
      plant_in_turn(backends, *subject, {}, 2, tally);
    }
  }
  CHECK(tally.count >= 60);
  CHECK(tally.ops.size() >= 30);
}

TEST_CASE("faults: a slight one is seen where a sum is short, and in a later step") {
  const TestBackends backends;
  const auto subjects = norm_subjects(nn::Norm::parse("layernorm"));
  const std::string path = "norm/layer_norm";
  const std::string fault = "node=norm/layer_norm,kind=scale,by=1.00001,step=2";
  const Comparison c = backends.with_fault(*subjects[0], fault, {.walk = {}, .steps = 4});
  check_named(c, path, fault);
  CHECK(c.first->step == 2);
}

TEST_CASE("faults: what names no node, no output or changes nothing is refused") {
  const TestBackends backends;
  const auto subjects = norm_subjects(nn::Norm::parse("layernorm"));
  for (const char* fault :
       {"node=nowhere,kind=sign", "node=norm/layer_norm,kind=sign,port=9",
        "node=norm/layer_norm,kind=scale,by=1", "node=norm/layer_norm,kind=sign,backend=none"}) {
    CAPTURE(fault);
    CHECK_THROWS_AS(backends.with_fault(*subjects[0], fault), Error);
  }
}

TEST_CASE("faults: their text is read as it is written") {
  for (const char* text :
       {"node=a/b,kind=sign", "node=a,kind=scale,by=1.5", "node=a,kind=swap,port=2",
        "node=a,kind=stale,backend=onednn", "node=a,kind=offset,by=0.5,step=3"}) {
    CHECK(Fault::parse(text).text() == text);
  }
  for (const char* text :
       {"", "node=a", "kind=sign", "node=a,kind=twist", "node=a,kind=sign,port=-1",
        "node=a,kind=sign,much=2", "node", "node=a,kind=sign,by=x"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(Fault::parse(text), Error);
  }
}

}  // namespace
}  // namespace keel::compare
