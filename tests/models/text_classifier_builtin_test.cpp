// The synthetic sentences: always the same ones, labels that follow from the words, and not
// trivial.
#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "models/text_classifier/builtin.h"
#include "tests/support/input_checks.h"

namespace keel::models {
namespace {

using test::refuses;

// The sum of the signs, worked out only from the words.
int sum_of(const text::LabelledSentence& sentence) {
  int sum = 0, sign = 1;
  for (const std::string& word : sentence.words) {
    if (word.starts_with("not")) sign = -sign;
    const int value = word.starts_with("good") ? 1 : word.starts_with("bad") ? -1 : 0;
    sum += sign * value;
    if (value != 0) sign = 1;
  }
  return sum;
}

std::int32_t label_of(int sum, std::int32_t classes) {
  return classes == 2 ? sum > 0 : std::clamp(sum, -2, 2) + 2;
}

std::string text_of(const Sentences& sentences) {
  std::string text;
  for (const text::LabelledSentence& s : sentences) {
    text += fmt::format("{} {}\n", s.label, fmt::join(s.words, " "));
  }
  return text;
}

TEST_CASE("polar: the sentences never change between versions") {
  const Corpus two = make_polar(2), five = make_polar(5);
  CHECK(test::fnv(text_of(two.train)) == 5600561778764296835u);
  CHECK(test::fnv(text_of(two.test())) == 6994824379833629500u);
  CHECK(test::fnv(text_of(five.train)) == 2513946307390159133u);
  CHECK(fmt::format("{}", fmt::join(two.train[2].words, " ")) ==
        "word73 not8 word47 word287 word2 word9 word110 word155 word10 word2 word44 word1 bad6 "
        "word42");
  CHECK(two.train[2].label == 1);
}

TEST_CASE("polar: sizes, lengths and words") {
  for (std::int32_t classes : {2, 5}) {
    const Corpus corpus = make_polar(classes);
    CHECK(std::ssize(corpus.labels) == classes);
    CHECK(corpus.train.size() == 4000);
    CHECK(corpus.valid.size() == 500);
    CHECK(corpus.test().size() == 500);
    CHECK(corpus.skipped.empty());
    std::set<std::size_t> lengths;
    std::set<std::string> words;
    for (const text::LabelledSentence& sentence : corpus.train) {
      lengths.insert(sentence.words.size());
      words.insert(sentence.words.begin(), sentence.words.end());
    }
    CHECK(*lengths.begin() == 5);
    CHECK(lengths.size() == 21);
    CHECK(*lengths.rbegin() == 25);
    const auto count = [&](std::string_view kind) {
      return std::ranges::count_if(words,
                                   [&](const std::string& w) { return w.starts_with(kind); });
    };
    CHECK(words.size() == 600);
    CHECK(count("good") == 30);
    CHECK(count("bad") == 30);
    CHECK(count("not") == 10);
    CHECK(words.contains("word1"));
    CHECK(words.contains("word600"));
  }
}

TEST_CASE("polar: labels follow from the words, but for three in a hundred") {
  for (std::int32_t classes : {2, 5}) {
    const Corpus corpus = make_polar(classes);
    for (const Sentences& part : {corpus.train, corpus.valid, corpus.test()}) {
      double wrong = 0;
      for (const text::LabelledSentence& sentence : part) {
        CHECK(sentence.label >= 0);
        CHECK(sentence.label < classes);
        if (classes == 2) CHECK(sum_of(sentence) != 0);
        wrong += sentence.label != label_of(sum_of(sentence), classes);
      }
      // Five standard deviations of a binomial.
      const double n = static_cast<double>(part.size());
      CHECK(std::abs(wrong / n - 0.03) < 5 * std::sqrt(0.03 * 0.97 / n));
    }
  }
}

TEST_CASE("polar: no class rules, words go by Zipf, and splits share no sentence") {
  const Corpus two = make_polar(2), five = make_polar(5);
  std::array<int, 2> of_two{};
  for (const text::LabelledSentence& s : two.train) ++of_two[static_cast<std::size_t>(s.label)];
  CHECK(std::ranges::min(of_two) > 1800);
  std::array<int, 5> of_five{};
  for (const text::LabelledSentence& s : five.train) ++of_five[static_cast<std::size_t>(s.label)];
  CHECK(std::ranges::min(of_five) > 200);
  double words = 0, first = 0, tenth = 0;
  for (const text::LabelledSentence& s : five.train) {
    words += static_cast<double>(s.words.size());
    first += static_cast<double>(std::ranges::count(s.words, "word1"));
    tenth += static_cast<double>(std::ranges::count(s.words, "word10"));
  }
  CHECK(first / words == doctest::Approx(1 / 6.9747).epsilon(0.05));  // the 600th harmonic number
  CHECK(first / tenth == doctest::Approx(10).epsilon(0.1));
  std::set<std::vector<std::string>> train;
  for (const text::LabelledSentence& s : two.train) train.insert(s.words);
  for (const text::LabelledSentence& s : two.test()) CHECK(!train.contains(s.words));
}

// Counting good and bad words and forgetting the negators is not enough.
TEST_CASE("polar: order matters") {
  double right = 0;
  const Sentences sentences = make_polar(2).train;
  for (const text::LabelledSentence& sentence : sentences) {
    text::LabelledSentence bag = sentence;
    std::erase_if(bag.words, [](const std::string& w) { return w.starts_with("not"); });
    right += label_of(sum_of(bag), 2) == sentence.label;
  }
  CHECK(right / 4000 > 0.75);
  CHECK(right / 4000 < 0.92);
}

TEST_CASE("polar: refusals") {
  CHECK(refuses(ErrorKind::kUsage, "expected 2 or 5 classes, got 3", [] { make_polar(3); }));
}

}  // namespace
}  // namespace keel::models
