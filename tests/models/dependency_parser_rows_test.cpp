// Rows of transitions: batches worked out by hand, what is left out, what does not count.
#include "tests/models/dependency_parser_rows.h"

#include "frontend/task/decoder.h"
#include "models/dependency_parser/inputs.h"
#include "models/dependency_parser/transition_rows.h"
#include "tests/support/input_checks.h"

namespace keel::models {
namespace {

using test::refuses;

std::shared_ptr<const NumberedTreebank> tiny_bank(const std::string& text) {
  return numbered_bank(text, kTinyTreebank);
}

data::DataLoader transition_stream(const std::shared_ptr<const NumberedTreebank>& treebank,
                                   const task::StreamOptions& options) {
  return {std::make_shared<TransitionRows>(treebank), options};
}

const task::StreamOptions kInOrder{.batch = 4, .shuffle = {}};

TEST_CASE("transition rows: a batch worked out by hand") {
  const auto treebank =
      tiny_bank(conll_row(1, "the", "DT", 2, "det") + conll_row(2, "cat", "VB", 0, "root"));
  data::DataLoader stream = transition_stream(treebank, kInOrder);
  CHECK(stream.rows() == 4);
  const task::Batch& batch = stream.at(0, 0);
  CHECK(batch.items == 4);
  CHECK(batch.rows == std::vector<std::int64_t>{0, 1, 2, 3});
  // SHIFT is 6, LEFT(det) 0, RIGHT(root) 4.
  const auto labels = batch.values[kLabelInput].as<std::int32_t>();
  CHECK(std::vector(labels.begin(), labels.end()) == std::vector<std::int32_t>{6, 6, 0, 4});
  const auto legal = batch.values[kLegalInput].as<std::uint8_t>();
  CHECK(std::vector<int>(legal.begin(), legal.end()) == std::vector<int>{0, 0, 0, 0, 0, 0, 1,  //
                                                                         0, 0, 0, 0, 0, 0, 1,  //
                                                                         1, 0, 1, 1, 0, 1, 0,  //
                                                                         0, 0, 0, 0, 1, 0, 0});
  const auto features = batch.values[kFeaturesInput].as<std::int32_t>();
  const auto of = [&](std::size_t place, std::size_t feature) {
    return features[place * kFeatures + feature];
  };
  // In the third row s2 is "the", s1 the unknown "cat" with an unknown tag, s3 ROOT; no arcs.
  CHECK(of(2, 0) == 6);
  CHECK(of(2, 1) == 2);
  CHECK(of(2, 2) == 1);
  CHECK(of(2, 18) == 12);
  CHECK(of(2, 19) == 9);
  CHECK(of(2, 20) == 8);
  CHECK(of(2, 36) == 13);
  // In the last row s1 has "the" as leftmost child, by an arc with the label det.
  CHECK(of(3, 6) == 2);
  CHECK(of(3, 24) == 9);
  CHECK(of(3, 36) == 14);
}

TEST_CASE("transition rows: what cannot be derived is left out of training by name, not lost") {
  const std::string crossing = conll_row(1, "a", "X", 2, "det") +
                               conll_row(2, "b", "X", 0, "root") +
                               conll_row(3, "c", "X", 1, "det") + conll_row(4, "d", "X", 2, "det"),
                    roots = conll_row(1, "a", "X", 0, "root") + conll_row(2, "b", "X", 0, "root"),
                    cycle = conll_row(1, "a", "X", 2, "det") + conll_row(2, "b", "X", 1, "det"),
                    single = conll_row(1, "a", "X", 0, "root");
  const auto treebank =
      tiny_bank(crossing + "\n" + roots + "\n" + single + "\n" + cycle + "\n" + crossing);
  const data::DataLoader training = transition_stream(treebank, {.batch = 1, .shuffle = 1});
  CHECK(training.rows() == 2);
  const std::vector<task::Skipped> left = training.skipped();
  REQUIRE(left.size() == 3);
  CHECK(left[0].rows == 16);
  CHECK(left[0].why == "of 2 sentences that are not projective");
  CHECK(left[1].rows == 4);
  CHECK(left[1].why == "of 1 sentences with several roots");
  CHECK(left[2].rows == 4);
  CHECK(left[2].why == "of 1 sentences with a cycle");
  const data::DataLoader evaluation = transition_stream(treebank, kInOrder);
  CHECK(evaluation.rows() == 2);
  CHECK(evaluation.skipped().size() == 3);  // of the loss; the decoder parses them
  const auto decoder = evaluation.decoder();
  CHECK(decoder->size() == 5);
  while (const task::Batch* next = decoder->next()) {
    std::map<std::string, Tensor> predictions;
    predictions.emplace("logits", Tensor(DType::kF32, {next->sizes[0], 7}));
    decoder->take(predictions);
  }
  CHECK(decoder->ratios().at("uas").count == 13);
}

TEST_CASE("transition rows: a treebank without any derivation is measured, not trained on") {
  const auto treebank =
      tiny_bank(conll_row(1, "a", "X", 0, "root") + conll_row(2, "b", "X", 0, "root"));
  data::DataLoader evaluation = transition_stream(treebank, kInOrder);
  CHECK(evaluation.rows() == 0);
  REQUIRE(evaluation.steps(0) == 1);
  CHECK(evaluation.shapes() == std::vector<task::Sizes>{{1}});
  CHECK(evaluation.items(0, 0) == 0);
  CHECK(evaluation.at(0, 0).rows == std::vector<std::int64_t>{-1});
  CHECK(evaluation.at(0, 0).items == 0);
  CHECK(evaluation.decoder()->size() == 1);
  CHECK(refuses(ErrorKind::kBadInput, "bank: expected a projective sentence to train on, got none",
                [&] { transition_stream(treebank, {.batch = 1, .shuffle = 1}); }));
}

TEST_CASE("transition rows: labels that training has not got do not count, or are refused") {
  // "odd" has no number, and "det" is no label of an arc from the root.
  const auto treebank =
      tiny_bank(conll_row(1, "a", "X", 2, "odd") + conll_row(2, "b", "X", 0, "root") + "\n" +
                conll_row(1, "a", "X", 0, "det"));
  data::DataLoader evaluation = transition_stream(treebank, {.batch = 8, .shuffle = {}});
  const auto labels = evaluation.at(0, 0).values[kLabelInput].as<std::int32_t>();
  CHECK(std::vector(labels.begin(), labels.end()) ==
        std::vector<std::int32_t>{6, 6, kNoClass, 4, 6, kNoClass});
  CHECK(evaluation.items(0, 0) == 4);
  CHECK(evaluation.at(0, 0).items == 4);
  CHECK(refuses(ErrorKind::kBadInput, "bank: line 1: expected labels that the network knows",
                [&] { transition_stream(treebank, {.batch = 1, .shuffle = 1}); }));
}

}  // namespace
}  // namespace keel::models
