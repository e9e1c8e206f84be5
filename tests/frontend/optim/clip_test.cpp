// Gradient clipping against its definitions, and the guard against values that are not finite.
#include "frontend/optim/clip.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/reference/backend.h"
#include "tests/support/checks.h"

namespace keel::optim {
namespace {

// Two gradients of the norms 5 and 12; both together have 13.
const Tensor kFirst = test::f64({2}, {3, -4}), kSecond = test::f64({1, 2}, {0, 12});

struct Clip {
  std::vector<Tensor> gradients;
  double scale, norm;
};

Clip clip(const ClipOptions& options, const Tensor& first = kFirst) {
  Graph g;
  const Value a = g.input("a", first.type()), b = g.input("b", kSecond.type());
  const Clipped clipped = clip_gradients(g, std::vector{a, b}, options);
  reference::ReferenceBackend backend;
  Feeds feeds;
  feeds["a"] = first.clone();
  feeds["b"] = kSecond.clone();
  g.mark_output("scale", clipped.scale);
  g.mark_output("norm", clipped.norm);
  for (std::size_t i = 0; i < 2; ++i) {
    if (clipped.gradients[i] != std::vector{a, b}[i]) {
      g.mark_output(i == 0 ? "first" : "second", clipped.gradients[i]);
    }
  }
  const Results results = run_graph(backend, g, feeds);
  Clip result{{}, results.at("scale").at(0), results.at("norm").at(0)};
  for (const char* name : {"first", "second"}) {
    const Tensor& given = feeds.at(name == std::string("first") ? "a" : "b");
    result.gradients.push_back(results.contains(name) ? results.at(name).clone() : given.clone());
  }
  return result;
}

// scale * clipped gradient, as the update sees it.
void check_seen(const Clip& clip, std::initializer_list<double> expected) {
  std::vector<double> seen;
  for (const Tensor& gradient : clip.gradients) {
    for (std::int64_t e = 0; e < gradient.elements(); ++e) {
      seen.push_back(clip.scale * gradient.at(e));
    }
  }
  REQUIRE(seen.size() == expected.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    CAPTURE(i);
    CHECK(seen[i] == doctest::Approx(expected.begin()[i]).epsilon(1e-14));
  }
}

TEST_CASE("clip: none") {
  check_seen(clip({}), {3, -4, 0, 12});
  CHECK(clip({}).scale == 1);
}

TEST_CASE("clip: global shrinks all gradients by one factor") {
  check_seen(clip({Clipping::kGlobal, 6.5}), {1.5, -2, 0, 6});
  check_seen(clip({Clipping::kGlobal, 13}), {3, -4, 0, 12});
  check_seen(clip({Clipping::kGlobal, 100}), {3, -4, 0, 12});
}

TEST_CASE("clip: per_tensor shrinks each gradient by its own norm") {
  check_seen(clip({Clipping::kPerTensor, 6}), {3, -4, 0, 6});
  check_seen(clip({Clipping::kPerTensor, 1}), {0.6, -0.8, 0, 1});
}

TEST_CASE("clip: element") { check_seen(clip({Clipping::kElement, 3.5}), {3, -3.5, 0, 3.5}); }

TEST_CASE("clip: the norm is that of all gradients before clipping") {
  for (const Clipping kind :
       {Clipping::kNone, Clipping::kGlobal, Clipping::kPerTensor, Clipping::kElement}) {
    CAPTURE(choice_text(kind));
    CHECK(clip({kind, 1}).norm == doctest::Approx(13).epsilon(1e-14));
  }
}

TEST_CASE("clip: a gradient that is not finite makes scale and norm so too") {
  for (double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (const Clipping kind :
         {Clipping::kNone, Clipping::kGlobal, Clipping::kPerTensor, Clipping::kElement}) {
      CAPTURE(choice_text(kind));
      CAPTURE(bad);
      const Clip clipped = clip({kind, 1}, test::f64({2}, {1, bad}));
      CHECK_FALSE(std::isfinite(clipped.norm));
      CHECK_FALSE(std::isfinite(clipped.scale));
    }
  }
}

TEST_CASE("clip: zero gradients stay zero") {
  const Clip clipped = clip({Clipping::kPerTensor, 1}, test::f64({2}, {0, 0}));
  CHECK(clipped.gradients[0].at(0) == 0);
  CHECK(clipped.scale == 1);
}

TEST_CASE("clip: refusals") {
  const auto refused = [](const ClipOptions& options, std::string_view key, std::string_view part) {
    test::check_refused([&] { validate(options); }, key, part);
  };
  refused({Clipping::kGlobal, 0}, "clip_limit:", "expected > 0, got 0");
  refused({Clipping::kNone, std::nan("")}, "clip_limit:", "expected > 0");
}

TEST_CASE("clip: absent gradients stay absent and count for nothing") {
  for (const Clipping kind :
       {Clipping::kNone, Clipping::kGlobal, Clipping::kPerTensor, Clipping::kElement}) {
    CAPTURE(choice_text(kind));
    Graph g;
    const Value a = g.input("a", kFirst.type());
    const Clipped clipped = clip_gradients(g, std::vector{Value{}, a, Value{}}, {kind, 2.5});
    REQUIRE(clipped.gradients.size() == 3);
    CHECK_FALSE(clipped.gradients[0].valid());
    CHECK(clipped.gradients[1].valid());
    CHECK_FALSE(clipped.gradients[2].valid());
    g.mark_output("norm", clipped.norm);
    reference::ReferenceBackend backend;
    Feeds feeds;
    feeds["a"] = kFirst.clone();
    CHECK(run_graph(backend, g, feeds).at("norm").at(0) == 5);
  }
}

TEST_CASE("clip: no gradient at all has norm 0 and scale 1") {
  Graph g;
  const Clipped clipped = clip_gradients(g, std::vector<Value>(2), {Clipping::kGlobal, 2.5});
  g.mark_output("norm", clipped.norm);
  g.mark_output("scale", clipped.scale);
  reference::ReferenceBackend backend;
  const Results results = run_graph(backend, g, {});
  CHECK(results.at("norm").at(0) == 0);
  CHECK(results.at("scale").at(0) == 1);
}

}  // namespace
}  // namespace keel::optim
