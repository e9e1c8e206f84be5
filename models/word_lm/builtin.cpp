#include "models/word_lm/builtin.h"

#include <fmt/format.h>

#include <vector>

#include "frontend/data/draw.h"
#include "src/core/rng.h"

namespace keel::models {
namespace {

constexpr std::uint64_t kKey = 20200714;  // of all numbers drawn here
constexpr int kWords = 2000, kTopics = 20, kLines = 40;
constexpr int kShortest = 8, kLongest = 24;
constexpr double kOfTopic = 0.5, kSuccessor = 0.3;

// Draws the words of lines, by their ranks from 0 on.
class LineMaker {
 public:
  LineMaker() {
    for (int topic = 0; topic < kTopics; ++topic) own_.emplace_back(kWords, topic + 1, kTopics);
  }
  std::string line(int topic, data::Draw& draw) const {
    std::string line;
    const int words = kShortest + draw.below(kLongest - kShortest + 1);
    int word = -1;
    for (int i = 0; i < words; ++i) {
      word = next(topic, word, draw);
      if (i > 0) line += ' ';
      line += fmt::format("w{}", word);
    }
    return line;
  }

 private:
  int next(int topic, int before, data::Draw& draw) const {
    const double u = draw.uniform();
    if (u < kOfTopic) return own_[std::size_t(topic)].rank(draw) - 1;
    if (u < kOfTopic + kSuccessor && before >= 0) return (13 * before + 7) % kWords;
    return all_.rank(draw) - 1;
  }

  std::vector<data::Zipf> own_;  // by topic
  data::Zipf all_{kWords};
};

LineSource part(std::string_view name, std::uint32_t documents) {
  return {fmt::format("topic-bigram {}", name),
          [name = std::string(name), documents](const TakeLine& take) {
            const std::uint32_t stream = stream_of("topic-bigram." + name);
            const LineMaker maker;
            std::int64_t number = 0;
            for (std::uint32_t i = 0; i < documents; ++i) {
              data::Draw draw(kKey, stream, i);
              const int topic = draw.below(kTopics);
              for (int l = 0; l < kLines; ++l) take({maker.line(topic, draw), ++number});
            }
          }};
}

}  // namespace

WordCorpus make_topic_bigram() {
  return {"topic-bigram", {part("train", 600), part("valid", 40), part("test", 40)}};
}

}  // namespace keel::models
