#include "models/dependency_parser/transitions.h"

#include <algorithm>
#include <optional>

namespace keel::models {

void Configuration::start(std::int32_t tokens) {
  tokens_ = tokens;
  next_ = 1;
  stack_.assign(1, 0);
  const std::size_t nodes = at(tokens) + 2;
  heads_.assign(nodes, 0);
  labels_.assign(nodes, 0);
  left_.assign(nodes, {none(), none()});
  right_.assign(nodes, {none(), none()});
}

Legal Configuration::legal() const {
  const bool can_shift = next_ <= tokens_;
  if (stack_.size() > 2) return can_shift ? Legal::kShiftAndArcs : Legal::kArcs;
  if (can_shift) return Legal::kShift;
  return stack_.size() == 2 ? Legal::kRootArc : Legal::kNothing;
}

void Configuration::apply(const Transition& transition) {
  if (transition.move == Move::kShift) {
    stack_.push_back(next_++);
    return;
  }
  const bool is_left = transition.move == Move::kLeft;
  const std::int32_t s1 = stack(1), s2 = stack(2), head = is_left ? s1 : s2,
                     child = is_left ? s2 : s1;
  heads_[at(child)] = head;
  labels_[at(child)] = transition.label;
  // A node's children on one side come from the inside out.
  Children& children = (is_left ? left_ : right_)[at(head)];
  children = {child, children[0]};
  stack_.pop_back();
  stack_.back() = head;
}

TransitionClasses::TransitionClasses(const LabelPlaces& places)
    : labels_(static_cast<std::int64_t>(places.from_root.size())) {
  const auto labels = static_cast<std::size_t>(labels_), shift = 2 * labels;
  for (std::vector<std::uint8_t>& mask : masks_) mask.assign(shift + 1, 0);
  const auto mask = [&](Legal legal) -> std::vector<std::uint8_t>& {
    return masks_[static_cast<std::size_t>(legal)];
  };
  mask(Legal::kShift)[shift] = mask(Legal::kShiftAndArcs)[shift] = 1;
  for (std::size_t l = 0; l < labels; ++l) {
    mask(Legal::kRootArc)[labels + l] = places.from_root[l];
    for (Legal legal : {Legal::kShiftAndArcs, Legal::kArcs}) {
      mask(legal)[l] = mask(legal)[labels + l] = places.between_tokens[l];
    }
  }
}

std::int32_t TransitionClasses::number(const Transition& transition) const {
  const auto labels = static_cast<std::int32_t>(labels_);
  if (transition.move == Move::kShift) return 2 * labels;
  return transition.label - 1 + (transition.move == Move::kRight ? labels : 0);
}

Transition TransitionClasses::transition(std::int32_t number) const {
  const auto labels = static_cast<std::int32_t>(labels_);
  if (number == 2 * labels) return {};
  return {number < labels ? Move::kLeft : Move::kRight, number % labels + 1};
}

namespace {

class Oracle {
 public:
  Oracle(std::span<const std::int32_t> heads, std::span<const std::int32_t> labels)
      : heads_(heads), labels_(labels), open_(heads.size(), 0) {
    for (std::size_t node = 1; node + 1 < heads.size(); ++node) ++open_[at(heads[node])];
  }

  // Nothing when no way leads to the tree.
  std::optional<Transition> next(const Configuration& configuration) {
    const Legal legal = configuration.legal();
    const std::int32_t s1 = configuration.stack(1), s2 = configuration.stack(2);
    const bool arcs = legal == Legal::kArcs || legal == Legal::kShiftAndArcs;
    // No dependent of s2 can be missing: its arc would cross the one that s1 gets.
    if (arcs && heads_[at(s2)] == s1) return attach(Move::kLeft, s2);
    if ((arcs || legal == Legal::kRootArc) && heads_[at(s1)] == s2 && open_[at(s1)] == 0) {
      return attach(Move::kRight, s1);
    }
    if (legal == Legal::kShift || legal == Legal::kShiftAndArcs) return Transition{};
    return std::nullopt;
  }

 private:
  static std::size_t at(std::int32_t node) { return static_cast<std::size_t>(node); }
  Transition attach(Move move, std::int32_t child) {
    --open_[at(heads_[at(child)])];
    return {move, labels_[at(child)]};
  }

  std::span<const std::int32_t> heads_, labels_;
  std::vector<std::int32_t> open_;  // dependents of each node that are not attached
};

}  // namespace

std::vector<Transition> derivation(std::span<const std::int32_t> heads,
                                   std::span<const std::int32_t> labels) {
  Oracle oracle(heads, labels);
  Configuration configuration;
  std::vector<Transition> transitions;
  for (configuration.start(static_cast<std::int32_t>(heads.size()) - 2); !configuration.has_ended();
       configuration.apply(transitions.back())) {
    const std::optional<Transition> next = oracle.next(configuration);
    if (!next) return {};
    transitions.push_back(*next);
  }
  return transitions;
}

}  // namespace keel::models
