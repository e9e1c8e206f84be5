#include "models/char_lm/builtin.h"

#include <array>

#include "frontend/data/draw.h"

namespace keel::models {
namespace {

constexpr int kDocument = 1024, kPeriod = 64, kTitle = 8, kLetters = 32, kMark = 32;
constexpr std::string_view kBytes = "abcdefghijklmnopqrstuvwxyz012345#";
static_assert(kBytes.size() == kLetters + 1);

constexpr std::uint32_t kTextStream = stream_of("markov2+title");
constexpr std::uint32_t kTrainDocuments = 1758, kOtherDocuments = 98;

int candidate(double uniform) {
  return uniform < 0.55 ? 0 : uniform < 0.80 ? 1 : uniform < 0.95 ? 2 : 3;
}

void append_document(std::string& text, data::Draw draw) {
  std::array<int, kTitle> title{};
  for (int& symbol : title) symbol = draw.below(kLetters);
  int a = 0, b = 0;
  for (int p = 0; p < kDocument; ++p) {
    const int at = p % kPeriod;
    int symbol = kMark;
    if (at >= 1 && at <= kTitle) {
      symbol = title[std::size_t(at - 1)];
    } else if (at > kTitle) {
      const int c = candidate(draw.uniform());
      symbol = (31 * a + 17 * b + 7 * c + 5 * (a * b % 13)) % kLetters;
    }
    a = b, b = symbol;
    text += kBytes[std::size_t(symbol)];
  }
}

}  // namespace

std::string make_titled_text(task::Split split, std::uint64_t seed) {
  const auto part = std::uint32_t(split);
  const std::uint32_t first = part == 0 ? 0 : kTrainDocuments + (part - 1) * kOtherDocuments;
  const std::uint32_t count = part == 0 ? kTrainDocuments : kOtherDocuments;
  std::string text;
  for (std::uint32_t document = first; document < first + count; ++document) {
    append_document(text, data::Draw(seed, kTextStream, document));
  }
  return text;
}

}  // namespace keel::models
