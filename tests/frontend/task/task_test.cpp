// The options half of a task.
#include "frontend/task/task.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/checks.h"

namespace keel::task {
namespace {

struct ToyOptions {
  std::int64_t width = 3;
  double rate = 0.5;
  bool deep = false;
  std::string kind = "plain";

  static constexpr auto fields() {
    return std::tuple{option("width", &ToyOptions::width, "units of a layer"),
                      option("rate", &ToyOptions::rate, "how fast it learns", fraction()),
                      option("deep", &ToyOptions::deep, "whether it has two layers"),
                      option("kind", &ToyOptions::kind, "what it is")};
  }
  void validate() const {
    check(width % 3 == 0, ErrorKind::kUsage, "width: expected a multiple of 3, got {}", width);
    check(!deep || width >= 6, ErrorKind::kUsage, "deep: expected a width >= 6, got {}", width);
  }
};

class Toy : public TaskWithOptions<ToyOptions> {
 public:
  std::string_view name() const override { return "toy"; }
  std::string_view summary() const override { return "a toy"; }
  Prepared prepare(const DataRequest&, const Assets*) const override { return {}; }
  std::shared_ptr<const Network> restore(const Assets&) const override { return nullptr; }
  std::vector<MetricInfo> metrics() const override { return {}; }
};

TEST_CASE("task: options are listed in order, as text, and can be set from it") {
  Toy toy;
  CHECK(toy.options() ==
        OptionValues{{"width", "3"}, {"rate", "0.5"}, {"deep", "false"}, {"kind", "plain"}});
  toy.set_option("width", "12");
  toy.set_option("rate", "1e-3");
  toy.set_option("deep", "true");
  toy.set_option("kind", "a=b, c");
  CHECK(toy.options() ==
        OptionValues{{"width", "12"}, {"rate", "0.001"}, {"deep", "true"}, {"kind", "a=b, c"}});
}

TEST_CASE("task: refusals name the option, what was expected and what was given") {
  Toy toy;
  const auto refused = [&](std::string_view key, std::string_view value, std::string_view beginning,
                           std::string_view part) {
    test::check_refused([&] { toy.set_option(key, value); }, beginning, part);
  };
  refused("widht", "3", "model.widht: 'widht' is unknown", "nearest: 'width'");
  refused("width", "3.5", "model.width: ", "expected a whole number, got '3.5'");
  refused("width", "", "model.width: ", "expected a whole number, got ''");
  refused("width", "99999999999999999999", "model.width: ", "expected a whole number");
  refused("rate", "fast", "model.rate: ", "expected a number, got 'fast'");
  refused("deep", "yes", "model.deep: ", "expected true or false, got 'yes'");
}

TEST_CASE("task: options are judged together, whatever their order") {
  Toy toy;
  toy.set_option("deep", "true");
  toy.set_option("rate", "1");
  test::check_refused([&] { toy.validate(); }, "model.rate: expected in [0, 1), got 1");
  toy.set_option("rate", "0.5");
  test::check_refused([&] { toy.validate(); }, "model.deep: expected a width >= 6, got 3");
  toy.set_option("width", "7");
  test::check_refused([&] { toy.validate(); }, "model.width: expected a multiple of 3, got 7");
  toy.set_option("width", "9");
  CHECK_NOTHROW(toy.validate());
}

TEST_CASE("task: inputs are found by name") {
  const Inputs in({{"label", Value{3, 0}}});
  CHECK(in["label"] == Value{3, 0});
  test::check_refused([&] { in["image"]; }, "inputs: none is called 'image'");
}

TEST_CASE("metric: ratios are formed of sums") {
  CHECK(mean_of(6, 4) == 1.5);
  CHECK(percent_of(1, 4) == 25);
  CHECK(percent_without(1, 4) == 75);
  CHECK(perplexity_of(std::log(8.0) * 5, 5) == doctest::Approx(8).epsilon(1e-14));
  CHECK(bits_of(std::log(8.0) * 5, 5) == doctest::Approx(3).epsilon(1e-14));
}

}  // namespace
}  // namespace keel::task
