// Transitions: what is legal, and an oracle that finds every tree that can be built, and no other.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "models/dependency_parser/data.h"
#include "models/dependency_parser/symbols.h"
#include "models/dependency_parser/transitions.h"
#include "models/dependency_parser/tree.h"
#include "src/core/rng.h"
#include "tests/support/input_checks.h"

namespace keel::models {
namespace {

using Numbers = std::vector<std::int32_t>;

// Heads of the tokens 1 to n as lists by node, and labels i % 3 + 1.
struct NodeTree {
  Numbers heads, labels;

  explicit NodeTree(const Numbers& of_tokens) : heads{0}, labels{0} {
    for (std::size_t i = 0; i < of_tokens.size(); ++i) {
      heads.push_back(of_tokens[i]);
      labels.push_back(static_cast<std::int32_t>(i % 3 + 1));
    }
    heads.push_back(0);
    labels.push_back(0);
  }
  std::int32_t tokens() const { return static_cast<std::int32_t>(heads.size()) - 2; }
  std::vector<Transition> derivation() const { return models::derivation(heads, labels); }
};

bool is_legal(Legal legal, Move move, std::int32_t s2) {
  const bool arcs = legal == Legal::kArcs || legal == Legal::kShiftAndArcs;
  if (move == Move::kShift) return legal == Legal::kShift || legal == Legal::kShiftAndArcs;
  if (move == Move::kLeft) return arcs && s2 != 0;
  return arcs || legal == Legal::kRootArc;
}

// Whether these transitions are 2n legal ones that end with the tree.
bool rebuilds(const std::vector<Transition>& transitions, const NodeTree& tree) {
  Configuration c;
  c.start(tree.tokens());
  for (const Transition& transition : transitions) {
    if (!is_legal(c.legal(), transition.move, c.stack(2))) return false;
    c.apply(transition);
  }
  return c.has_ended() && std::ssize(transitions) == 2 * tree.tokens() &&
         std::ranges::equal(c.heads(), tree.heads) && std::ranges::equal(c.labels(), tree.labels);
}

// By the definition: for every arc all tokens between its ends hang from its head. Heads are by
// node and make a tree.
bool is_projective(const Numbers& heads) {
  const auto hangs_from = [&](std::int32_t node, std::int32_t head) {
    for (std::size_t steps = 0; node != head && steps < heads.size(); ++steps) {
      node = heads[std::size_t(node)];
    }
    return node == head;
  };
  for (std::int32_t child = 1; child + 1 < std::ssize(heads); ++child) {
    const std::int32_t head = heads[std::size_t(child)];
    for (std::int32_t between = std::min(child, head) + 1; between < std::max(child, head);
         ++between) {
      if (!hangs_from(between, head)) return false;
    }
  }
  return true;
}

TEST_CASE("oracle: the example of Chen and Manning") {
  // He has good control .
  NodeTree tree({2, 0, 4, 2, 2});
  tree.labels = {0, 1, 2, 3, 4, 5, 0};
  const Transition shift;
  CHECK(tree.derivation() == std::vector<Transition>{shift,
                                                     shift,
                                                     {Move::kLeft, 1},
                                                     shift,
                                                     shift,
                                                     {Move::kLeft, 3},
                                                     {Move::kRight, 4},
                                                     shift,
                                                     {Move::kRight, 5},
                                                     {Move::kRight, 2}});
}

TEST_CASE("oracle: of all lists of heads those are found that are projective trees, and rebuilt") {
  for (int n = 1; n <= 6; ++n) {
    CAPTURE(n);
    Numbers heads(std::size_t(n), 0);
    std::int64_t found = 0, trees = 0;
    for (bool more = true; more;) {
      const NodeTree tree(heads);
      const bool is_tree = tree_fault(heads) == TreeFault::kNone;
      const bool is_found = !tree.derivation().empty();
      trees += is_tree;
      found += is_found;
      CHECK(is_found == (is_tree && is_projective(tree.heads)));
      if (is_found) CHECK(rebuilds(tree.derivation(), tree));
      // The next list: n digits of the base n + 1.
      more = false;
      for (std::int32_t& head : heads) {
        more = ++head <= n;
        if (more) break;
        head = 0;
      }
    }
    // Trees of n labelled nodes with a root, by Cayley: n^(n-1).
    CHECK(trees == std::int64_t(std::pow(n, n - 1) + 0.5));
    CHECK(found == std::vector<std::int64_t>{0, 1, 2, 7, 30, 143, 728}[std::size_t(n)]);
  }
}

// A random projective tree: a head is drawn for the tokens first to last, what lies left and what
// lies right of it is cut at random, and each piece gets a head of its own.
class RandomTree {
 public:
  RandomTree(std::int32_t tokens, std::uint32_t number)
      : heads(std::size_t(tokens), 0), random_(7, 1, number) {
    fill(1, tokens, 0);
  }
  Numbers heads;

 private:
  void fill(std::int32_t first, std::int32_t last, std::int32_t head) {
    if (first > last) return;
    const std::int32_t own = first + below(last - first + 1);
    heads[std::size_t(own - 1)] = head;
    pieces(first, own - 1, own);
    pieces(own + 1, last, own);
  }
  void pieces(std::int32_t first, std::int32_t last, std::int32_t head) {
    while (first <= last) {
      const std::int32_t end = first + below(last - first + 1);
      fill(first, end, head);
      first = end + 1;
    }
  }
  std::int32_t below(std::int32_t n) {
    return static_cast<std::int32_t>(random_.below(next_++, static_cast<std::uint32_t>(n)));
  }
  Philox random_;
  std::uint64_t next_ = 0;
};

TEST_CASE("oracle: random projective trees are rebuilt, of one token and of 500") {
  for (std::uint32_t i = 0; i < 300; ++i) {
    const NodeTree tree(RandomTree(std::int32_t(i % 40 + 1), i).heads);
    CHECK(rebuilds(tree.derivation(), tree));
  }
  const NodeTree large(RandomTree(500, 1).heads);
  CHECK(rebuilds(large.derivation(), large));
}

TEST_CASE("oracle: nothing is found for crossing arcs, several roots and cycles") {
  CHECK(NodeTree({2, 0, 1, 2}).derivation().empty());  // 1 -> 3 crosses 0 -> 2
  CHECK(NodeTree({0, 0}).derivation().empty());
  CHECK(NodeTree({0, 3, 2}).derivation().empty());
  CHECK(NodeTree({1}).derivation().empty());
}

TEST_CASE("tree: faults by their names") {
  const auto fault = [](const Numbers& heads) { return tree_fault(heads); };
  CHECK(fault({0}) == TreeFault::kNone);
  CHECK(fault({2, 0, 1, 2}) == TreeFault::kNone);
  CHECK(fault({0, 0}) == TreeFault::kRoots);
  CHECK(fault({1}) == TreeFault::kCycle);
  CHECK(fault({2, 3, 1}) == TreeFault::kCycle);
  CHECK(fault({0, 0, 4, 3}) == TreeFault::kCycle);
}

TEST_CASE("configuration: what is legal, and that ROOT gets one child at the end") {
  Configuration c;
  c.start(2);
  CHECK(c.legal() == Legal::kShift);
  c.apply({});
  CHECK(c.legal() == Legal::kShift);  // no arc from ROOT while there is a buffer
  c.apply({});
  CHECK(c.legal() == Legal::kArcs);
  c.apply({Move::kRight, 1});
  CHECK(c.legal() == Legal::kRootArc);
  CHECK(c.stack(1) == 1);
  CHECK(c.stack(2) == 0);
  CHECK(c.stack(3) == c.none());
  CHECK(c.buffer(1) == c.none());
  c.apply({Move::kRight, 2});
  CHECK(c.legal() == Legal::kNothing);
  CHECK(c.has_ended());
  CHECK(std::ranges::equal(c.heads(), Numbers{0, 0, 1, 0}));
  CHECK(std::ranges::equal(c.labels(), Numbers{0, 2, 1, 0}));
  c.start(1);  // nothing is left of the sentence before
  CHECK(c.legal() == Legal::kShift);
  CHECK(std::ranges::equal(c.heads(), Numbers{0, 0, 0}));
  CHECK(c.right_child(0, 0) == c.none());
}

TEST_CASE("classes: numbers and back, and labels only where they may stand") {
  // Label 1 stands on arcs from the root, 2 between tokens, 3 on both.
  const TransitionClasses classes({{true, false, true}, {false, true, true}});
  REQUIRE(classes.size() == 7);
  CHECK(classes.number({Move::kLeft, 1}) == 0);
  CHECK(classes.number({Move::kRight, 1}) == 3);
  CHECK(classes.number({Move::kRight, 3}) == 5);
  CHECK(classes.number({}) == 6);
  for (std::int32_t k = 0; k < 7; ++k) CHECK(classes.number(classes.transition(k)) == k);
  const auto mask = [&](Legal legal) {
    const auto of = classes.legal(legal);
    return std::vector<int>(of.begin(), of.end());
  };
  using Mask = std::vector<int>;
  CHECK(mask(Legal::kShift) == Mask{0, 0, 0, 0, 0, 0, 1});
  CHECK(mask(Legal::kShiftAndArcs) == Mask{0, 1, 1, 0, 1, 1, 1});
  CHECK(mask(Legal::kArcs) == Mask{0, 1, 1, 0, 1, 1, 0});
  CHECK(mask(Legal::kRootArc) == Mask{0, 0, 0, 1, 0, 1, 0});
  CHECK(mask(Legal::kNothing) == Mask{0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("oracle: every projective tree of the real treebanks is rebuilt" *
          doctest::test_suite("slow")) {
  const char* root = std::getenv("KEEL_DATA");
  if (root == nullptr) {
    MESSAGE("skipped: KEEL_DATA names no folder with treebank/ in it");
    return;
  }
  const auto check_all = [](const Treebank& treebank, std::int64_t expected) {
    std::int64_t crossing = 0;
    for (const Sentence& sentence : treebank.sentences) {
      const NodeTree tree(sentence.heads);
      const std::vector<Transition> transitions = tree.derivation();
      const bool is_tree = tree_fault(sentence.heads) == TreeFault::kNone;
      crossing += transitions.empty();
      CHECK(is_tree);
      CHECK(transitions.empty() == !is_projective(tree.heads));
      if (!transitions.empty()) CHECK(rebuilds(transitions, tree));
    }
    MESSAGE(treebank.name << ": " << crossing << " of " << treebank.sentences.size()
                          << " sentences are not projective, expected " << expected);
    CHECK(crossing == expected);
  };
  const std::string folder = root;
  check_all(load_treebank({.source = folder}, task::Split::kTrain), 288);
  check_all(load_treebank({.source = folder}, task::Split::kValid), 31);
  check_all(load_treebank({.source = folder}, task::Split::kTest), 26);
  check_all(load_treebank({.source = folder + "/treebank/wsj_sample.dp.xz"}, task::Split::kTrain),
            0);
}

}  // namespace
}  // namespace keel::models
