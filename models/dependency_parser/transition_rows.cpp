#include "models/dependency_parser/transition_rows.h"

#include <algorithm>
#include <utility>

#include "frontend/data/fixed_batches.h"
#include "frontend/text/text_file.h"
#include "models/dependency_parser/greedy_parser.h"
#include "models/dependency_parser/tree.h"

namespace keel::models {
namespace {

// The numbers of sentences without a derivation, and of their tokens.
struct Underivable {
  std::int64_t sentences = 0, tokens = 0;
};

// The name of a treebank's rows, and the sentences that have no rows.
data::SplitNotes notes_of(const NumberedTreebank& treebank, std::vector<task::Skipped> skipped) {
  Underivable crossing, roots, cycles;
  for (const NumberedSentence& sentence : treebank.sentences) {
    if (!derivation(sentence.heads, sentence.labels).empty()) continue;
    const std::span<const std::int32_t> heads(sentence.heads);
    const TreeFault fault = tree_fault(heads.subspan(1, heads.size() - 2));
    Underivable& kind = fault == TreeFault::kCycle   ? cycles
                        : fault == TreeFault::kRoots ? roots
                                                     : crossing;
    ++kind.sentences;
    kind.tokens += sentence.size();
  }
  const auto note = [&](const Underivable& kind, std::string_view why) {
    if (kind.sentences == 0) return;
    skipped.push_back({2 * kind.tokens, fmt::format("of {} sentences {}", kind.sentences, why)});
  };
  note(crossing, "that are not projective");
  note(roots, "with several roots");
  note(cycles, "with a cycle");
  return {fmt::format("{}, {} sentences", treebank.treebank.name, treebank.sentences.size()),
          std::move(skipped)};
}

}  // namespace

TransitionRows::TransitionRows(std::shared_ptr<const NumberedTreebank> treebank,
                               std::vector<task::Skipped> skipped)
    : Dataset(notes_of(*treebank, std::move(skipped))), treebank_(std::move(treebank)) {
  Configuration configuration;
  for (std::size_t i = 0; i < treebank_->sentences.size(); ++i) {
    add(static_cast<std::uint32_t>(i), configuration);
  }
}

void TransitionRows::add(std::uint32_t number, Configuration& configuration) {
  const NumberedSentence& sentence = treebank_->sentences[number];
  const TransitionClasses& classes = treebank_->symbols->classes();
  configuration.start(sentence.size());
  for (const Transition& transition : derivation(sentence.heads, sentence.labels)) {
    const Legal legal = configuration.legal();
    const bool is_known = transition.move == Move::kShift || transition.label > 0;
    std::int32_t label = is_known ? classes.number(transition) : kNoClass;
    // A label that training has not seen at such a place.
    if (is_known && !classes.legal(legal)[static_cast<std::size_t>(label)]) label = kNoClass;
    examples_.push_back({feature_nodes(configuration), number, label, legal});
    configuration.apply(transition);
  }
}

void TransitionRows::expect_trainable() const {
  const Treebank& treebank = treebank_->treebank;
  check(!examples_.empty(), ErrorKind::kBadInput,
        "[dependency_parser] {}: expected a projective sentence to train on, got none",
        treebank.name);
  const auto unknown = std::ranges::find(examples_, kNoClass, &Example::label);
  if (unknown == examples_.end()) return;
  fail(ErrorKind::kBadInput,
       "[dependency_parser] {}: expected labels that the network knows at their places, got others",
       text::place(treebank.name, treebank.sentences[unknown->sentence].line));
}

std::unique_ptr<data::BatchSampler> TransitionRows::plan(const task::StreamOptions& options) const {
  if (options.shuffle) expect_trainable();
  return std::make_unique<data::FixedBatches>(std::ssize(examples_), options);
}

void TransitionRows::put(task::Batch& batch, const data::RowVisit& visit) const {
  const Example& row = example(visit.row);
  const NumberedSentence& sentence = treebank_->sentences[row.sentence];
  const auto place = static_cast<std::size_t>(visit.place);
  // The children so far have the labels that the treebank gives them.
  write_row(batch, place, {row.nodes, row.legal, sentence.rows, sentence.labels},
            *treebank_->symbols);
  batch.values[kLabelInput].as<std::int32_t>()[place] = row.label;
}

std::shared_ptr<task::Decoder> TransitionRows::decoder(std::int64_t batch) const {
  return std::make_shared<GreedyParser>(treebank_, batch);
}

}  // namespace keel::models
