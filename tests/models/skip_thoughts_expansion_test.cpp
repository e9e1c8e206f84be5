// Words that training did not have: files of vectors, the map, and what it does to sentences.
#include "models/skip_thoughts/expansion.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>

#include "models/skip_thoughts/model.h"
#include "tests/models/helpers.h"
#include "tests/models/sentence_vectors.h"
#include "tests/support/checks.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

using Wanted = std::set<std::string, std::less<>>;

WordVectors read(const test::TempDir& folder, const std::string& content) {
  test::write_bytes(folder / "v.txt", content);
  return read_word_vectors(folder / "v.txt", [](std::string_view word) { return word != "no"; });
}

TEST_CASE("expansion: files of vectors, with a first line and without") {
  const test::TempDir folder;
  for (const char* heading : {"", "4 2\n"}) {
    const WordVectors found =
        read(folder, std::string(heading) + "a 1 -2.5\nb 3e-1 4 \nno 5 6\na 7 8\n");
    CHECK(found.width == 2);
    CHECK(found.of.size() == 2);
    CHECK(found.of.at("a") == std::vector<float>{1, -2.5F});
    CHECK(found.of.at("b") == std::vector<float>{0.3F, 4});
  }
}

TEST_CASE("expansion: files that are none") {
  const test::TempDir folder;
  for (const auto& [content, part] :
       {std::pair{"", "v.txt: expected words and numbers, got none"},
        {"a 1 2\nb 1\n", "line 2: expected a word and 2 numbers, got 2 words"},
        {"2 3\na 1 2\n", "line 2: expected a word and 3 numbers, got 3 words"},
        {"a 1 2\n\n", "line 2: expected a word and 2 numbers, got 0 words"},
        {"a\n", "line 1: expected a word and 1 numbers, got 1 words"},
        {"a 1 2\nb 1 x2\n", "line 2: expected a finite number, got 'x2'"},
        {"a 1 nan\n", "line 1: expected a finite number, got 'nan'"},
        {"a 1 2\nb 1 \xFF\n", "line 2"},
        {"0 2\n", "line 1: expected 1 or more words"},
        {"1 99999\n", "got 1 of 99999"},
        {"3 1\na 1\nb 2\n", "expected 3 words, as its first line says, got 2"}}) {
    CAPTURE(content);
    test::check_refused([&] { read(folder, content); }, "", part, ErrorKind::kBadInput);
  }
}

text::Dictionary five_letters() {
  return {text::WordCounts{{"a", 9}, {"b", 8}, {"c", 7}, {"d", 6}, {"e", 5}}, {.multiple = 1}};
}

// A word of the binary form.
std::string binary(const std::string& word, const std::vector<float>& numbers) {
  return word + ' ' +
         std::string(reinterpret_cast<const char*>(numbers.data()), 4 * numbers.size());
}

WordVectors read_binary(const test::TempDir& folder, const std::string& content) {
  test::write_bytes(folder / "v.bin", content);
  return read_word_vectors(folder / "v.bin", [](std::string_view word) { return word != "no"; });
}

TEST_CASE("expansion: binary files of vectors, with line feeds and without") {
  const test::TempDir folder;
  for (const std::string end : {"", "\n"}) {
    CAPTURE(end.size());
    std::string content = "4 2\n";
    for (const auto& [word, numbers] : {std::pair{"a", std::vector<float>{1, -2.5F}},
                                        {"b\xFF", {0.3F, 4}},
                                        {"no", {5, 6}},
                                        {"a", {7, 8}}}) {
      content += binary(word, numbers) + end;
    }
    const WordVectors found = read_binary(folder, content);
    CHECK(found.width == 2);
    CHECK(found.of.size() == 2);
    CHECK(found.of.at("a") == std::vector<float>{1, -2.5F});
    CHECK(found.of.at("b\xFF") == std::vector<float>{0.3F, 4});
  }
  std::string content = "3000 2\n";  // further than what is read at once
  for (float i = 0; i < 3000; ++i) content += binary(fmt::format("{}-word-of-some", i), {i, -i});
  const WordVectors found = read_binary(folder, content);
  CHECK(found.of.size() == 3000);
  CHECK(found.of.at("2999-word-of-some") == std::vector<float>{2999, -2999});
}

TEST_CASE("expansion: binary files that are none") {
  const test::TempDir folder;
  const std::string word = binary("a", {1, 2});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [content, part] :
       {std::pair<std::string, const char*>{"a 1 2\n", "expected 'words width'"},
        {"1 2", "expected 'words width'"},
        {"1 0\n", "expected 'words width'"},
        {"1 65537\n", "got '65537'"},
        {"12345678901 2\n", "got '12345678901'"},
        {"1 2\n" + word.substr(0, word.size() - 1), "it ends early"},
        {"2 2\n" + word, "it ends early"},
        {"1 2\n" + word + word, "expected 1 words, as its first line says, got 10 more bytes"},
        {"1 2\n" + binary("", {1, 2}), "word 1: expected 1 to 65536 bytes and a space"},
        {"1 2\n" + std::string(70000, 'a'), "word 1: expected 1 to 65536 bytes and a space"},
        {"1 2\n" + binary("a", {1, nan}), "word 1, 'a': expected finite numbers"}}) {
    CAPTURE(content.substr(0, 20));
    test::check_refused([&] { read_binary(folder, content); }, "[vectors]", part,
                        ErrorKind::kBadInput);
  }
}

TEST_CASE("expansion: a map that is linear is found, and takes other words along") {
  const test::TempDir folder;
  test::write_bytes(folder / "v.txt", "d 1 1\nx 2 5\na 0 0\nb 1 0\nq 8 8\nc 0 1\n");
  Expansion expansion(folder / "v.txt", five_letters(), Wanted{"x", "missing"});
  REQUIRE(expansion.shared() == std::vector<std::int32_t>{4, 5, 6, 7});
  CHECK(!expansion.is_fitted());
  const auto mapped = [](float x, float y) {
    return std::array<float, 3>{2 * x - y + 1, 3 * y, -x - y - 4};
  };
  std::vector<float> own;
  for (const auto& [x, y] : {std::pair{0.F, 0.F}, {1, 0}, {0, 1}, {1, 1}}) {
    for (const float value : mapped(x, y)) own.push_back(value);
  }
  expansion.fit(own);
  REQUIRE(expansion.find("x").size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(expansion.find("x")[i] == doctest::Approx(mapped(2, 5)[i]).epsilon(1e-6));
  }
  CHECK(expansion.find("missing").empty());
  CHECK(expansion.find("q").empty());  // nobody wanted it
}

TEST_CASE("expansion: of words that no map fits, the closest one") {
  const test::TempDir folder;
  test::write_bytes(folder / "v.txt", "a 0\nb 1\nc 2\nx 3\n");
  Expansion expansion(folder / "v.txt", five_letters(), Wanted{"x"});
  expansion.fit(std::vector<float>{0, 0, 3});  // the line 1.5 x - 0.5
  CHECK(expansion.find("x")[0] == doctest::Approx(4));
}

TEST_CASE("expansion: too few shared words are refused") {
  const test::TempDir folder;
  test::write_bytes(folder / "v.txt", "a 1 2\nb 1 3\nx 1 4\n");
  test::check_refused([&] { Expansion(folder / "v.txt", five_letters(), Wanted{"x"}); },
                      "[vectors]", "expected more than 2 of the words that training had, got 2",
                      ErrorKind::kBadInput);
}

// The file has the same vector for a known word and a new one, so that both are at the same place.
TEST_CASE("expansion: a sentence of new words has the vector of the known ones they are like") {
  const test::TempDir folder;
  const train::Job plain = small_job({}, "skip_thoughts");
  const auto dictionary =
      text::Dictionary::parse(plain.network().assets().at("dictionary"), "dictionary");
  const std::string &a = dictionary.symbol(4), &b = dictionary.symbol(5);
  test::write_bytes(folder / "v.txt", a + " 0\n" + b + " 1\nnew 0\n");
  const train::Job with =
      small_job({"model.vectors=" + (folder / "v.txt").string()}, "skip_thoughts");
  const std::vector<std::string> lines{a + " " + b, "New " + b, a + " unheard", ""};
  const std::vector<std::string> own = vectors_of(plain, lines), found = vectors_of(with, lines);
  CHECK(own[0] != own[1]);
  CHECK(found[1] == found[0]);
  for (const std::size_t i : {0, 2, 3}) CHECK(found[i] == own[i]);
}

}  // namespace
}  // namespace keel::models
