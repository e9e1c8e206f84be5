// Honest runs: what rounding does to every op, norm and model stays within what it may.
#include <set>

#include "models/registry.h"
#include "src/ops/op_table.h"
#include "tests/frontend/compare/helpers.h"
#include "tests/frontend/compare/narrow_helpers.h"
#include "tests/support/each_bf16.h"
#include "tests/support/trace_task.h"

namespace keel::compare {
namespace {

TEST_CASE("compare: every op agrees with the reference, forward and backward") {
  const TestBackends backends(Emulated::kTakenIn);
  for (const std::string& op : subject_ops()) {
    CAPTURE(op);
    if (!has_own_subject(op)) continue;
    for (const auto& subject : op_subjects(op)) check_agrees(backends.compare(*subject));
  }
}

TEST_CASE(
    "compare: every norm agrees with the reference, forward, backward and state, in three steps" *
    doctest::test_suite("slow")) {
  const TestBackends backends(Emulated::kTakenIn);
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    CAPTURE(facts.name);
    for (const auto& subject : norm_subjects(nn::Norm::parse(facts.any_width()))) {
      check_agrees(backends.compare(*subject, {.walk = {}, .steps = 3}));
    }
  }
}

// The layers that have something in bf16 agree with the reference, and every backend runs all of
// their nodes.
void check_bf16(const TestBackends& backends, const Subjects& subjects) {
  for (const auto& subject : subjects) {
    if (!has_bf16(subject->graph())) continue;
    const Comparison c = backends.compare(*subject);
    check_agrees(c);
    CHECK(c.complete());
  }
}

// Large norms have only the cases with hard numbers: that sizes change no bits is tested elsewhere
// (tests/backends/narrow_norms_test.cpp).
TEST_CASE("compare: every op with products agrees in bf16, and every norm of bf16" *
          doctest::test_suite("slow")) {
  const test::EachBf16 each;
  if (NarrowBackends().all.empty()) return;
  const TestBackends small(Emulated::kTakenIn), large;
  for (const std::string& op : subject_ops()) {
    CAPTURE(op);
    if (!has_own_subject(op)) continue;
    check_bf16(small, op_subjects(op, {.is_narrow = true}));
    check_bf16(large, op_subjects(op, {.size = CaseSize::kLarge, .is_narrow = true}));
  }
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    CAPTURE(facts.name);
    const nn::Norm norm = nn::Norm::parse(facts.any_width());
    check_bf16(small, norm_subjects(norm, {.is_narrow = true}));
    Subjects hard = norm_subjects(norm, {.size = CaseSize::kLarge, .is_narrow = true});
    std::erase_if(hard, [](const auto& s) { return !s->input_case().starts_with("hard"); });
    check_bf16(large, hard);
  }
}

TEST_CASE("compare: in bf16 are all ops with products, and all norms but that of weights") {
  const std::set<std::string> products{"matmul", "conv2d", "attention", "relative_attention",
                                       "linear_cross_entropy"};
  std::set<std::string> narrow;
  for (const std::string& op : subject_ops()) {
    if (!has_own_subject(op)) continue;
    for (const auto& subject : op_subjects(op, {.is_narrow = true})) {
      if (has_bf16(subject->graph())) narrow.insert(op);
    }
  }
  for (const std::string& op : products) CHECK(narrow.contains(op));
  CHECK_FALSE(narrow.contains("softmax"));
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    CAPTURE(facts.name);
    const nn::Norm norm = nn::Norm::parse(facts.any_width());
    for (const auto& subject : norm_subjects(norm, {.is_narrow = true})) {
      const bool is_of_x = facts.name != "weightnorm" && facts.name != "none";
      CHECK(has_bf16(subject->graph()) == is_of_x);
    }
  }
}

TEST_CASE("compare: norms with other options, such as they are trained with, agree, too") {
  const TestBackends backends(Emulated::kTakenIn);
  for (const char* norm :
       {"layernorm{gain=false,bias=false}", "adanorm{C=2}", "groupnorm{groups=2}",
        "powernorm{heads=4,warmup=2}", "powernorm{mode=paper}", "mabn{m=2,warmup=0}",
        "unifiednorm{m=2,warmup=0}", "rmsnorm{eps=0.1}", "weightnorm{eps=0.01}"}) {
    CAPTURE(norm);
    for (const auto& subject : norm_subjects(nn::Norm::parse(norm), {.unfused = true})) {
      check_agrees(backends.compare(*subject, {.walk = {}, .steps = 2}));
    }
  }
}

TEST_CASE("compare: an op's subjects have the op in them") {
  for (const std::string& op : subject_ops()) {
    CAPTURE(op);
    bool is_there = false;
    for (const auto& subject : op_subjects(op)) {
      for (int i = 0; i < subject->graph().size(); ++i) {
        const Node& node = subject->graph().node(i);
        is_there = is_there || (node.op != nullptr && node.op->name == op);
      }
    }
    CHECK(is_there);
  }
}

TEST_CASE("compare: every model agrees with the reference, step by step" *
          doctest::test_suite("slow")) {
  const TestBackends backends;
  for (const models::ModelEntry& model : models::all_models()) {
    for (const char* mode : {"isolated", "chained"}) {
      CAPTURE(model.name);
      CAPTURE(mode);
      const train::Job job = test::small_job({}, model.name);
      ModelSubject subject(*backends.reference, job);
      CompareOptions options{.walk = {}, .steps = 2};
      options.walk.mode = parse_choice<WalkMode>(mode);
      check_agrees(backends.compare(subject, options));
    }
  }
}

TEST_CASE("compare: a network with carries agrees, going on from batch to batch") {
  const TestBackends backends;
  const train::Job job = test::trace_job();
  ModelSubject subject(*backends.reference, job);
  for (const WalkMode mode : {WalkMode::kIsolated, WalkMode::kChained}) {
    CompareOptions options{.walk = {}, .steps = 6};
    options.walk.mode = mode;
    check_agrees(backends.compare(subject, options));
  }
}

TEST_CASE("compare: every optimizer and every clipping agrees with the reference" *
          doctest::test_suite("slow")) {
  const TestBackends backends;
  for (const char* optimizer :
       {"sgd", "adam", "adamw", "adam_fairseq", "adam_release", "adagrad", "rmsprop_graves"}) {
    for (const char* clip : {"none", "global", "per_tensor", "element"}) {
      CAPTURE(optimizer);
      CAPTURE(clip);
      const train::Job job =
          test::small_job({std::string("train.optimizer=") + optimizer,
                           std::string("train.clip=") + clip, "train.clip_limit=0.01"});
      ModelSubject subject(*backends.reference, job);
      check_agrees(backends.compare(subject, {.walk = {}, .steps = 2}));
    }
  }
}

}  // namespace
}  // namespace keel::compare
