#include "studies/transfer_probe.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "models/skip_thoughts/stories.h"
#include "models/skip_thoughts/vectors.h"

namespace keel::study {
namespace {

constexpr std::int64_t kProbeRows = 1000;

// Another decoder, whose sentences are counted as they are asked for.
class WatchedDecoder final : public task::Decoder {
 public:
  WatchedDecoder(task::Decoder& decoder, Monitor monitor)
      : decoder_(decoder), monitor_(std::move(monitor)) {}

  std::int64_t size() const override { return decoder_.size(); }
  const task::Batch* next() override {
    const task::Batch* batch = decoder_.next();
    if (batch == nullptr) return nullptr;
    asked_ += std::ranges::count_if(batch->rows, [](std::int64_t row) { return row >= 0; });
    monitor_(std::min(1.0, double(asked_) / double(size())));
    return batch;
  }
  void take(const std::map<std::string, Tensor>& predictions) override {
    decoder_.take(predictions);
  }
  std::vector<std::string> answers() const override { return decoder_.answers(); }

 private:
  task::Decoder& decoder_;
  Monitor monitor_;
  std::int64_t asked_ = 0;
};

Monitor told_by(train::Progress& progress, const std::string& what) {
  return [&progress, what](double part) {
    progress.update(part, fmt::format("{}, {:.0f} %", what, 100 * part));
  };
}

}  // namespace

RowMatrix TransferProbe::vectors_of(const std::string& what,
                                    const std::vector<std::string>& lines) const {
  const bool answers = job_.network().answers() != task::Answers::kNone;
  const std::unique_ptr<task::Decoder> decoder =
      answers ? job_.network().decoder(lines, 1) : nullptr;
  auto* found = dynamic_cast<models::VectorDecoder*>(decoder.get());
  check(found != nullptr, ErrorKind::kUsage,
        "[transfer] --task: expected one that makes vectors of sentences, got {}",
        job_.task().name());
  WatchedDecoder watched(*found, told_by(progress_, what + ": vectors"));
  decode_(watched);
  for (const auto& [name, text] : found->details()) {
    progress_.line(fmt::format("{}: {}: {}", what, name, text));
  }
  const std::vector<std::vector<float>>& vectors = found->vectors();
  RowMatrix rows(std::ssize(vectors), std::ssize(vectors.front()));
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    for (std::size_t j = 0; j < vectors[i].size(); ++j) {
      rows(Eigen::Index(i), Eigen::Index(j)) = vectors[i][j];
    }
  }
  return rows;
}

double TransferProbe::topics() const {
  const models::OrderedText text = models::make_stories();
  return test_accuracy(stories(text.valid), stories(text.test()), {.seed = options_.seed});
}

void TransferProbe::add(Table& table, const std::vector<std::string>& row) const {
  table.rows.push_back(row);
  progress_.line(fmt::format("{}", fmt::join(row, ": ")));
}

void TransferProbe::add_tasks(Table& table, const std::string& network) const {
  const std::string folder = options_.data.empty() ? "builtin" : options_.data;
  const auto number = [](double value) { return fmt::format("{:.4g}", value); };
  for (const LabelledLines& set : read_labelled_lines(folder)) {
    const std::string what = network + ": " + set.name;
    const Labelled data{vectors_of(what, set.lines), set.labels, 2};
    const FoldsAccuracy accuracy = cross_validated_accuracy(
        data, {.seed = options_.seed}, told_by(progress_, what + ": cross-validation"));
    add(table,
        {network, set.name + ", accuracy %", number(accuracy.all), number(accuracy.deviation)});
  }
  if (!has_sick(folder)) return;
  const Sick sick = read_sick(folder);
  const std::string what = network + ": SICK";
  const Relatedness found =
      relatedness(pairs(what, sick.train), pairs(what, sick.valid), pairs(what, sick.test),
                  told_by(progress_, what + ": regression"));
  add(table, {network, "SICK, Pearson", number(found.pearson), "-"});
  add(table, {network, "SICK, Spearman", number(found.spearman), "-"});
  add(table, {network, "SICK, MSE", number(found.mse), "-"});
}

Labelled TransferProbe::stories(const std::vector<models::Passage>& passages) const {
  std::vector<std::string> lines;
  Labelled data{{}, {}, models::kTopics};
  for (const models::Passage& story : passages) {
    for (std::size_t i = 0; i < story.sentences.size(); ++i) {
      if (std::ssize(lines) == kProbeRows) break;
      lines.push_back(story.sentences[i]);
      data.labels.push_back(story.topics[i]);
    }
  }
  data.vectors = vectors_of("stories", lines);
  return data;
}

RatedPairs TransferProbe::pairs(const std::string& what, const RatedLines& lines) const {
  return {vectors_of(what, lines.first), vectors_of(what, lines.second), lines.scores};
}

}  // namespace keel::study
