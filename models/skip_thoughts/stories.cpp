#include "models/skip_thoughts/stories.h"

#include <fmt/format.h>

#include <string_view>

#include "frontend/data/draw.h"
#include "src/core/rng.h"

namespace keel::models {
namespace {

constexpr std::uint64_t kKey = 20150622;  // of all numbers drawn here
constexpr int kTopicWords = 30, kCommonWords = 400;
constexpr int kShortest = 5, kLongest = 9, kSentences = 40;

std::string make_sentence(std::int32_t topic, const data::Zipf& common, data::Draw& draw) {
  std::string sentence;
  const int words = kShortest + draw.below(kLongest - kShortest + 1);
  for (int i = 0; i < words; ++i) {
    if (i > 0) sentence += ' ';
    sentence += draw.chance(0.6) ? fmt::format("topic{}_{}", topic, draw.below(kTopicWords))
                                 : fmt::format("word{}", common.rank(draw));
  }
  return sentence;
}

Passage make_story(const data::Zipf& common, data::Draw draw) {
  Passage story;
  std::int32_t topic = draw.below(kTopics);
  for (int i = 0; i < kSentences; ++i) {
    if (i > 0 && !draw.chance(0.8)) topic = (topic + 1) % kTopics;
    story.sentences.push_back(make_sentence(topic, common, draw));
    story.topics.push_back(topic);
  }
  return story;
}

std::vector<Passage> make_part(std::string_view part, std::uint32_t count) {
  const std::uint32_t stream = stream_of(fmt::format("stories.{}", part));
  const data::Zipf common(kCommonWords);
  std::vector<Passage> stories;
  for (std::uint32_t i = 0; i < count; ++i) {
    stories.push_back(make_story(common, data::Draw(kKey, stream, i)));
  }
  return stories;
}

}  // namespace

std::int64_t count_sentences(const std::vector<Passage>& passages) {
  std::int64_t count = 0;
  for (const Passage& passage : passages) count += std::ssize(passage.sentences);
  return count;
}

OrderedText make_stories() {
  OrderedText text;
  text.name = "stories";
  text.origin = "built-in stories";
  text.train = make_part("train", 200);
  text.valid = make_part("valid", 20);
  text.test = [] { return make_part("test", 50); };
  return text;
}

}  // namespace keel::models
