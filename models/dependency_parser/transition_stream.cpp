#include "models/dependency_parser/transition_stream.h"

#include <algorithm>
#include <utility>

#include "frontend/text/text_file.h"
#include "models/dependency_parser/greedy_parser.h"
#include "models/dependency_parser/tree.h"

namespace keel::models {
TransitionStream::TransitionStream(std::shared_ptr<const NumberedTreebank> treebank,
                                   const task::StreamOptions& options)
    : treebank_(std::move(treebank)), options_(options) {
  const auto& sentences = treebank_->sentences;
  for (std::size_t i = 0; i < sentences.size(); ++i) add(static_cast<std::uint32_t>(i));
  if (options.shuffle) expect_trainable();
  if (examples_.empty()) return;
  batcher_.emplace(rows(), data::BatchOptions{.batch = options.batch,
                                              .shuffle = options.shuffle.has_value(),
                                              .keep_partial = !options.shuffle.has_value(),
                                              .seed = options.shuffle.value_or(0)});
}

void TransitionStream::add(std::uint32_t number) {
  const NumberedSentence& sentence = treebank_->sentences[number];
  const std::vector<Transition> transitions = derivation(sentence.heads, sentence.labels);
  if (transitions.empty()) return leave_out(sentence);
  const TransitionClasses& classes = treebank_->symbols->classes();
  configuration_.start(sentence.size());
  for (const Transition& transition : transitions) {
    const Legal legal = configuration_.legal();
    const bool is_known = transition.move == Move::kShift || transition.label > 0;
    std::int32_t label = is_known ? classes.number(transition) : kNoClass;
    // A label that training has not seen at such a place.
    if (is_known && !classes.legal(legal)[static_cast<std::size_t>(label)]) label = kNoClass;
    examples_.push_back({feature_nodes(configuration_), number, label, legal});
    configuration_.apply(transition);
  }
}

void TransitionStream::leave_out(const NumberedSentence& sentence) {
  const std::span<const std::int32_t> heads(sentence.heads);
  const TreeFault fault = tree_fault(heads.subspan(1, heads.size() - 2));
  Underivable& kind = fault == TreeFault::kCycle   ? cycles_
                      : fault == TreeFault::kRoots ? roots_
                                                   : crossing_;
  ++kind.sentences;
  kind.tokens += sentence.size();
}

void TransitionStream::expect_trainable() const {
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

double TransitionStream::items(std::uint32_t, std::int64_t step) {
  if (options_.shuffle) return double(options_.batch);
  const auto first = examples_.begin() + std::min(step * options_.batch, rows());
  const auto end = examples_.begin() + std::min((step + 1) * options_.batch, rows());
  return double(end - first - std::count_if(first, end, [](const Example& example) {
                  return example.label == kNoClass;
                }));
}

const task::Batch& TransitionStream::at(std::uint32_t epoch, std::int64_t step) {
  if (batcher_) return pick(batcher_->rows(epoch, step));
  clear_batch(batch_, 1, *treebank_->symbols);
  return batch_;
}

const task::Batch& TransitionStream::pick(std::span<const std::int64_t> rows) {
  const Symbols& symbols = *treebank_->symbols;
  clear_batch(batch_, std::ssize(rows), symbols);
  const std::span<std::int32_t> labels = batch_.values[kLabelInput].as<std::int32_t>();
  for (std::size_t place = 0; place < rows.size(); ++place) {
    check(rows[place] >= 0 && rows[place] < this->rows(), ErrorKind::kUsage,
          "[dependency_parser] row: expected 0 to {}, got {}", this->rows() - 1, rows[place]);
    const Example& row = example(rows[place]);
    const NumberedSentence& sentence = treebank_->sentences[row.sentence];
    // The children so far have the labels that the treebank gives them.
    write_row(batch_, place, {row.nodes, row.legal, sentence.rows, sentence.labels}, symbols);
    labels[place] = row.label;
    batch_.rows[place] = rows[place];
    batch_.items += row.label != kNoClass;
  }
  return batch_;
}

std::vector<task::Sizes> TransitionStream::shapes() const {
  if (!batcher_) return {{1}};
  const std::int64_t batch = std::min(options_.batch, rows());
  std::vector<task::Sizes> shapes{{batch}};
  if (!options_.shuffle && rows() % batch != 0) shapes.push_back({rows() % batch});
  return shapes;
}

std::vector<task::LeftOut> TransitionStream::left_out() const {
  if (!options_.shuffle) return {};
  std::vector<task::LeftOut> left = treebank_->left_out;
  const auto add = [&](const Underivable& kind, std::string_view why) {
    if (kind.sentences == 0) return;
    left.push_back(
        {2 * kind.tokens, fmt::format("belong to {} sentences {}", kind.sentences, why)});
  };
  add(crossing_, "that are not projective");
  add(roots_, "with several roots");
  add(cycles_, "with a cycle");
  if (const std::int64_t rest = rows() % options_.batch; rest > 0) {
    left.push_back({rest, fmt::format("do not fill a batch of {}", options_.batch)});
  }
  return left;
}

std::unique_ptr<task::Decoder> TransitionStream::decoder() const {
  return std::make_unique<GreedyParser>(treebank_, options_.batch);
}

}  // namespace keel::models
