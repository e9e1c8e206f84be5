#include "models/translation/translator.h"

#include <algorithm>
#include <numeric>

#include "frontend/data/token_batches.h"
#include "frontend/text/bleu.h"
#include "frontend/text/dictionary.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

using text::Dictionary;

// Lengths are rounded up to a multiple of it, so that few programs serve all steps.
constexpr std::int64_t kMultiple = 8;
// Rows of a batch take about so many positions of sources.
constexpr std::int64_t kPositions = 4096;

template <class T>
std::span<const T> row_of(const Tensor& values, std::size_t row) {
  const auto width = static_cast<std::size_t>(values.shape().back());
  return values.as<T>().subspan(row * width, width);
}

}  // namespace

Translator::Translator(TranslationTask task, const BeamOptions& options)
    : task_(std::move(task)), options_(options), answers_(task_.sources.size()) {
  for (std::size_t i = 0; i < task_.sources.size(); ++i) {
    const std::string where = fmt::format("sentence {}", i + 1);
    sources_.push_back(task_.subwords.source->encode(task_.sources[i], where));
    if (sources_[i].size() > 1) order_.push_back(i);
  }
  std::ranges::stable_sort(order_, {}, [this](std::size_t i) { return sources_[i].size(); });
}

bool Translator::group_is_done() const {
  return std::ranges::all_of(group_, [](const Slot& slot) { return slot.search.is_done(); });
}

void Translator::end_group() {
  for (const Slot& slot : group_) {
    answers_[slot.sentence] = task_.subwords.target->decode(slot.search.best().symbols);
  }
  group_.clear();
}

// The sentences that follow, as long as they fall into the bucket of the first.
void Translator::begin_group() {
  const auto bucket = [this](std::size_t i) {
    return data::bucket_of(std::ssize(sources_[i]), kMultiple);
  };
  source_length_ = bucket(order_[begun_]);
  const std::int64_t sentences =
      std::max<std::int64_t>(1, kPositions / (source_length_ * options_.beam));
  group_rows_ = sentences * options_.beam;
  while (begun_ < order_.size() && std::ssize(group_) < sentences &&
         bucket(order_[begun_]) == source_length_) {
    group_.push_back({order_[begun_++], BeamSearch(options_)});
  }
}

void Translator::put_row(std::size_t place, const Slot& slot,
                         const BeamSearch::Hypothesis& hypothesis) {
  NumberedPair pair{sources_[slot.sentence], hypothesis.symbols};
  pair.target.push_back(Dictionary::kEnd);
  models::put_pair(batch_, place, pair);
  batch_.rows[place] = static_cast<std::int64_t>(slot.sentence);
  const std::int64_t length = batch_.sizes[2];
  batch_.values[kAsked].as<std::int32_t>()[place] =
      static_cast<std::int32_t>(std::int64_t(place) * length + std::ssize(pair.target) - 1);
}

const task::Batch* Translator::next() {
  if (!group_.empty() && group_is_done()) end_group();
  if (group_.empty()) {
    if (begun_ == order_.size()) return nullptr;
    begin_group();
  }
  std::int64_t longest = 0;
  for (const Slot& slot : group_) {
    if (slot.search.is_done()) continue;
    longest = std::max<std::int64_t>(longest, std::ssize(slot.search.open().front().symbols));
  }
  clear_pairs(batch_, {group_rows_, source_length_, data::bucket_of(longest + 1, kMultiple)});
  batch_.rows.assign(static_cast<std::size_t>(group_rows_), -1);
  batch_.items = 1;
  std::size_t place = 0;
  for (const Slot& slot : group_) {
    for (const BeamSearch::Hypothesis& open : slot.search.open()) put_row(place++, slot, open);
  }
  return &batch_;
}

void Translator::take(const std::map<std::string, Tensor>& predictions) {
  const Tensor &symbols = predictions.at("symbols"), &scores = predictions.at("scores"),
               &ends = predictions.at("end");
  std::size_t place = 0;
  std::vector<NextSymbols> said;
  for (Slot& slot : group_) {
    if (slot.search.is_done()) continue;
    said.clear();
    for (std::size_t i = 0; i < slot.search.open().size(); ++i, ++place) {
      said.push_back({row_of<std::int32_t>(symbols, place), row_of<float>(scores, place),
                      ends.as<float>()[place]});
    }
    slot.search.take(said);
  }
}

std::map<std::string, task::Ratio> Translator::ratios() const {
  if (task_.references.empty()) return {};
  text::BleuCounter counter;
  for (std::size_t i = 0; i < answers_.size(); ++i) counter.add(answers_[i], task_.references[i]);
  return {{"bleu", {counter.score().bleu, 1}}};
}

}  // namespace keel::models
