// Kinds of characters, lower case of all scripts, and composed forms.
#include "frontend/text/unicode.h"

#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

TEST_CASE("unicode: texts and code points") {
  const std::string text = "a\u00E9\u20AC\U0001F600";
  CHECK((code_points(text) == U"a\u00E9\u20AC\U0001F600"));
  CHECK(utf8_of(code_points(text)) == text);
  CHECK(utf8_of(U"").empty());
  CHECK(
      test::refuses(ErrorKind::kBadInput, "expected UTF-8, got ff", [] { code_points("ab\xFF"); }));
}

TEST_CASE("unicode: letters, digits and numbers") {
  for (char32_t code : U"aZ\u00E9\u00DF\u0416\u4E2D\u0E01\u2160\u24B6") {
    if (code != 0) CHECK(is_letter(code));
  }
  for (char32_t code : U"5 .'-_\u00BD\u20AC\u0301\uFE0F\u3000") CHECK_FALSE(is_letter(code));
  CHECK(is_letter(0x093E));  // a vowel sign of Devanagari
  // Signs that mute a vowel, points and tones, at the ends of ranges.
  for (char32_t code : {0x093C, 0x094D, 0x0E47, 0x0E4C, 0x0591, 0x05AF, 0x0344, 0x1E944, 0x1E94A}) {
    CHECK_FALSE(is_letter(code));
  }
  for (char32_t code : {0x0345, 0x05B0, 0x0E4D, 0x0E31, 0x064B, 0x1E947}) CHECK(is_letter(code));
  for (char32_t code : {0x1F130, 0x1F149, 0x1F150, 0x1F169, 0x1F170, 0x1F189}) {
    CHECK(is_letter(code));  // in squares and circles
  }
  for (char32_t code : {0x1F12F, 0x1F14A, 0x1F14F, 0x1F16A, 0x1F16F, 0x1F18A}) {
    CHECK_FALSE(is_letter(code));
  }
  CHECK(is_digit(U'0'));
  CHECK(is_digit(0x0663));  // an Arabic three
  CHECK_FALSE(is_digit(0x00BD));
  CHECK(is_number(0x00BD));
  CHECK(is_number(0x2160));
  CHECK_FALSE(is_number(U'a'));
  CHECK(is_alphanumeric(U'7'));
  CHECK_FALSE(is_alphanumeric(0x00BD));
  CHECK(is_lower(0x00E9));
  CHECK_FALSE(is_lower(0x00C9));
  CHECK_FALSE(is_lower(U'1'));
  CHECK(is_currency(0x20AC));
  CHECK(is_currency(U'$'));
  CHECK_FALSE(is_currency(U'%'));
}

TEST_CASE("unicode: white space, and words between it") {
  for (char32_t code : {0x09, 0x0D, 0x20, 0x85, 0xA0, 0x2003, 0x2028, 0x2029, 0x202F, 0x3000}) {
    CHECK(is_space(code));
  }
  for (char32_t code : {0x00, 0x1F, 0x200B, 0x41, 0xFEFF}) CHECK_FALSE(is_space(code));
  const std::vector<std::string_view> parts = split_at_spaces(" a\u00A0b\u2028\u2028cd\t");
  CHECK(parts == std::vector<std::string_view>{"a", "b", "cd"});
  CHECK(split_at_spaces("").empty());
  CHECK(split_at_spaces(" \u3000").empty());
}

TEST_CASE("unicode: lower case of every script") {
  CHECK(lower_case_unicode("TEN \u00C9\u0141\u0416\u03A9\U00010400 \u00DF 5") ==
        "ten \u00E9\u0142\u0436\u03C9\U00010428 \u00DF 5");
  CHECK(lower_case_unicode("").empty());
  CHECK(lower_case_unicode("\u0130I\u0131 \u0130STANBUL") == "i\u0307i\u0131 i\u0307stanbul");
}

TEST_CASE("unicode: composed forms") {
  CHECK(normalized("e\u0301 n\u0303", Normalization::kNfc) == "\u00E9 \u00F1");
  CHECK(normalized("\uFB01 \uFF21", Normalization::kNfc) == "\uFB01 \uFF21");
  CHECK(normalized("\uFB01 \uFF21", Normalization::kNfkc) == "fi A");
  CHECK(normalized("plain", Normalization::kNfc) == "plain");
  CHECK(normalized("", Normalization::kNfc).empty());
}

}  // namespace
}  // namespace keel::text
