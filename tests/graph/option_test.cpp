// Options with a meaning and a range, and that every model's say the truth about theirs.
#include "src/graph/option.h"

#include <doctest/doctest.h>

#include <cmath>

#include "frontend/train/config.h"
#include "models/registry.h"
#include "tests/support/checks.h"

namespace keel {
namespace {

TEST_CASE("options: what a range holds and says") {
  const struct {
    Range range;
    const char* text;
    std::vector<double> inside, outside;
  } rows[] = {
      {between(1, 20), "1 to 20", {1, 20}, {0.999, 20.001, NAN, INFINITY}},
      {at_least(0), ">= 0", {0, 3e38}, {-1e-300, 3.5e38, INFINITY}},
      {more_than(0), "> 0", {1e-300}, {0, -1}},
      {more_than(0, 100), "in (0, 100]", {100}, {0, 100.1}},
      {fraction(), "in [0, 1)", {0, 0.999}, {1, -0.1}},
      {between(5, 10000000), "5 to 10000000", {}, {}},
      {{}, "", {-3e38, 0}, {-INFINITY, NAN, 1e39}},
      {described("0 to b", at_least(0)), "0 to b", {0}, {-1}},
  };
  for (const auto& row : rows) {
    CAPTURE(std::string(row.text));
    CHECK(row.range.text() == row.text);
    for (const double value : row.inside) CHECK(row.range.holds(value));
    for (const double value : row.outside) CHECK_FALSE(row.range.holds(value));
  }
}

enum class Colour { kRed, kBlue };
constexpr auto choice_words(Colour) { return std::to_array<std::string_view>({"red", "blue"}); }

struct Painted {
  std::int64_t coats = 2;
  double share = 0.5, shift = 0;
  Colour colour = Colour::kBlue;
  bool glossy = false;
  std::string name = "wall";

  static constexpr auto fields() {
    using T = Painted;
    return std::tuple{option("coats", &T::coats, "layers of paint", between(1, 9)),
                      option("share", &T::share, "of the area", fraction()),
                      option("shift", &T::shift, "upwards"),
                      option("colour", &T::colour, "its colour"),
                      option("glossy", &T::glossy, "whether it shines"),
                      option("name", &T::name, "what it is called")};
  }
};

TEST_CASE("options: facts say meaning, value and what may be given") {
  std::string all;
  for (const OptionFact& fact : option_facts(Painted{})) {
    all += fmt::format("{}|{}|{}|{}\n", fact.name, fact.about, fact.value, fact.range);
  }
  CHECK(all ==
        "coats|layers of paint|2|integer, 1 to 9\n"
        "share|of the area|0.5|number in [0, 1)\n"
        "shift|upwards|0|number\n"
        "colour|its colour|blue|red or blue\n"
        "glossy|whether it shines|false|true or false\n"
        "name|what it is called|wall|text\n");
}

TEST_CASE("options: a number out of its range is refused by name") {
  const auto refused = [](const Painted& options, std::string_view what) {
    test::check_refused([&] { check_ranges(options); }, what);
  };
  check_ranges(Painted{});
  refused({.coats = 0}, "coats: expected 1 to 9, got 0");
  refused({.share = 1}, "share: expected in [0, 1), got 1");
  refused({.shift = 1e39}, "shift: expected a number that float32 holds, got 1e+39");
  // This number is not 0 here and would be 0 in a network.
  refused({.shift = -1e-300},
          "shift: expected a number that float32 holds, got -1e-300, which is 0 in float32");
  refused({.share = 1e-46}, "share: expected in [0, 1) within float32, got 1e-46, which is 0");
  check_ranges(Painted{.share = 1e-45});
}

TEST_CASE("options: a type that cannot be read back is none of an option") {
  CHECK(OptionType<bool>);
  CHECK(OptionType<std::int64_t>);
  CHECK(OptionType<double>);
  CHECK(OptionType<std::string>);
  CHECK(OptionType<std::vector<std::int64_t>>);
  CHECK(OptionType<Colour>);
  CHECK(OptionType<train::Period>);
  CHECK_FALSE(OptionType<int>);
  CHECK_FALSE(OptionType<unsigned>);
  CHECK_FALSE(OptionType<float>);
  CHECK_FALSE(OptionType<const char*>);
}

// A key whose text gives two bounds, or one, takes them and nothing beyond them: what is said to
// people is what is checked.
TEST_CASE("options: no key of any model takes a number beyond what it says") {
  int probed = 0;
  for (const auto& entry : models::all_models()) {
    for (const OptionFact& fact : train::Config(entry.make()).facts()) {
      CAPTURE(entry.name);
      CAPTURE(fact.name);
      CHECK(fact.about.size() >= 6);
      CHECK_FALSE(fact.range.empty());
      CHECK(fact.about.find('|') == std::string::npos);  // cells of docs/keys.md
      if (!fact.range.starts_with("integer, ") && !fact.range.starts_with("number")) {
        continue;
      }
      for (const char* value : {"-9223372036854775808", "1e39"}) {
        train::Config config(entry.make());
        const auto use = [&] {
          config.set(fact.name, value);
          config.validate();
        };
        const bool is_whole = fact.range.starts_with("integer");
        if (is_whole == (value[0] == '-')) {
          test::check_refused(use, fact.name + ": expected", value[0] == '-' ? "got -" : "got 1e");
          ++probed;
        }
      }
    }
  }
  CHECK(probed > 250);
}

}  // namespace
}  // namespace keel
