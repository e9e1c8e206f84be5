// What the vectors of skip-thoughts are good for: sentences are put into classes, and pairs rated,
// by regressions on vectors that were trained to say neighbours (Kiros et al. 2015, section 3; Ba
// et al. 2016, table 3).
#include <algorithm>
#include <memory>

#include "frontend/io/safetensors.h"
#include "frontend/train/run_state.h"
#include "models/registry.h"
#include "models/skip_thoughts/stories.h"
#include "models/skip_thoughts/vectors.h"
#include "studies/list.h"
#include "studies/transfer_data.h"
#include "studies/transfer_scores.h"
#include "studies/zoo_training.h"

namespace keel::study {
namespace {

constexpr int kTransferSteps = 300;
constexpr std::int64_t kProbeRows = 1000;

// The vectors of lines by a network of which `decode` runs the batches.
using Decode = std::function<void(task::Decoder&)>;
RowMatrix vectors_of(const task::Model& model, const Decode& decode,
                     const std::vector<std::string>& lines) {
  const std::unique_ptr<task::Decoder> decoder = model.decoder(lines);
  auto* found = dynamic_cast<models::VectorDecoder*>(decoder.get());
  check(found != nullptr, ErrorKind::kUsage,
        "[transfer] --task: expected one that makes vectors of sentences, got {}", model.name());
  decode(*found);
  const std::vector<std::vector<float>>& vectors = found->vectors();
  RowMatrix rows(std::ssize(vectors), std::ssize(vectors.front()));
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    for (std::size_t j = 0; j < vectors[i].size(); ++j) {
      rows(Eigen::Index(i), Eigen::Index(j)) = vectors[i][j];
    }
  }
  return rows;
}

// One network: what is measured of it.
class TransferProbe {
 public:
  TransferProbe(const task::Model& model, Decode decode, const Options& options)
      : model_(model), decode_(std::move(decode)), options_(options) {}

  // Per cent of held-out sentences of the built-in stories whose topic is found.
  double topics() const {
    const models::OrderedText text = models::make_stories();
    return test_accuracy(stories(text.valid), stories(text.test()), options_.seed);
  }

  // A row of the table of real tasks for each that is there.
  void add_tasks(Table& table, const std::string& network) const {
    const std::string folder = options_.data.empty() ? "builtin" : options_.data;
    for (const LabelledLines& set : read_labelled_lines(folder)) {
      const Labelled data{vectors_of(model_, decode_, set.lines), set.labels, 2};
      add(table, network, set.name + ", accuracy %", cross_validated_accuracy(data, options_.seed));
    }
    if (!has_sick(folder)) return;
    const Sick sick = read_sick(folder);
    const Relatedness found = relatedness(pairs(sick.train), pairs(sick.valid), pairs(sick.test));
    add(table, network, "SICK, Pearson", found.pearson);
    add(table, network, "SICK, Spearman", found.spearman);
    add(table, network, "SICK, MSE", found.mse);
  }

 private:
  static void add(Table& table, const std::string& network, const std::string& what, double value) {
    table.rows.push_back({network, what, fmt::format("{:.4g}", value)});
  }

  Labelled stories(const std::vector<models::Passage>& passages) const {
    std::vector<std::string> lines;
    Labelled data{{}, {}, models::kTopics};
    for (const models::Passage& story : passages) {
      for (std::size_t i = 0; i < story.sentences.size(); ++i) {
        if (std::ssize(lines) == kProbeRows) break;
        lines.push_back(story.sentences[i]);
        data.labels.push_back(story.topics[i]);
      }
    }
    data.vectors = vectors_of(model_, decode_, lines);
    return data;
  }

  RatedPairs pairs(const RatedLines& lines) const {
    return {vectors_of(model_, decode_, lines.first), vectors_of(model_, decode_, lines.second),
            lines.scores};
  }

  const task::Model& model_;
  Decode decode_;
  const Options& options_;
};

Table task_table() {
  return {"transfer, by nested cross-validation; SICK on its test pairs",
          {{"network", "task", "value"}}};
}

// Runs that were trained before.
void probe_runs(const Options& options, Table& tasks) {
  for (const std::string& path : options.runs) {
    const io::TensorFile file = io::read_safetensors(path, {.require_checksums = true});
    const train::Config config = train::config_of_checkpoint(
        file, path, [](const std::string& name) { return models::find_model(name).make(); });
    Variables variables(options.backend, 0);
    train::Evaluator evaluator(options.backend, variables, config);
    evaluator.declare();
    train::load_variables(file, path, variables);
    const TransferProbe probe(
        config.model(), [&](task::Decoder& decoder) { evaluator.decode(decoder); }, options);
    probe.add_tasks(tasks, path);
  }
}

// Networks that are trained here, before and behind their training.
void probe_trainings(const Options& options, Result& result, Table& tasks) {
  Table topics{"topics of 1,000 held-out sentences of stories",
               {{"norm", "nll, nats a word", "untrained %", "trained %"}}};
  for (const std::string& norm : norms_of(options, {"none", "layernorm"})) {
    const train::Config config =
        zoo_config(options, 0, {task_of(options, "skip_thoughts"), norm, kTransferSteps});
    ZooTraining training(options.backend, config);
    const TransferProbe probe(
        config.model(), [&](task::Decoder& decoder) { training.decode(decoder); }, options);
    const bool tells_stories = config.data().source == "builtin";
    const double before = tells_stories ? probe.topics() : 0;
    training.run({});
    if (!options.data.empty()) probe.add_tasks(tasks, norm);
    if (!tells_stories) continue;
    const double nll = training.evaluate(task::Split::kTest).at("nll"), after = probe.topics();
    topics.rows.push_back({norm, fmt::format("{:.4f}", nll), fmt::format("{:.1f}", before),
                           fmt::format("{:.1f}", after)});
    result.above(norm + ": training tells topics apart, in points of accuracy", after - before, 0);
  }
  if (topics.rows.size() > 1) result.tables.push_back(std::move(topics));
}

}  // namespace

Result transfer(const Options& options) {
  Result result;
  Table tasks = task_table();
  options.runs.empty() ? probe_trainings(options, result, tasks) : probe_runs(options, tasks);
  check(options.runs.empty() || tasks.rows.size() > 1, ErrorKind::kIo,
        "[transfer] --data: expected sentences of MR, CR, SUBJ, MPQA or SICK in {}, got none",
        options.data.empty() ? "a folder" : options.data);
  if (tasks.rows.size() > 1) result.tables.push_back(std::move(tasks));
  return result;
}

}  // namespace keel::study
