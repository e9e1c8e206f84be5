// The arc-standard transition system (Nivre 2004), its classes, and a static oracle.
//
// A configuration is a stack, which begins as [ROOT], a buffer, which begins as the tokens 1 to n,
// and the arcs so far. With s1 the top of the stack and s2 the node below:
//   SHIFT     moves the first token of the buffer onto the stack
//   LEFT(l)   adds the arc s1 -> s2 with label l and removes s2, which must not be ROOT
//   RIGHT(l)  adds the arc s2 -> s1 with label l and removes s1; from ROOT only when the buffer is
//             empty, so that the tree has one root
// It ends with [ROOT] and an empty buffer, after 2n transitions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace keel::models {

enum class Move : std::uint8_t { kLeft, kRight, kShift };

// Labels are numbered from 1; 0 is no label.
struct Transition {
  Move move = Move::kShift;
  std::int32_t label = 0;
  friend bool operator==(const Transition&, const Transition&) = default;
};

// The transitions that a configuration allows; there are no other combinations.
enum class Legal : std::uint8_t {
  kShift,         // only SHIFT
  kShiftAndArcs,  // SHIFT, LEFT and RIGHT between tokens
  kArcs,          // LEFT and RIGHT between tokens
  kRootArc,       // RIGHT from ROOT
  kNothing,       // it has ended
};
inline constexpr std::size_t kLegalSets = 5;

// Nodes are 0 for ROOT, 1 to n for the tokens and n + 1 for "there is none".
class Configuration {
 public:
  // Begins a sentence of `tokens` >= 1.
  void start(std::int32_t tokens);

  std::int32_t none() const { return tokens_ + 1; }
  // s1 is stack(1), the first of the buffer buffer(1).
  std::int32_t stack(std::size_t depth) const {
    return depth <= stack_.size() ? stack_[stack_.size() - depth] : none();
  }
  std::int32_t buffer(std::int32_t place) const {
    return next_ + place - 1 <= tokens_ ? next_ + place - 1 : none();
  }
  Legal legal() const;
  bool has_ended() const { return legal() == Legal::kNothing; }
  // The transition must be legal.
  void apply(const Transition& transition);

  // A child of a node on its left, counted from the leftmost, or on its right, counted from the
  // rightmost; place is 0 or 1. All children of "none" are "none".
  std::int32_t left_child(std::int32_t node, std::size_t place) const {
    return left_[at(node)][place];
  }
  std::int32_t right_child(std::int32_t node, std::size_t place) const {
    return right_[at(node)][place];
  }

  // By node; 0 for ROOT, for "none" and for a node without an arc so far.
  std::span<const std::int32_t> heads() const { return heads_; }
  std::span<const std::int32_t> labels() const { return labels_; }

 private:
  static std::size_t at(std::int32_t node) { return static_cast<std::size_t>(node); }
  using Children = std::array<std::int32_t, 2>;

  std::int32_t tokens_ = 0, next_ = 1;  // the first token of the buffer
  std::vector<std::int32_t> stack_, heads_, labels_;
  std::vector<Children> left_, right_;
};

// Where labels may stand, by their numbers less 1.
struct LabelPlaces {
  std::vector<bool> from_root, between_tokens;
};

// Transitions as classes: LEFT(1) to LEFT(L), RIGHT(1) to RIGHT(L), SHIFT.
class TransitionClasses {
 public:
  explicit TransitionClasses(const LabelPlaces& places);

  std::int64_t size() const { return 2 * labels_ + 1; }
  std::int32_t number(const Transition& transition) const;
  Transition transition(std::int32_t number) const;
  // (size): 1 for legal classes. The label of an arc must also be allowed in its place.
  std::span<const std::uint8_t> legal(Legal legal) const {
    return masks_[static_cast<std::size_t>(legal)];
  }

 private:
  std::int64_t labels_;
  std::array<std::vector<std::uint8_t>, kLegalSets> masks_;
};

// The transitions that build a tree; a token is attached when all its dependents are attached. The
// lists are by node, as in Configuration. The result is empty if there are none: the tree is not
// projective, or it is no tree with one root.
std::vector<Transition> derivation(std::span<const std::int32_t> heads,
                                   std::span<const std::int32_t> labels);

}  // namespace keel::models
