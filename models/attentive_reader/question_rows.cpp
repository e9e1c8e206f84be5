#include "models/attentive_reader/question_rows.h"

#include <algorithm>
#include <functional>
#include <set>

#include "frontend/data/row_batches.h"
#include "frontend/data/token_batches.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

constexpr std::uint32_t kEntityNumbers = stream_of("attentive_reader.entities");
constexpr std::int64_t kPassageMultiple = 16, kQuestionMultiple = 8;

enum QuestionInput : std::size_t { kPassage, kPassageMask, kAsked, kAskedMask, kAnswer };

// Puts the tokens of a sequence into a row of a batch, again and again, and 1 into the mask of
// those of the first time.
struct CyclicRow {
  std::span<std::int32_t> tokens;
  std::span<std::uint8_t> mask;

  CyclicRow(task::Batch& batch, QuestionInput value, std::int64_t place)
      : tokens(row_of(batch.values[value].as<std::int32_t>(), batch, place)),
        mask(row_of(batch.values[value + 1].as<std::uint8_t>(), batch, place)) {}

  template <class T>
  static std::span<T> row_of(std::span<T> all, const task::Batch& batch, std::int64_t place) {
    const std::size_t length = all.size() / std::size_t(batch.sizes[0]);
    return all.subspan(std::size_t(place) * length, length);
  }
  void put(const std::vector<std::int32_t>& sequence, const std::vector<std::int32_t>& entities) {
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const std::int32_t token = sequence[t % sequence.size()];
      tokens[t] = token >= 0 ? token : entities[std::size_t(-1 - token)];
      mask[t] = t < sequence.size();
    }
  }
};

}  // namespace

std::vector<task::Input> question_inputs(const task::Sizes& sizes) {
  const std::int64_t rows = sizes.at(0), passage = sizes.at(1), question = sizes.at(2);
  return {{"passage", {DType::kI32, {rows, passage}}, text::Vocabulary::kPad},
          {"passage_mask", {DType::kU8, {rows, passage}}},
          {"question", {DType::kI32, {rows, question}}, text::Vocabulary::kPad},
          {"question_mask", {DType::kU8, {rows, question}}},
          {"answer", {DType::kI32, {rows}}, -1}};
}

std::vector<task::Input> QuestionRows::inputs(const task::Sizes& sizes) const {
  return question_inputs(sizes);
}

task::Sizes QuestionRows::lengths_of(std::int64_t row) const {
  return {data::bucket_of(std::ssize(question(row).passage), kPassageMultiple),
          data::bucket_of(std::ssize(question(row).question), kQuestionMultiple)};
}

std::unique_ptr<data::BatchSampler> QuestionRows::plan(const task::StreamOptions& options) const {
  std::set<std::int64_t, std::greater<>> passages, questions;
  for (std::int64_t row = 0; row < std::ssize(questions_); ++row) {
    const task::Sizes lengths = lengths_of(row);
    passages.insert(lengths[0]);
    questions.insert(lengths[1]);
  }
  // A batch has the longest of its passages and the longest of its questions, which may be of
  // another row.
  const data::RowLengths lengths{
      .order =
          [this](std::uint32_t, std::int64_t row) {
            const task::Sizes lengths = lengths_of(row);
            return lengths[0] << 32 | lengths[1];
          },
      .padded = [this](std::uint32_t, std::int64_t row) { return lengths_of(row); },
      .all = {{passages.begin(), passages.end()}, {questions.begin(), questions.end()}}};
  return std::make_unique<data::RowBatches>(std::ssize(questions_), lengths,
                                            data::RowBatchOptions{options.batch, options.shuffle});
}

std::vector<std::int32_t> QuestionRows::entities_of(const data::RowVisit& visit) const {
  const Philox random =
      visit.seed ? Philox(*visit.seed, kEntityNumbers, visit.epoch + 1) : Philox(0, kEntityNumbers);
  return drawn_entities(std::ssize(question(visit.row).entities), *numbers_, random, visit.row);
}

void QuestionRows::put(task::Batch& batch, const data::RowVisit& visit) const {
  const NumberedQuestion& of = question(visit.row);
  const std::vector<std::int32_t> entities = entities_of(visit);
  CyclicRow(batch, kPassage, visit.place).put(of.passage, entities);
  CyclicRow(batch, kAsked, visit.place).put(of.question, entities);
  batch.values[kAnswer].as<std::int32_t>()[std::size_t(visit.place)] =
      of.answer >= 0 ? of.answer : entities[std::size_t(-1 - of.answer)];
}

}  // namespace keel::models
