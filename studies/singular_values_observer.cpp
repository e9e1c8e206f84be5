#include "studies/singular_values_observer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "frontend/text/dictionary.h"
#include "src/ops/embedding.h"
#include "studies/singular_values.h"

namespace keel::study {
namespace {

// The tables that the network looks symbols up in.
std::vector<EmbeddingTable> tables_of(const train::Job& job) {
  Graph g;
  nn::Net net{.graph = g, .mode = nn::Mode::kEvaluate};
  const task::Network& network = job.network();
  std::vector<NamedValue> inputs;
  for (const task::Input& input : network.inputs(network.sizes(job.train().batch))) {
    inputs.push_back({input.name, g.input(input.name, input.type)});
  }
  network.build(net, task::Inputs(std::move(inputs)));
  std::vector<EmbeddingTable> tables;
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    if (node.op != &kEmbedding) continue;
    const Node& table = g.node(node.inputs[EmbeddingInput::kTable]);
    if (table.kind != NodeKind::kParameter) continue;
    tables.push_back({table.name, node.attrs.as<EmbeddingAttrs>().padding_id});
  }
  return tables;
}

class SingularValuesObserver final : public train::Observer {
 public:
  SingularValuesObserver(EmbeddingTable table, const ObserverOptions& options)
      : table_(std::move(table)), options_(options) {}

  std::string name() const override { return "singular-values"; }
  bool looks_at(const train::ObservedUpdate& update) const override {
    return options_.fall_on(update, true);
  }

  void after(const train::ObservedUpdate& update, const train::StepResult&) override {
    const Tensor rows = update.variables.read(table_.name, true);
    const std::vector<double> values =
        singular_values_of(rows, kept_rows_of(update.job, table_, rows.shape()[0]));
    const SpectrumSummary summary = summary_of(values);
    write(update, {{"epoch", update.epoch()},
                   {"table", table_.name},
                   {"area", summary.area},
                   {"effective_rank", summary.effective_rank},
                   {"values", values}});
  }

 private:
  EmbeddingTable table_;
  ObserverOptions options_;
};

}  // namespace

EmbeddingTable chosen_table(const train::Job& job, const std::string& asked,
                            const std::string& who) {
  const std::vector<EmbeddingTable> tables = tables_of(job);
  check(!tables.empty(), ErrorKind::kUsage, "{}: {} has no embeddings", who, job.task().name());
  if (asked.empty()) return tables.front();
  const auto found = std::ranges::find(tables, asked, &EmbeddingTable::name);
  check(found != tables.end(), ErrorKind::kUsage, "{}: expected a table such as {}, got {}", who,
        tables.front().name, asked);
  return *found;
}

std::vector<bool> kept_rows_of(const train::Job& job, const EmbeddingTable& table,
                               std::int64_t rows) {
  std::vector<bool> kept(std::size_t(rows), true);
  if (table.padding_id >= 0) kept[std::size_t(table.padding_id)] = false;
  const task::Assets assets = job.network().assets();
  const std::string language = table.name.substr(0, table.name.find('/'));
  auto dictionary = assets.find(language + ".dictionary");
  if (dictionary == assets.end()) dictionary = assets.find("source.dictionary");
  if (dictionary == assets.end()) return kept;
  const auto parsed = text::Dictionary::parse(dictionary->second, dictionary->first);
  for (std::int64_t i = parsed.first_filler(); i < rows; ++i) kept[std::size_t(i)] = false;
  return kept;
}

std::unique_ptr<train::Observer> singular_values_observer(const train::Job& job,
                                                          const ObserverOptions& options) {
  return std::make_unique<SingularValuesObserver>(
      chosen_table(job, options.site, "train.observe: singular-values"), options);
}

}  // namespace keel::study
