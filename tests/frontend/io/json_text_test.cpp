// Texts out of JSON objects.
#include "frontend/io/json_text.h"

#include <doctest/doctest.h>

namespace keel::io {
namespace {

TEST_CASE("json text: what stands under a key, or nothing") {
  CHECK(json_text(R"({"a": 1, "text": "x\n\"y\" \u00e9"})", "text") == "x\n\"y\" \u00e9");
  CHECK(json_text(R"({"text": ""})", "text") == "");
  for (const char* other : {R"({"txt": "a"})", R"({"text": 5})", R"(["text", "a"])", R"("text")",
                            R"({"text": "a")", "", "{\"text\": \"\xFF\"}"}) {
    CAPTURE(std::string(other));
    CHECK_FALSE(json_text(other, "text").has_value());
  }
}

}  // namespace
}  // namespace keel::io
