#include "models/attentive_reader/numbers.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>
#include <utility>

#include "src/core/error.h"

namespace keel::models {
namespace {

constexpr std::int32_t kMostEntities = 10000;

// N of "@entityN", or the most there may be.
std::int32_t entity_number(std::string_view token) {
  const std::size_t digits = token.find_first_of("0123456789");
  std::int32_t number = 0;
  const auto [end, error] =
      std::from_chars(token.data() + digits, token.data() + token.size(), number);
  return error == std::errc() ? std::min(number, kMostEntities - 1) : kMostEntities - 1;
}

const std::string& find_reader_text(const std::map<std::string, std::string>& texts,
                                    std::string_view name) {
  const auto found = texts.find(std::string(name));
  check(found != texts.end(), ErrorKind::kBadInput, "expected {}, got none", name);
  return found->second;
}

}  // namespace

ReaderNumbers::ReaderNumbers(const std::vector<Question>& questions, std::int64_t max_words)
    : vocabulary_({}, {}), entities_(0) {
  text::WordCounts counts;
  const auto count = [&](std::string_view token, std::set<std::string, std::less<>>& own) {
    if (is_entity(token)) {
      own.emplace(token);
      entities_ = std::max(entities_, entity_number(token) + 1);
    } else {
      ++counts[std::string(token)];
    }
  };
  for (const Question& question : questions) {
    std::set<std::string, std::less<>> own;
    for (const std::string_view token : question.passage.views()) count(token, own);
    for (const std::string& token : question.question) count(token, own);
    count(question.answer, own);
    entities_ = std::max(entities_, std::int32_t(own.size()));
  }
  vocabulary_ = text::Vocabulary(counts, {.max_words = max_words});
}

ReaderNumbers ReaderNumbers::parse(const std::map<std::string, std::string>& texts) {
  const std::string& count = find_reader_text(texts, kEntitiesAsset);
  std::int32_t entities = -1;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), entities);
  check(error == std::errc() && end == count.data() + count.size() && entities >= 0 &&
            entities <= kMostEntities,
        ErrorKind::kBadInput, "entities: expected a number of 0 to {}, got '{}'", kMostEntities,
        count);
  const std::string where(kWordsAsset);
  return {text::Vocabulary::parse(find_reader_text(texts, kWordsAsset), where), entities};
}

std::map<std::string, std::string> ReaderNumbers::texts() const {
  return {{std::string(kWordsAsset), vocabulary_.text()},
          {std::string(kEntitiesAsset), fmt::format("{}", entities_)}};
}

NumberedQuestion numbered_question(const Question& question, const ReaderNumbers& numbers) {
  NumberedQuestion result;
  std::map<std::string, std::int32_t> places;
  const auto number_of = [&](std::string_view token) {
    if (!is_entity(token)) return numbers.vocabulary().id(token);
    const auto next = std::int32_t(places.size());
    const auto [place, is_new] = places.try_emplace(std::string(token), next);
    if (is_new) result.entities.emplace_back(token);
    return -1 - place->second;
  };
  result.passage.reserve(question.passage.size());
  for (const std::string_view token : question.passage.views()) {
    result.passage.push_back(number_of(token));
  }
  for (const std::string& token : question.question) result.question.push_back(number_of(token));
  result.answer = question.answer.empty() ? text::Vocabulary::kPad : number_of(question.answer);
  if (result.answer == text::Vocabulary::kUnk) result.answer = text::Vocabulary::kPad;
  return result;
}

std::vector<std::int32_t> drawn_entities(std::int64_t count, const ReaderNumbers& numbers,
                                         const Philox& random, std::int64_t row) {
  const std::int32_t all = numbers.entities();
  std::vector<std::int32_t> drawn(std::size_t(std::max(all, 1)));
  std::iota(drawn.begin(), drawn.end(), numbers.words());
  const auto first = std::uint64_t(row) << 20;
  for (std::int32_t i = 0; i < std::min<std::int64_t>(count, all); ++i) {
    const std::uint32_t other = random.below(first + std::uint64_t(i), std::uint32_t(all - i));
    std::swap(drawn[std::size_t(i)], drawn[std::size_t(i) + other]);
  }
  std::vector<std::int32_t> result;
  for (std::int64_t i = 0; i < count; ++i) {
    result.push_back(all == 0 ? text::Vocabulary::kUnk : drawn[std::size_t(i % all)]);
  }
  return result;
}

}  // namespace keel::models
