// The bytes of a character model: alphabets, the built-in text, files and their parts.
#include "models/char_lm/builtin.h"
#include "models/char_lm/data.h"
#include "tests/support/input_checks.h"

namespace keel::models {
namespace {

using test::refuses;
using Symbols = std::vector<std::int32_t>;

ByteAlphabet alphabet_of(std::string_view text, Reading reading = Reading::kBytes) {
  return ByteAlphabet::of(text, reading, "here");
}

TEST_CASE("byte alphabet: numbers by descending count, among equal counts the first seen") {
  const ByteAlphabet alphabet = alphabet_of("bcaabcxb\n");
  CHECK(alphabet.size() == 5);
  CHECK(alphabet.text() == "bytes 626361780a");
  CHECK(alphabet.numbers("abc\n", "there") == Symbols{2, 0, 1, 4});
  CHECK(alphabet.byte(3) == "x");
  CHECK(alphabet_of("\xff\x80\xff").text() == "bytes ff80");
}

TEST_CASE("byte alphabet: the release's reading drops line feeds") {
  const ByteAlphabet alphabet = alphabet_of("b\na\n\nb", Reading::kTxl);
  CHECK(alphabet.text() == "txl 6261");
  CHECK(alphabet.numbers("\na\nb\n", "there") == Symbols{1, 0});
}

TEST_CASE("byte alphabet: is read from its text as it was, and others are refused") {
  for (const Reading reading : {Reading::kBytes, Reading::kTxl}) {
    const ByteAlphabet alphabet = alphabet_of("x\ny\x80x", reading);
    const ByteAlphabet read = ByteAlphabet::parse(alphabet.text());
    CHECK(read.text() == alphabet.text());
    CHECK(read.numbers("xy", "") == alphabet.numbers("xy", ""));
  }
  for (const char* text : {"", "bytes", "bytes ", "bytes 6", "bytes 616", "bytes 6161", "bytes 6G",
                           "bytes 6A", "words 61", "txl61"}) {
    CAPTURE(text);
    CHECK(refuses(ErrorKind::kBadInput, "alphabet: expected 'bytes' or 'txl'",
                  [&] { ByteAlphabet::parse(text); }));
  }
}

TEST_CASE("byte alphabet: an unknown byte is refused with its offset, and an empty text") {
  CHECK(refuses(ErrorKind::kBadInput,
                "there: expected one of the 2 bytes of the model's alphabet, got 7a at byte 3",
                [] { alphabet_of("ab").numbers("abz", "there"); }));
  CHECK(refuses(ErrorKind::kBadInput, "here: expected a text, got no byte",
                [] { alphabet_of("\n\n", Reading::kTxl); }));
}

int symbol_of(char byte) { return byte == '#' ? 32 : byte >= 'a' ? byte - 'a' : byte - '0' + 26; }

TEST_CASE("titled text: titles come again, and other symbols are candidates of the two before") {
  const std::string text = make_titled_text(task::Split::kValid, 1);
  REQUIRE(text.size() == 98 * 1024);
  std::array<int, 4> chosen{};
  int choices = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t p = at % 1024 % 64;
    CHECK((text[at] == '#') == (p == 0));
    if (at % 1024 >= 64 && p < 9) CHECK(text[at] == text[at - 64]);
    if (p < 9) continue;
    const int a = symbol_of(text[at - 2]), b = symbol_of(text[at - 1]);
    const auto candidate = [&](int c) { return (31 * a + 17 * b + 7 * c + 5 * (a * b % 13)) % 32; };
    int c = 0;
    while (c < 4 && candidate(c) != symbol_of(text[at])) ++c;
    REQUIRE(c < 4);
    ++chosen[std::size_t(c)];
    ++choices;
  }
  // Five standard deviations.
  const double p[] = {0.55, 0.25, 0.15, 0.05};
  for (std::size_t c = 0; c < 4; ++c) {
    CAPTURE(c);
    CHECK(std::abs(chosen[c] - p[c] * choices) < 5 * std::sqrt(p[c] * (1 - p[c]) * choices));
  }
}

TEST_CASE("titled text: is a pure function of seed and part, and parts differ") {
  const std::string valid = make_titled_text(task::Split::kValid, 1);
  CHECK(valid == make_titled_text(task::Split::kValid, 1));
  CHECK(valid != make_titled_text(task::Split::kValid, 2));
  CHECK(valid != make_titled_text(task::Split::kTest, 1));
  CHECK(make_titled_text(task::Split::kTrain, 1).size() == 1758 * 1024);
}

// A file of n bytes: a, b, ..., z, a, ...
std::string letters(std::size_t n) {
  std::string text;
  for (std::size_t i = 0; i < n; ++i) text += char('a' + i % 26);
  return text;
}

TEST_CASE("byte corpus: a file in three parts by bytes, as a whole, plain or packed") {
  const test::TempDir temp;
  const std::string text = letters(209);
  test::write_bytes(temp / "text", text);
  test::write_bytes(temp / "enwik8.gz", test::gzip(text));
  for (const std::string& source : {(temp / "text").string(), temp.path().string()}) {
    CAPTURE(source);
    const ByteCorpus corpus({.source = source}, "enwik8", TextParts::kByPlace);
    CHECK(corpus.bytes(task::Split::kTrain) == text.substr(0, 188));
    CHECK(corpus.bytes(task::Split::kValid) == text.substr(188, 10));
    CHECK(corpus.bytes(task::Split::kTest) == text.substr(198));
    const ByteCorpus whole({.source = source}, "enwik8", TextParts::kWhole);
    for (const task::Split split : {task::Split::kTrain, task::Split::kTest}) {
      CHECK(whole.bytes(split) == text);
    }
  }
  const ByteCorpus corpus({.source = temp / "text"}, "", TextParts::kByPlace);
  CHECK(corpus.place(task::Split::kValid) == "valid of " + (temp / "text").string());
}

TEST_CASE(
    "byte corpus: the three parts are the file, whatever its length, and training alone is cut") {
  const test::TempDir temp;
  for (const std::size_t n : {1, 10, 19, 20, 21, 100, 333}) {
    CAPTURE(n);
    const std::string text = letters(n);
    test::write_bytes(temp / "text", text);
    for (const std::int64_t rows : {0, 5}) {
      const ByteCorpus corpus({.source = temp / "text", .train_rows = rows}, "",
                              TextParts::kByPlace);
      std::string joined;
      for (const auto split : {task::Split::kTrain, task::Split::kValid, task::Split::kTest}) {
        joined += corpus.whole_part(split);
        if (split != task::Split::kTrain) CHECK(corpus.bytes(split) == corpus.whole_part(split));
      }
      CHECK(joined == text);
    }
  }
}

TEST_CASE("byte corpus: what training leaves out is named") {
  const test::TempDir temp;
  test::write_bytes(temp / "text", "ab\ncd\n" + letters(14));
  const ByteCorpus corpus({.source = temp / "text", .train_rows = 10}, "", TextParts::kByPlace);
  const ByteAlphabet alphabet =
      ByteAlphabet::of(corpus.bytes(task::Split::kTrain), Reading::kTxl, "");
  const data::TokenText text = corpus.numbered(task::Split::kTrain, alphabet, 1);
  CHECK(text.source == "train of " + (temp / "text").string() + ", 4 symbols");
  CHECK(text.tokens.size() == 8);
  REQUIRE(text.skipped.size() == 2);
  CHECK(text.skipped[0].rows == 2);
  CHECK(text.skipped[0].why == "line feeds");
  CHECK(text.skipped[1].rows == 8);
  CHECK(text.skipped[1].why == "beyond the first 10");
  CHECK(text.skipped[1].unit == "bytes");
}

TEST_CASE("byte corpus: refusals") {
  const test::TempDir temp;
  test::write_bytes(temp / "text", letters(100));
  const ByteCorpus corpus({.source = temp / "text"}, "", TextParts::kByPlace);
  const ByteAlphabet alphabet = ByteAlphabet::of(letters(26), Reading::kBytes, "");
  CHECK(refuses(ErrorKind::kBadInput, "text: expected at least 9 symbols, got 5",
                [&] { corpus.numbered(task::Split::kValid, alphabet, 9); }));
  CHECK(refuses(ErrorKind::kBadInput,
                "text: expected at least 99 symbols, a segment and one more, got 90",
                [&] { corpus.numbered(task::Split::kTrain, alphabet, 99); }));
  CHECK(refuses(ErrorKind::kBadInput, "valid of", [&] {
    corpus.numbered(task::Split::kValid, ByteAlphabet::of("abc", Reading::kBytes, ""), 1);
  }));
  CHECK(refuses(ErrorKind::kIo, "expected enwik8, enwik8.gz or enwik8.xz, got none of them",
                [&] { ByteCorpus({.source = temp.path()}, "enwik8", TextParts::kByPlace); }));
  test::write_bytes(temp / "none", "");
  CHECK(refuses(ErrorKind::kBadInput, "none",
                [&] { ByteCorpus({.source = temp / "none"}, "", TextParts::kByPlace); }));
}

}  // namespace
}  // namespace keel::models
