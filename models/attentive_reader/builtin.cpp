#include "models/attentive_reader/builtin.h"

#include <array>

#include "frontend/data/draw.h"
#include "src/core/rng.h"

namespace keel::models {
namespace {

constexpr std::uint64_t kWhoDidKey = 20150610;  // of all numbers drawn here
constexpr int kFacts = 6, kEntities = 20, kFillers = 164, kMostFillers = 4;
constexpr std::array<const char*, 12> kVerbs = {"met",    "called", "thanked", "hired",
                                                "warned", "blamed", "praised", "sued",
                                                "helped", "paid",   "taught",  "saved"};

struct Fact {
  int subject, verb, object;
};
using Facts = std::array<Fact, kFacts>;

// Which fact is asked for, and whether for its subject.
struct Asked {
  std::size_t fact;
  bool subject;
};

Fact draw_fact(data::Draw& draw) {
  Fact fact{draw.below(kEntities), draw.below(int(kVerbs.size())), 0};
  fact.object = (fact.subject + 1 + draw.below(kEntities - 1)) % kEntities;
  return fact;
}

// Whether another fact answers the question as well.
bool is_ambiguous(const Facts& facts, const Asked& asked) {
  const Fact& right = facts[asked.fact];
  int answers = 0;
  for (const Fact& fact : facts) {
    const bool fits = asked.subject ? fact.object == right.object : fact.subject == right.subject;
    answers += fits && fact.verb == right.verb;
  }
  return answers > 1;
}

std::string entity_token(int number) { return fmt::format("@entity{}", number); }

Question make_question(const data::Zipf& fillers, data::Draw draw) {
  Facts facts{};
  Asked asked{};
  do {
    for (Fact& fact : facts) fact = draw_fact(draw);
    asked = {std::size_t(draw.below(kFacts)), draw.chance(0.5)};
  } while (is_ambiguous(facts, asked));
  Question question;
  for (const Fact& fact : facts) {
    question.passage.add(entity_token(fact.subject));
    question.passage.add(kVerbs[std::size_t(fact.verb)]);
    question.passage.add(entity_token(fact.object));
    question.passage.add(".");
    const int count = draw.below(kMostFillers + 1);
    for (int i = 0; i < count; ++i) {
      question.passage.add(fmt::format("word{}", fillers.rank(draw)));
    }
  }
  const Fact& right = facts[asked.fact];
  const std::string hidden(kPlaceholder);
  question.question = {asked.subject ? hidden : entity_token(right.subject),
                       kVerbs[std::size_t(right.verb)],
                       asked.subject ? entity_token(right.object) : hidden, "."};
  question.answer = entity_token(asked.subject ? right.subject : right.object);
  return question;
}

}  // namespace

std::vector<Question> make_who_did_part(task::Split split) {
  constexpr std::array<const char*, 3> kNames = {"train", "valid", "test"};
  const std::uint32_t stream = stream_of(fmt::format("who_did.{}", kNames[std::size_t(split)]));
  const std::uint32_t count = split == task::Split::kTrain ? 10000 : 1000;
  const data::Zipf fillers(kFillers);
  std::vector<Question> questions;
  for (std::uint32_t i = 0; i < count; ++i) {
    questions.push_back(make_question(fillers, data::Draw(kWhoDidKey, stream, i)));
  }
  return questions;
}

QuestionCorpus make_who_did() {
  QuestionCorpus corpus;
  corpus.name = "who-did";
  corpus.origin = "built-in facts";
  corpus.train = make_who_did_part(task::Split::kTrain);
  corpus.valid = make_who_did_part(task::Split::kValid);
  corpus.test = [] { return make_who_did_part(task::Split::kTest); };
  return corpus;
}

}  // namespace keel::models
