// Attributes: printing, parsing, assignment by name and comparison.
#include "src/graph/attrs.h"

#include <doctest/doctest.h>

#include "tests/support/checks.h"

namespace keel::test {
namespace {

enum class Colour { kRed, kGreen, kDarkBlue };
constexpr auto choice_words(Colour) {
  return std::to_array<std::string_view>({"red", "green", "dark_blue"});
}

struct Everything {
  bool flag = false;
  double number = 0.1;
  std::int64_t whole = -3;
  std::string word = "relu";
  Colour colour = Colour::kGreen;
  Shape shape{2, 3};
  std::vector<std::int64_t> list{1, 2};
  DType dtype = DType::kI32;
  static constexpr auto fields() {
    return std::tuple{field("flag", &Everything::flag),     field("number", &Everything::number),
                      field("whole", &Everything::whole),   field("word", &Everything::word),
                      field("colour", &Everything::colour), field("shape", &Everything::shape),
                      field("list", &Everything::list),     field("dtype", &Everything::dtype)};
  }
};

struct Settable {
  bool flag = false;
  double number = 0;
  std::int64_t whole = 0;
  std::string word = {};
  Colour colour = Colour::kRed;
  static constexpr auto fields() {
    return std::tuple{field("flag", &Settable::flag), field("number", &Settable::number),
                      field("whole", &Settable::whole), field("word", &Settable::word),
                      field("colour", &Settable::colour)};
  }
};

TEST_CASE("attrs: every field is printed, doubles shortest and exact") {
  CHECK(Attrs(Everything{}).text() ==
        "flag=false number=0.1 whole=-3 word=relu colour=green shape=(2, 3) list=[1,2] dtype=i32");
  CHECK(Attrs().text() == "");
  CHECK(std::stod(attr_text(1.0 / 3)) == 1.0 / 3);
}

TEST_CASE("attrs: fields are set from text by name") {
  Settable s;
  CHECK(set_field(s, "flag", "true"));
  CHECK(set_field(s, "number", "1e-5"));
  CHECK(set_field(s, "whole", "-42"));
  CHECK(set_field(s, "word", "any text"));
  CHECK(set_field(s, "colour", "dark_blue"));
  CHECK_FALSE(set_field(s, "no_such_field", "1"));
  CHECK(fields_text(s) == "flag=true number=1e-05 whole=-42 word=any text colour=dark_blue");
  CHECK(set_field(s, "flag", "false"));
  CHECK_FALSE(s.flag);
}

TEST_CASE("attrs: text that is not the value is refused") {
  Settable s;
  for (const char* text : {"yes", "1", "0", "True", ""}) {
    check_refused([&] { set_field(s, "flag", text); },
                  fmt::format("expected true or false, got '{}'", text));
  }
  for (const char* text : {"", "x", "1.5x", "1 "}) {
    CAPTURE(text);
    check_refused([&] { set_field(s, "number", text); }, "expected a number, got");
  }
  for (const char* text : {"", "1.5"}) {
    CAPTURE(text);
    check_refused([&] { set_field(s, "whole", text); }, "expected a whole number, got");
  }
  check_refused([&] { set_field(s, "whole", "99999999999999999999"); },
                "expected a whole number of at most 64 bits, got '99999999999999999999'");
  for (const char* text : {"", "Red", "red ", "1"}) {
    CAPTURE(text);
    check_refused([&] { set_field(s, "colour", text); },
                  fmt::format("expected red, green or dark_blue, got '{}'", text));
  }
}

TEST_CASE("attrs: type-erased structs come back as themselves only, and compare by value") {
  const Attrs a = Settable{.whole = 5}, b = Settable{.whole = 5}, c = Settable{.whole = 6};
  CHECK(a.as<Settable>().whole == 5);
  check_refused([&] { a.as<Everything>(); }, "attributes: expected 'flag=false number=",
                "dtype=i32', got 'flag=false number=0 whole=5 word= colour=red'");
  CHECK(a == b);
  CHECK(a != c);
}

}  // namespace
}  // namespace keel::test
