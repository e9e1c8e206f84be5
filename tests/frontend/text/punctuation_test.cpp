// Signs in one way: Moses' rules for WMT one by one.
#include "frontend/text/punctuation.h"

#include "frontend/text/unicode.h"
#include "tests/support/input_checks.h"

namespace keel::text {
namespace {

struct SignCase {
  const char *text, *expected;
};

void check_signs(std::string_view language, const std::vector<SignCase>& cases) {
  for (const SignCase& c : cases) CHECK(normalized_punctuation(c.text, language) == c.expected);
}

TEST_CASE("punctuation: blanks at brackets and signs") {
  check_signs("en", {{"", ""},
                     {"a(b)c", "a (b) c"},
                     {"a ( b ) . c", "a (b). c"},
                     {"( b )? )x", " (b)?) x"},
                     {"5 % of : this ; now", "5% of: this; now"},
                     {"x %  y", "x % y"},
                     {"a\rb", "ab"}});
}

TEST_CASE("punctuation: quotes, dashes and dots") {
  check_signs("cs", {{"\u201Ea\u201C \u201Db\u201D", "\"a\" \"b\""},
                     {"a\u2013b\u2014c\u2026", "a-b - c..."},
                     {"don\u2019t d\u2018Or", "don't d'Or"},
                     {"\u2018a\u2019 \u201Ab 5\u2019", "'a\" 'b 5\""},
                     {"`a` ''b''", "'a' \" b \" "},
                     {"a\u00B4b", "a'b"},
                     {"x \u00AB\u00A0a\u00A0\u00BB \u00ABb\u00BB y\u00A0\u00AB\u00A0c",
                      "x \"a\" \"b\" y \"c"}});
}

TEST_CASE("punctuation: no-break blanks") {
  check_signs("en", {{"5\u00A0% n\u00BA\u00A07 a\u00A0: b\u00A0? c\u00A0! d\u00A0; e,\u00A0f",
                      "5% n\u00BA 7 a: b? c! d; e, f"},
                     {"20\u00A0\u00BAC 3\u00A0cm", "20 \u00BAC 3 cm"},
                     {"1\u00A0000\u00A0000", "1.000.000"},
                     {"\u0663 % \u0663\u00A0\u0664", "\u0663 % \u0663\u00A0\u0664"},
                     {"a\u00A0b", "a\u00A0b"}});
  for (const char* language : {"it", "nl", "pt", "ru"}) {
    check_signs(language, {{"1\u00A0000", "1.000"}});
  }
  for (const char* language : {"de", "es", "cs", "cz", "fr"}) {
    check_signs(language, {{"1\u00A0000", "1,000"}});
  }
}

TEST_CASE("punctuation: stops at quotes by language") {
  check_signs("en", {{"he said \"so\", and \"no\"...", "he said \"so,\" and \"no...\""}});
  for (const char* language : {"de", "es", "fr", "it", "pt", "nl", "ru", "ja", "fi", "pl", "tr"}) {
    check_signs(language, {{"\"so,\" sagt er", "\"so\", sagt er"},
                           {"\"so.\" Und \"ja..\" x", "\"so\". Und \"ja\".. x"},
                           {"\"so.\"", "\"so\"."},
                           {"\"so.\" ", "\"so\". "},
                           {"\"so.\"<br>", "\"so.\"<br>"},
                           {"a.\" <", "a\". <"},
                           {"a.\".\"b", "a\"..\"b"},
                           {"...", "..."},
                           {"a...b..\" c", "a...b\".. c"},
                           {"....\"<b", "....\"<b"},
                           {"...\"<..\"x", "...\"<\"..x"}});
  }
  for (const char* language : {"cs", "cz"}) {
    check_signs(language, {{"\"so,\" \"so\", \"so.\" x", "\"so,\" \"so\", \"so.\" x"}});
  }
}

TEST_CASE("punctuation: characters that cannot be printed become blanks") {
  CHECK(with_printable_characters("a\tb\u200Bc\u00ADd\uE000e\u0378f") == "a b c d e f");
  CHECK(with_printable_characters("plain \u00E9 \U0001F600") == "plain \u00E9 \U0001F600");
  CHECK(is_printable(U'a'));
  CHECK_FALSE(is_printable(0x200B));
}

}  // namespace
}  // namespace keel::text
