// The options half of a model.
#include "frontend/task/model.h"

#include <doctest/doctest.h>

#include "tests/support/checks.h"

namespace keel::task {
namespace {

struct ToyOptions {
  std::int64_t width = 3;
  double rate = 0.5;
  bool deep = false;
  std::string kind = "plain";

  static constexpr auto fields() {
    return std::tuple{field("width", &ToyOptions::width), field("rate", &ToyOptions::rate),
                      field("deep", &ToyOptions::deep), field("kind", &ToyOptions::kind)};
  }
  void validate() const { check(width >= 1, ErrorKind::kUsage, "expected >= 1, got {}", width); }
};

class Toy : public ModelWithOptions<ToyOptions> {
 public:
  std::string_view name() const override { return "toy"; }
  std::string_view summary() const override { return "a toy"; }
  Splits load(const DataRequest&) const override {
    return {data::Dataset("a"), data::Dataset("b"), data::Dataset("c")};
  }
  std::vector<InputSpec> inputs() const override { return {}; }
  Outputs build(nn::Net&, std::span<const Value>) const override { return {}; }
};

TEST_CASE("model: options are listed in order, as text, and can be set from it") {
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

TEST_CASE("model: refusals name the option, what was expected and what was given") {
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
  refused("width", "0", "model.width: ", "expected >= 1, got 0");
}

}  // namespace
}  // namespace keel::task
