// Every way for a header to be wrong is refused, with the reason.
#include "frontend/io/safetensors_header.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace keel;
using namespace keel::io;

namespace {

// The refusal of this header with two bytes of data after it, without the file's name; empty when
// it is accepted.
std::string header_refusal(const std::string& header) {
  try {
    parse_header(header, 2, "file");
    return "";
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBadInput);
    const std::string message = error.what(), opening = "[safetensors] file: ";
    CHECK(message.find('\n') == std::string::npos);
    REQUIRE(message.starts_with(opening));
    return message.substr(opening.size());
  }
}

std::string entry(std::string_view name, std::string_view dtype, std::string_view shape,
                  std::string_view offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}

// Headers and how the answer to each begins.
using Cases = std::vector<std::pair<std::string, std::string>>;

void check_refused(const Cases& cases) {
  for (const auto& [header, expected] : cases) {
    const std::string got = header_refusal(header);
    CAPTURE(header.substr(0, 100));
    CAPTURE(got);
    CHECK(got.substr(0, expected.size()) == expected);
  }
}

const std::string kGood = entry("a", "U8", "[2]", "[0,2]");
const std::string kMax = "9223372036854775807";

}  // namespace

TEST_CASE("safetensors header: good ones are accepted") {
  CHECK(header_refusal("{" + kGood + "}") == "");
  CHECK(header_refusal("{" + kGood + "," + entry("b", "U8", "[0]", "[0,0]") + "}") == "");
  CHECK(header_refusal("{" + kGood + "," + entry("b", "U8", "[0]", "[2,2]") + "}") == "");
}

TEST_CASE("safetensors header: what is not JSON, or not of the structure, is refused") {
  check_refused({
      {" {}", R"(header: expected '{' at byte 8, got " ")"},
      {"[]", R"(header: expected '{' at byte 8, got "[")"},
      {"{", "header: expected JSON in UTF-8, got an error at byte 9"},
      {"{" + kGood, "header: expected JSON in UTF-8, got an error at byte"},
      {"{" + kGood + "}}", "header: expected JSON in UTF-8, got an error at byte"},
      {"{" + kGood + ",}", "header: expected JSON in UTF-8, got an error at byte"},
      {"{\"a\xff\":{}}", "header: expected JSON in UTF-8, got an error at byte 11"},
      {"{\"a\xed\xa0\x80\":{}}", "header: expected JSON in UTF-8, got an error at byte 12"},
      {R"({"\ud800":{}})", "header: expected JSON in UTF-8, got an error at byte"},
      {std::string("{}\0x", 4), "header: expected JSON in UTF-8, got a zero at byte 10"},
      {R"({"a":1e999})", "header: expected JSON in UTF-8, got an error at byte"},
      {R"({"a":null})", R"(tensor "a": expected an object, got null)"},
      {R"({"a":true})", R"(tensor "a": expected an object, got a boolean)"},
      {R"({"a":[]})", R"(tensor "a": expected an object, got an array)"},
      {R"({"a":"b"})", R"(tensor "a": expected an object, got a string)"},
      {R"({"a":1})", R"(tensor "a": expected an object, got 1)"},
      {R"({"a":-1.5})", R"(tensor "a": expected an object, got -1.5)"},
      {"{" + kGood + "," + kGood + "}", R"(tensor "a": expected each name once, got it again)"},
  });
}

TEST_CASE("safetensors header: nesting ends at the third level") {
  check_refused({
      {R"({"a":{"dtype":{}}})", R"(tensor "a": dtype: expected a string, got an object)"},
      {R"({"a":{"shape":{}}})", R"(tensor "a": shape: expected an array, got an object)"},
      {R"({"a":{"shape":[[]]}})",
       R"(tensor "a": shape: expected a number from 0 to 2^63-1, got an array)"},
      {R"({"a":{"shape":[{"b":1}]}})",
       R"(tensor "a": shape: expected a number from 0 to 2^63-1, got an object)"},
      {R"({"a":)" + std::string(100000, '[') + std::string(100000, ']') + "}",
       R"(tensor "a": expected an object, got an array)"},
  });
}

TEST_CASE("safetensors header: metadata are strings, each name once") {
  check_refused({
      {R"({"__metadata__":[]})", R"(tensor "__metadata__": expected an object, got an array)"},
      {R"({"__metadata__":{"a":1}})", R"(metadata "a": expected a string, got 1)"},
      {R"({"__metadata__":{"a":{}}})", R"(metadata "a": expected a string, got an object)"},
      {R"({"__metadata__":{"a":null}})", R"(metadata "a": expected a string, got null)"},
      {R"({"__metadata__":{"a":"","a":""}})",
       R"(metadata "a": expected each name once, got it again)"},
      {R"({"__metadata__":{},"__metadata__":{}})",
       R"(tensor "__metadata__": expected each name once, got it again)"},
  });
}

TEST_CASE("safetensors header: a tensor has its three fields and a known type") {
  check_refused({
      {R"({"a":{}})",
       R"(tensor "a": expected dtype, shape and data_offsets, got only some of them)"},
      {R"({"a":{"dtype":"U8","shape":[2]}})",
       R"(tensor "a": expected dtype, shape and data_offsets, got only some of them)"},
      {R"({"a":{"dtype":"U8","dtype":"U8"}})",
       R"(tensor "a": expected dtype, shape and data_offsets once each, got a second "dtype")"},
      {R"({"a":{"shape":"x"}})", R"(tensor "a": shape: expected an array, got a string)"},
      {R"({"a":{"shape":["x"]}})",
       R"(tensor "a": shape: expected a number from 0 to 2^63-1, got a string)"},
      {R"({"a":{"data_offsets":[-1,0]}})",
       R"(tensor "a": data_offsets: expected a number from 0 to 2^63-1, got -1)"},
      {R"({"a":{"dtype":["U8"]}})", R"(tensor "a": dtype: expected a string, got an array)"},
      {R"({"a":{"more":1}})",
       R"(tensor "a": expected dtype, shape and data_offsets once each, got "more")"},
      {"{" + entry("a", "F16", "[1]", "[0,2]") + "}",
       R"(tensor "a": dtype: expected F32, F64, BF16, I32 or U8, got "F16")"},
      {"{" + entry("a", "u8", "[2]", "[0,2]") + "}",
       R"(tensor "a": dtype: expected F32, F64, BF16, I32 or U8, got "u8")"},
  });
}

TEST_CASE("safetensors header: impossible shapes are refused") {
  check_refused({
      {"{" + entry("a", "U8", "[-2]", "[0,2]") + "}",
       R"(tensor "a": shape: expected a number from 0 to 2^63-1, got -2)"},
      {"{" + entry("a", "U8", "[2.0]", "[0,2]") + "}",
       R"(tensor "a": shape: expected a number from 0 to 2^63-1, got 2.0)"},
      {"{" + entry("a", "U8", "[9223372036854775808]", "[0,2]") + "}",
       R"(tensor "a": shape: expected a number from 0 to 2^63-1, got 9223372036854775808)"},
      {"{" + entry("a", "U8", "[99999999999999999999]", "[0,2]") + "}",
       R"(tensor "a": shape: expected a number from 0 to 2^63-1, got 99999999999999999999)"},
      {"{" + entry("a", "U8", "[" + kMax + ",2]", "[0,2]") + "}",
       R"(tensor "a": expected a possible size, got size overflow)"},
      {"{" + entry("a", "F64", "[2305843009213693952]", "[0,0]") + "}",
       R"(tensor "a": expected a possible size, got size overflow)"},
      {"{" + entry("a", "U8", "[4294967296,4294967296,0]", "[0,2]") + "}",
       R"(tensor "a": expected a possible size, got size overflow)"},
      {"{" + entry("a", "U8", "[1,1,1,1,1,1,1,1,2]", "[0,2]") + "}",
       R"(tensor "a": shape: expected rank <= 8, got more sizes)"},
  });
}

TEST_CASE("safetensors header: ranges fit their tensors and follow one another to the end") {
  check_refused({
      {"{" + entry("a", "U8", "[2]", "[0]") + "}",
       R"(tensor "a": data_offsets: expected 2 numbers, got 1)"},
      {"{" + entry("a", "U8", "[2]", "[0,1,2]") + "}",
       R"(tensor "a": data_offsets: expected 2 numbers, got more)"},
      {"{" + entry("a", "U8", "[2]", "[2,0]") + "}",
       R"(tensor "a": data_offsets: expected 2 bytes for u8(2), got [2, 0])"},
      {"{" + entry("a", "F32", "[2]", "[0,2]") + "}",
       R"(tensor "a": data_offsets: expected 8 bytes for f32(2), got [0, 2])"},
      {"{" + entry("a", "U8", "[1]", "[0,2]") + "}",
       R"(tensor "a": data_offsets: expected 1 bytes for u8(1), got [0, 2])"},
      {"{" + entry("a", "U8", "[2]", "[-2,0]") + "}",
       R"(tensor "a": data_offsets: expected a number from 0 to 2^63-1, got -2)"},
      {"{" + entry("a", "U8", "[" + kMax + "]", "[0," + kMax + "]") + "}",
       "data: expected " + kMax + " bytes, as the header says, got 2"},
      {"{" + entry("a", "U8", "[1]", "[1,2]") + "}",
       R"(tensor "a": data_offsets: expected begin 0, got 1)"},
      {"{" + entry("a", "U8", "[2]", "[0,2]") + "," + entry("b", "U8", "[1]", "[1,2]") + "}",
       R"(tensor "b": data_offsets: expected begin 2, got 1)"},
      {"{" + entry("a", "U8", "[0]", "[1,1]") + "," + entry("b", "U8", "[2]", "[0,2]") + "}",
       R"(tensor "a": data_offsets: expected begin 2, got 1)"},
      {"{" + entry("a", "U8", "[1]", "[0,1]") + "}",
       "data: expected 1 bytes, as the header says, got 2"},
      {"{}", "data: expected 0 bytes, as the header says, got 2"},
  });
}

TEST_CASE("safetensors header: names in messages are harmless on a terminal") {
  const std::string message =
      header_refusal(R"({"\u001b[31m\n)" + std::string(1000, 'x') + R"(":1})");
  CHECK(message.starts_with(R"(tensor "\x1b[31m\nxxx)"));
  CHECK(message.size() < 150);
}

TEST_CASE("safetensors header: too many entries are refused" * doctest::test_suite("slow")) {
  std::string header = "{";
  for (std::size_t i = 0; i <= kMaxHeaderEntries; ++i) {
    header +=
        fmt::format(R"({}"{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", i ? "," : "", i);
  }
  CHECK(header_refusal(header + "}") ==
        "tensor \"262144\": expected at most 262144 entries, got more");
}
