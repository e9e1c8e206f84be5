#include "models/attentive_reader/question_stream.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

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
  return {{"passage", {DType::kI32, {rows, passage}}},
          {"passage_mask", {DType::kU8, {rows, passage}}},
          {"question", {DType::kI32, {rows, question}}},
          {"question_mask", {DType::kU8, {rows, question}}},
          {"answer", {DType::kI32, {rows}}}};
}

QuestionStream::QuestionStream(data::StreamNotes notes,
                               std::shared_ptr<const NumberedQuestions> questions,
                               std::shared_ptr<const ReaderNumbers> numbers,
                               const QuestionBatchOptions& options)
    : notes_(std::move(notes)),
      questions_(std::move(questions)),
      numbers_(std::move(numbers)),
      options_(options),
      batches_(std::ssize(*questions_),
               [this](std::uint32_t, std::int64_t row) {
                 const Lengths lengths = lengths_of(row);
                 return lengths.passage << 32 | lengths.question;
               },
               {options.batch, options.shuffle}) {}

QuestionStream::Lengths QuestionStream::lengths_of(std::int64_t row) const {
  return {data::bucket_of(std::ssize(question(row).passage), kPassageMultiple),
          data::bucket_of(std::ssize(question(row).question), kQuestionMultiple)};
}

std::vector<task::LeftOut> QuestionStream::left_out() const {
  std::vector<task::LeftOut> left = notes_.left_out;
  const std::int64_t rest = batches_.left_out();
  if (rest > 0) left.push_back({rest, "fill no batch, other ones every epoch"});
  return left;
}

// A batch has the longest of its passages and the longest of its questions, which may be another's.
std::vector<task::Sizes> QuestionStream::shapes() const {
  std::set<std::int64_t, std::greater<>> passages, questions;
  for (std::int64_t row = 0; row < rows(); ++row) {
    passages.insert(lengths_of(row).passage);
    questions.insert(lengths_of(row).question);
  }
  std::vector<task::Sizes> shapes;
  for (const std::int64_t passage : passages) {
    for (const std::int64_t question : questions) {
      shapes.push_back({batches_.capacity(), passage, question});
    }
  }
  return shapes;
}

std::vector<std::int32_t> QuestionStream::entities_of(std::uint32_t epoch, std::int64_t row) const {
  const Philox random = options_.shuffle ? Philox(*options_.shuffle, kEntityNumbers, epoch + 1)
                                         : Philox(0, kEntityNumbers);
  return drawn_entities(std::ssize(question(row).entities), *numbers_, random, row);
}

const task::Batch& QuestionStream::at(std::uint32_t epoch, std::int64_t step) {
  return make(batches_.at(epoch, step), epoch, batches_.capacity());
}

const task::Batch& QuestionStream::pick(std::span<const std::int64_t> rows) {
  for (const std::int64_t row : rows) {
    check(row >= 0 && row < this->rows(), ErrorKind::kUsage,
          "[attentive_reader] row: expected 0 to {}, got {}", this->rows() - 1, row);
  }
  return make(rows, 0, std::ssize(rows));
}

const task::Batch& QuestionStream::make(std::span<const std::int64_t> rows, std::uint32_t epoch,
                                        std::int64_t capacity) {
  Lengths longest{kPassageMultiple, kQuestionMultiple};
  for (const std::int64_t row : rows) {
    const Lengths lengths = lengths_of(row);
    longest = {std::max(longest.passage, lengths.passage),
               std::max(longest.question, lengths.question)};
  }
  resize({capacity, longest.passage, longest.question});
  for (const std::size_t value : {kPassage, kAsked}) {
    std::ranges::fill(batch_.values[value].as<std::int32_t>(), text::Vocabulary::kPad);
    std::ranges::fill(batch_.values[value + 1].as<std::uint8_t>(), std::uint8_t{0});
  }
  std::ranges::fill(batch_.values[kAnswer].as<std::int32_t>(), -1);
  for (std::size_t place = 0; place < rows.size(); ++place) {
    put(std::int64_t(place), rows[place], epoch);
  }
  batch_.rows.assign(rows.begin(), rows.end());
  batch_.rows.resize(std::size_t(capacity), -1);
  batch_.items = double(rows.size());
  return batch_;
}

// Gives the batch the sizes; the tensors of the last batch are kept where they fit.
void QuestionStream::resize(const task::Sizes& sizes) {
  if (batch_.sizes == sizes) return;
  batch_.sizes = sizes;
  batch_.values.clear();
  for (const task::Input& input : question_inputs(sizes)) batch_.values.emplace_back(input.type);
}

void QuestionStream::put(std::int64_t place, std::int64_t row, std::uint32_t epoch) {
  const NumberedQuestion& of = question(row);
  const std::vector<std::int32_t> entities = entities_of(epoch, row);
  CyclicRow(batch_, kPassage, place).put(of.passage, entities);
  CyclicRow(batch_, kAsked, place).put(of.question, entities);
  batch_.values[kAnswer].as<std::int32_t>()[std::size_t(place)] =
      of.answer >= 0 ? of.answer : entities[std::size_t(-1 - of.answer)];
}

}  // namespace keel::models
