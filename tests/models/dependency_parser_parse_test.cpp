// Greedy parsing: the same tree whatever is parsed beside it, and scores worked out by hand.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "models/dependency_parser/builtin.h"
#include "models/dependency_parser/greedy_parser.h"
#include "models/dependency_parser/inputs.h"
#include "src/core/rng.h"
#include "tests/models/dependency_parser_rows.h"
#include "tests/support/input_checks.h"

namespace keel::models {
namespace {

using test::refuses;
using Numbers = std::vector<std::int32_t>;
using Predictions = std::map<std::string, Tensor>;

// A network that says of each row what a hash of its features says.
Predictions hashed(const task::Batch& batch, std::int64_t classes) {
  const std::int64_t rows = batch.sizes[0];
  Tensor logits(DType::kF32, {rows, classes});
  const auto features = batch.values[kFeaturesInput].as<std::int32_t>();
  for (std::int64_t row = 0; row < rows; ++row) {
    std::uint64_t hash = 1;
    for (std::size_t f = 0; f < kFeatures; ++f) {
      hash = hash * 1099511628211u ^ std::uint64_t(features[std::size_t(row) * kFeatures + f]);
    }
    const Philox random(hash, 1);
    for (std::int64_t k = 0; k < classes; ++k) {
      logits.as<float>()[std::size_t(row * classes + k)] = float(random.uniform(std::uint64_t(k)));
    }
  }
  Predictions predictions;
  predictions.emplace("logits", std::move(logits));
  return predictions;
}

std::vector<std::string> parsed(const std::shared_ptr<const NumberedTreebank>& treebank,
                                std::int64_t batch) {
  GreedyParser parser(treebank, batch);
  while (const task::Batch* next = parser.next()) {
    CHECK(next->sizes[0] == std::min(batch, parser.size()));
    CHECK(std::ssize(next->rows) == next->sizes[0]);
    parser.take(hashed(*next, treebank->symbols->classes().size()));
  }
  return parser.answers();
}

std::string builtin_text(std::size_t sentences) {
  const Treebank treebank = make_cfg_dep(3, task::Split::kTest);
  std::string text;
  for (std::size_t i = 0; i < sentences; ++i) text += treebank.sentences[i].block;
  return text;
}

TEST_CASE("parser: sentences together have the trees that they have one by one") {
  const auto treebank = numbered_bank(builtin_text(60), builtin_text(60));
  const std::vector<std::string> alone = parsed(treebank, 1);
  REQUIRE(alone.size() == 60);
  for (const std::int64_t batch : {2, 7, 59, 60, 64, 500}) CHECK(parsed(treebank, batch) == alone);
  // Trees: one root each, and two sentences that are not alike.
  for (const std::string& answer : alone) {
    CHECK(read_conll(answer, "answer", {.is_conllu = true}).sentences.size() == 1);
  }
  CHECK(alone[0] != alone[1]);
}

TEST_CASE("parser: a sentence that comes first, last and twice has one tree") {
  const std::string text = builtin_text(20);
  const Treebank treebank = read_conll(text, "bank", {});
  const std::string again(treebank.sentences[4].block);
  for (const std::int64_t batch : {1, 3, 64}) {
    const auto answers = parsed(numbered_bank(again + text + again, text), batch);
    REQUIRE(answers.size() == 22);
    CHECK(answers[0] == answers[5]);
    CHECK(answers[21] == answers[5]);
    CHECK(answers[1] == parsed(numbered_bank(text, text), batch)[0]);
  }
}

TEST_CASE("parser: a configuration that allows one class takes it, whatever the network says") {
  const auto treebank =
      numbered_bank("a\tX\t0\n\nb\tX\t2\nc\tX\t0\n", "a\tX\t0\n\nb\tX\t2\nc\tX\t0\n");
  GreedyParser parser(treebank, 8);
  const std::int64_t classes = treebank->symbols->classes().size();
  int batches = 0;
  for (; const task::Batch* next = parser.next(); ++batches) {
    // SHIFT is the last class, and nowhere legal when the network is asked here.
    Tensor logits(DType::kF32, {next->sizes[0], classes});
    for (std::int64_t row = 0; row < next->sizes[0]; ++row) {
      logits.as<float>()[std::size_t((row + 1) * classes - 1)] = 100;
    }
    Predictions predictions;
    predictions.emplace("logits", std::move(logits));
    parser.take(predictions);
  }
  CHECK(batches == 2);  // "b c" has an arc between tokens, then one from ROOT
  CHECK(parser.answers() ==
        std::vector<std::string>{"a\tX\t0\n", "b\tX\t2\nc\tX\t0"});  // of equal classes the first
}

TEST_CASE("parser: logits that are not numbers are an error") {
  const auto treebank = numbered_bank("b\tX\t2\nc\tX\t0\n", "b\tX\t2\nc\tX\t0\n");
  GreedyParser parser(treebank, 8);
  REQUIRE(parser.next() != nullptr);
  Tensor logits(DType::kF32, {1, treebank->symbols->classes().size()});
  for (float& x : logits.as<float>()) x = std::numeric_limits<float>::quiet_NaN();
  Predictions predictions;
  predictions.emplace("logits", std::move(logits));
  CHECK(refuses(ErrorKind::kDiverged, "not a number", [&] { parser.take(predictions); }));
}

// A parser of the sentences `gold` whose network has said the transitions of other trees of them.
GreedyParser guided(const std::string& gold, const std::string& said) {
  const auto treebank = numbered_bank(gold, gold + "\n" + said);
  const auto guide = numbered_bank(said, gold + "\n" + said);
  const TransitionClasses& classes = treebank->symbols->classes();
  GreedyParser parser(treebank, 1);
  for (const auto& sentence : guide->sentences) {
    Configuration configuration;
    configuration.start(sentence.size());
    for (const Transition& transition : derivation(sentence.heads, sentence.labels)) {
      if (configuration.legal() != Legal::kShift) {
        REQUIRE(parser.next() != nullptr);
        Tensor logits(DType::kF32, {1, classes.size()});
        logits.as<float>()[std::size_t(classes.number(transition))] = 1;
        Predictions predictions;
        predictions.emplace("logits", std::move(logits));
        parser.take(predictions);
      }
      configuration.apply(transition);
    }
  }
  CHECK(parser.next() == nullptr);
  return parser;
}

std::map<std::string, task::Ratio> scores(const std::string& gold, const std::string& said) {
  return guided(gold, said).ratios();
}

TEST_CASE("parser: an answer has every token's own head and label") {
  const std::string gold =
      conll_row(1, "He", "PRP", 2, "nsubj") + conll_row(2, "has", "VBZ", 0, "root") +
      conll_row(3, "good", "JJ", 4, "amod") + conll_row(4, "control", "NN", 2, "obj");
  const std::string said =
      conll_row(1, "He", "PRP", 2, "amod") + conll_row(2, "has", "VBZ", 0, "root") +
      conll_row(3, "good", "JJ", 2, "obj") + conll_row(4, "control", "NN", 3, "nsubj");
  // The end of the last line is the writer's.
  CHECK(guided(gold, said).answers().at(0) + "\n" == said);
  CHECK(guided(gold, gold).answers().at(0) + "\n" == gold);
}

TEST_CASE("scores: attachments worked out by hand, with punctuation and without") {
  const std::string gold =
      conll_row(1, "He", "PRP", 2, "nsubj") + conll_row(2, "has", "VBZ", 0, "root") +
      conll_row(3, "good", "JJ", 4, "amod") + conll_row(4, "control", "NN", 2, "obj") +
      conll_row(5, ".", ".", 2, "punct");
  const std::string said =
      conll_row(1, "He", "PRP", 2, "nsubj") + conll_row(2, "has", "VBZ", 0, "root") +
      conll_row(3, "good", "JJ", 2, "amod") + conll_row(4, "control", "NN", 2, "nsubj") +
      conll_row(5, ".", ".", 4, "punct");
  // He and has are right, good has a wrong head, control a wrong label, the full stop a wrong head.
  const auto found = scores(gold, said);
  const auto is = [&](const char* name, double sum, double count) {
    CAPTURE(std::string(name));
    CHECK(found.at(name).sum == sum);
    CHECK(found.at(name).count == count);
  };
  is("uas", 3, 4);
  is("las", 2, 4);
  is("uas_punct", 3, 5);
  is("las_punct", 2, 5);
  const auto all = scores(gold, gold);
  CHECK(all.at("uas").sum == 4);
  CHECK(all.at("las_punct").sum == 5);
}

TEST_CASE("scores: punctuation goes by UPOS, or else by the tag, and these five are all") {
  for (const char* tag : {"``", "''", ",", ".", ":", "PUNCT"}) {
    for (const char* coarse : {"", "_", ".", "NN", "punct"}) CHECK(is_punctuation(coarse, tag));
    for (const char* upos : {"SYM", "NOUN", "X", "CCONJ"}) CHECK_FALSE(is_punctuation(upos, tag));
  }
  for (const char* tag : {"-LRB-", "HYPH", "NFP", "$", "#", "", "`", "NN", "punct"}) {
    for (const char* coarse : {"", "_", ".", "NN"}) CHECK_FALSE(is_punctuation(coarse, tag));
    CHECK(is_punctuation("PUNCT", tag));
  }
}

// A row with a UPOS and a tag.
std::string upos_row(int id, const char* upos, const char* tag, int head) {
  return fmt::format("{}\tw\t_\t{}\t{}\t_\t{}\t{}\t_\t_\n", id, upos, tag, head,
                     head == 0 ? "root" : "dep");
}

TEST_CASE("scores: which words are punctuation is said") {
  const auto said = [](const std::string& text) {
    const auto details = guided(text, text).details();
    REQUIRE(details.size() == 1);
    CHECK(details[0].first == "punctuation");
    return details[0].second;
  };
  // A bracket is PUNCT though its tag is none of the five, and a colon may be a SYM.
  const std::string ud = upos_row(1, "NOUN", "NN", 0) + upos_row(2, "PUNCT", "-LRB-", 1) +
                         upos_row(3, "SYM", ":", 1) + upos_row(4, "PUNCT", ".", 1);
  CHECK(said(ud) == "uas and las leave out 2 of 4 words, by UPOS PUNCT");
  CHECK(scores(ud, ud).at("uas").count == 2);
  const std::string ptb = conll_row(1, "a", "NN", 0, "root") +
                          conll_row(2, "(", "-LRB-", 1, "dep") + conll_row(3, ".", ".", 1, "dep");
  CHECK(said(ptb) == "uas and las leave out 1 of 3 words, by the tags `` '' , . : and PUNCT");
  CHECK(scores(ptb, ptb).at("uas").count == 2);
  CHECK(said(ud + "\n" + ptb) ==
        "uas and las leave out 3 of 7 words, by UPOS PUNCT (2) or the tags `` '' , . : and PUNCT");
}

TEST_CASE("scores: a label that training has not got counts as a wrong one, its head does not") {
  const std::string training = conll_row(1, "a", "X", 2, "dep") + conll_row(2, "b", "X", 0, "root");
  const std::string gold = conll_row(1, "a", "X", 2, "odd") + conll_row(2, "b", "Y", 0, "root");
  const auto treebank = numbered_bank(gold, training);
  CHECK(treebank->sentences[0].labels == Numbers{0, 0, 2, 0});
  GreedyParser parser(treebank, 1);
  while (const task::Batch* next = parser.next()) {
    Tensor logits(DType::kF32, {next->sizes[0], treebank->symbols->classes().size()});
    Predictions predictions;
    predictions.emplace("logits", std::move(logits));  // LEFT(dep) comes first
    parser.take(predictions);
  }
  CHECK(parser.ratios().at("uas").sum == 2);
  CHECK(parser.ratios().at("las").sum == 1);
}

}  // namespace
}  // namespace keel::models
