// Texts out of JSON objects.
#include "frontend/io/json_text.h"

#include <doctest/doctest.h>

namespace keel::io {
namespace {

TEST_CASE("json text: what stands under a key, or nothing") {
  CHECK(json_text(R"({"a": 1, "text": "x\n\"y\" \u00e9"})", "text") == "x\n\"y\" \u00e9");
  CHECK(json_text(R"({"text": ""})", "text") == "");
  CHECK(json_text(R"({"a": {"text": "b"}, "text": "c", "x": 1, "x": 2})", "text") == "c");
  for (const char* other :
       {R"({"txt": "a"})", R"({"text": 5})", R"(["text", "a"])", R"("text")", R"({"text": "a")",
        R"({"text": "a", "text": "b"})", "", "{\"text\": \"\xFF\"}"}) {
    CAPTURE(std::string(other));
    CHECK_FALSE(json_text(other, "text").has_value());
  }
}

TEST_CASE("json word: a text, or the digits of a whole number") {
  CHECK(json_word(R"({"label": "x y"})", "label") == "x y");
  CHECK(json_word(R"({"label": -7})", "label") == "-7");
  CHECK(json_word(R"({"label": 18446744073709551615})", "label") == "18446744073709551615");
  for (const char* other :
       {R"({"label": 0.5})", R"({"label": true})", R"({"label": null})", R"({"label": [1]})"}) {
    CAPTURE(std::string(other));
    CHECK_FALSE(json_word(other, "label").has_value());
  }
  CHECK_FALSE(json_text(R"({"label": 7})", "label").has_value());
}

TEST_CASE("json value: any value as JSON, or nothing") {
  CHECK(json_value(R"({"label": 1.0})", "label") == "1.0");
  CHECK(json_value(R"({"label": [null, "a"]})", "label") == R"([null,"a"])");
  for (const char* other : {R"({"a": 1})", "[1]", "{", ""}) {
    CAPTURE(std::string(other));
    CHECK_FALSE(json_value(other, "label").has_value());
  }
}

}  // namespace
}  // namespace keel::io
