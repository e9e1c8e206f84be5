#include "models/text_classifier/builtin.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "frontend/data/draw.h"
#include "frontend/task/classification.h"
#include "src/core/error.h"
#include "src/core/rng.h"

namespace keel::models {
namespace {

constexpr std::uint64_t kKey = 20050619;  // of all numbers drawn here
constexpr int kWords = 600;
constexpr int kShortest = 5, kLongest = 25;
constexpr double kWrong = 0.03;

// The role of a word of rank 1 to 600. Good and bad words alternate in pairs, in turn the one or
// the other first, so that both are about equally frequent.
enum class Role { kNone, kGood, kBad, kNegator };

Role role_of(int rank) {
  if (rank % 60 == 8) return Role::kNegator;
  const bool first = rank % 20 == 5, second = rank % 20 == 6, turned = rank / 20 % 2 == 1;
  if (first || second) return first == turned ? Role::kBad : Role::kGood;
  return Role::kNone;
}

std::string word_of(int rank) {
  constexpr std::array<std::string_view, 4> kNames = {"word", "good", "bad", "not"};
  return fmt::format("{}{}", kNames[static_cast<std::size_t>(role_of(rank))], rank);
}

// The ranks of a sentence's words, and the sum of their signs.
struct Drawn {
  std::vector<int> ranks;
  int sum = 0;
};

Drawn draw_words(const data::Zipf& zipf, data::Draw& draw) {
  Drawn drawn;
  const int length = kShortest + draw.below(kLongest - kShortest + 1);
  int sign = 1;
  for (int i = 0; i < length; ++i) {
    drawn.ranks.push_back(zipf.rank(draw));
    const Role role = role_of(drawn.ranks.back());
    if (role == Role::kNegator) sign = -sign;
    if (role == Role::kGood || role == Role::kBad) {
      drawn.sum += role == Role::kGood ? sign : -sign;
      sign = 1;
    }
  }
  return drawn;
}

text::LabelledSentence make_sentence(std::int32_t classes, const data::Zipf& zipf,
                                     data::Draw draw) {
  Drawn drawn = draw_words(zipf, draw);
  while (classes == 2 && drawn.sum == 0) drawn = draw_words(zipf, draw);
  text::LabelledSentence sentence;
  sentence.label = classes == 2 ? drawn.sum > 0 : std::clamp(drawn.sum, -2, 2) + 2;
  if (draw.uniform() < kWrong) {
    sentence.label = (sentence.label + 1 + draw.below(classes - 1)) % classes;
  }
  for (int rank : drawn.ranks) sentence.words.push_back(word_of(rank));
  return sentence;
}

Sentences make_part(std::int32_t classes, std::string_view part, std::uint32_t count) {
  const std::uint32_t stream = stream_of(fmt::format("polar.{}.{}", classes, part));
  const data::Zipf zipf(kWords);
  Sentences sentences;
  for (std::uint32_t i = 0; i < count; ++i) {
    sentences.push_back(make_sentence(classes, zipf, data::Draw(kKey, stream, i)));
  }
  return sentences;
}

}  // namespace

Corpus make_polar(std::int32_t classes) {
  check(classes == 2 || classes == 5, ErrorKind::kUsage,
        "[text_classifier] built-in sentences: expected 2 or 5 classes, got {}", classes);
  Corpus corpus;
  corpus.name = "polar";
  corpus.origin = fmt::format("built-in sentences of {} classes", classes);
  corpus.labels = task::numbered_classes(classes);
  corpus.train = make_part(classes, "train", 4000);
  corpus.valid = make_part(classes, "valid", 500);
  corpus.test = [classes] { return make_part(classes, "test", 500); };
  return corpus;
}

}  // namespace keel::models
