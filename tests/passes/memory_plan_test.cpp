// The memory plan: values that live at the same time never share a byte, unless the op between them
// claims that they may.
#include "src/passes/memory_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/optimizer_step.h"
#include "src/passes/pipeline.h"
#include "tests/passes/fed_graph.h"
#include "tests/support/checks.h"
#include "tests/support/random_graph.h"

namespace keel::test {
namespace {

// Everything the check needs to know of a value, worked out again from the graph.
struct Life {
  Value value, root;  // root: the value that a chain of views looks at
  int first = 0, last = 0;
  Location::Kind kind = Location::kAbsent;
  std::int64_t begin = 0, end = 0;  // bytes of the arena, when it lies there
};

class Lives {
 public:
  Lives(const Graph& g, const MemoryPlan& plan) : g_(g) {
    for (int i = 0; i < g.size(); ++i) {
      for (int port = 0; port < int(g.node(i).outputs.size()); ++port) add({i, port}, plan);
    }
    for (int i = 0; i < g.size(); ++i) {
      for (Value v : g.node(i).inputs) read(v, i);
    }
    for (const NamedValue& output : g.outputs()) read(output.value, g.size());
    for (const Update& update : plan.copies) read(update.next, g.size());
  }

  std::span<const Life> all() const { return lives_; }

  // Whether `later` may take the bytes of `earlier`: a claim of the op that makes `later`, on a
  // value that nobody reads after it.
  bool is_claimed(const Life& earlier, const Life& later) const {
    const Node& node = g_.node(later.value);
    if (!node.op || earlier.last > later.value.node) return false;
    return std::ranges::any_of(node.op->in_place, [&](const InPlace& claim) {
      if (claim.output != later.value.port || claim.input >= int(node.inputs.size())) return false;
      const Value v = node.inputs[std::size_t(claim.input)];
      return v.valid() && root_of(v) == earlier.root && g_.type(v) == g_.type(later.value);
    });
  }

 private:
  Value root_of(Value v) const {
    while (is_view(g_.node(v))) v = g_.node(v).inputs[0];
    return v;
  }

  void add(Value v, const MemoryPlan& plan) {
    Life life{.value = v, .root = root_of(v), .first = v.node, .last = v.node};
    if (g_.node(v).kind == NodeKind::kInput) life.first = 0, life.last = g_.size();
    const Location& place = plan.at(v);
    life.kind = place.kind;
    life.begin = place.offset;
    life.end = place.offset + g_.type(v).bytes();
    CHECK((place.kind != Location::kArena || life.end <= plan.arena_bytes));
    CHECK(place.offset % std::int64_t(kAlignment) == 0);
    lives_.push_back(life);
  }

  // A reader of a view reads what it looks at.
  void read(Value v, int reader) {
    if (!v.valid()) return;
    for (Life& life : lives_) {
      if (life.root == root_of(v)) life.last = std::max(life.last, reader);
    }
  }

  const Graph& g_;
  std::vector<Life> lives_;
};

std::int64_t aligned(std::int64_t bytes) {
  const auto unit = std::int64_t(kAlignment);
  return (bytes + unit - 1) / unit * unit;
}

// The most bytes of the arena that values hold at one time, each from where it is made to where it
// is last read. A value that is written over a part of another keeps more than its own.
std::int64_t most_held(const Lives& lives, int times) {
  std::int64_t most = 0;
  for (int now = 0; now <= times; ++now) {
    std::vector<std::pair<std::int64_t, std::int64_t>> held;
    for (const Life& life : lives.all()) {
      const bool lives_now = life.first <= now && now <= life.last;
      if (lives_now && life.kind == Location::kArena) {
        held.emplace_back(life.begin, aligned(life.end));
      }
    }
    std::ranges::sort(held);
    std::int64_t sum = 0, end = 0;
    for (const auto& [from, to] : held) {
      sum += std::max<std::int64_t>(0, to - std::max(from, end));
      end = std::max(end, to);
    }
    most = std::max(most, sum);
  }
  return most;
}

void check_plan(const Graph& g) {
  const MemoryPlan plan = plan_memory(g);
  const Lives lives(g, plan);
  for (const Life& a : lives.all()) {
    for (const Life& b : lives.all()) {
      if (!(a.value < b.value) || a.root == b.root) continue;
      if (a.kind != Location::kArena || b.kind != Location::kArena) continue;
      const bool share_bytes = a.begin < b.end && b.begin < a.end;
      const bool share_time = a.first <= b.last && b.first <= a.last;
      if (!share_bytes || !share_time) continue;
      CAPTURE(g.node(a.value).name);
      CAPTURE(g.node(b.value).name);
      CHECK(lives.is_claimed(a, b));
    }
  }
  CHECK(plan.live_bytes >= most_held(lives, g.size()));
  CHECK(plan.live_bytes <= plan.arena_bytes);
  CHECK(plan.arena_bytes <= plan.total_bytes);
}

TEST_CASE("memory plan: random graphs, before and after the passes") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const RandomGraph random = random_graph(seed);
    check_plan(random.graph);
    check_plan(run_passes(random.graph));
  }
}

const TensorType kLine{DType::kF32, {64}};

TEST_CASE("memory plan: live bytes of a chain without claims, by hand") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4, 16}});  // 256 bytes
  const Value a = ops::transpose(g, x, {1, 0}), b = ops::transpose(g, a, {1, 0});
  g.mark_output("y", ops::transpose(g, b, {1, 0}));
  // x stays to the end; with it live a and b, then b and y.
  CHECK(plan_memory(g).live_bytes == 3 * 256);
  CHECK(plan_memory(g).arena_bytes == 3 * 256);
  CHECK(plan_memory(g).total_bytes == 4 * 256);
}

TEST_CASE("memory plan: nodes that run at once share no byte") {
  Graph g;
  Value y = g.input("x", {DType::kF32, {4, 16}});  // node 0, 256 bytes
  for (int i = 0; i < 4; ++i) y = ops::transpose(g, y, {1, 0});
  g.mark_output("y", y);
  const auto live_bytes = [&](std::vector<NodeSpan> spans) {
    return plan_memory(g, {.at_once = spans}).live_bytes;
  };
  CHECK(live_bytes({}) == 3 * 256);
  // x, what node 1 gives to the span, and its two results.
  CHECK(live_bytes({{2, 3}}) == 4 * 256);
  CHECK(live_bytes({{1, 2}, {3, 4}}) == 4 * 256);
  CHECK(live_bytes({{1, 4}}) == 5 * 256);
}

TEST_CASE("memory plan: a chain of claims takes one buffer beside its input") {
  Graph g;
  Value y = g.input("x", kLine);
  for (int i = 0; i < 10; ++i) y = ops::exp(g, y);
  g.mark_output("y", y);
  const MemoryPlan plan = plan_memory(g);
  CHECK(plan.arena_bytes == 2 * kLine.bytes());
  CHECK(plan.live_bytes == plan.arena_bytes);
  CHECK(plan.in_place == 9);  // all but the first, which may not overwrite the input
  CHECK(plan.total_bytes == plan.arena_bytes);
}

TEST_CASE("memory plan: dead buffers are used again by ops that claim nothing") {
  Graph g;
  Value y = g.input("x", {DType::kF32, {8, 8}});
  for (int i = 0; i < 10; ++i) y = ops::matmul(g, y, y);
  g.mark_output("y", y);
  const MemoryPlan plan = plan_memory(g);
  CHECK(plan.in_place == 0);
  CHECK(plan.arena_bytes == 3 * 8 * 8 * 4);
}

TEST_CASE("memory plan: an operand that is read later, or twice, is not overwritten") {
  Graph g;
  const Value x = g.input("x", kLine);
  const Value a = ops::exp(g, x), b = ops::neg(g, a), c = ops::mul(g, b, b);
  g.mark_output("y", ops::add(g, a, c));
  const MemoryPlan plan = plan_memory(g);
  CHECK(plan.at(a).offset != plan.at(b).offset);
  CHECK(plan.at(b).offset != plan.at(c).offset);
}

TEST_CASE("memory plan: views lie on their source and keep it alive") {
  Graph g;
  const Value x = g.input("x", kLine);
  const Value a = ops::exp(g, x), view = ops::reshape(g, a, {8, 8});
  const Value b = ops::neg(g, a);
  g.mark_output("y", ops::add(g, view, ops::reshape(g, b, {8, 8})));
  const MemoryPlan plan = plan_memory(g);
  CHECK(plan.at(view).offset == plan.at(a).offset);
  CHECK(plan.at(b).offset != plan.at(a).offset);
}

TEST_CASE("memory plan: long parts lie in what was split, short ones beside it") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {3, 16}}), w = g.parameter("w", g.type(x), nullptr);
  const auto of_x = ops::split(g, x, 3), of_w = ops::split(g, w, 3);
  const auto again = ops::split(g, ops::reshape(g, of_x[1], {2, 8}), 2);
  const Value y = ops::exp(g, of_x[2]);
  for (const Value v : {of_w[2], again[1], y}) g.mark_output(fmt::format("y{}", v.node), v);
  const MemoryPlan plan = plan_memory(g);
  const std::int64_t start = plan.at(x).offset;
  for (int i = 0; i < 3; ++i) {
    CHECK(plan.at(of_x[std::size_t(i)]).offset == start + i * 64);
    CHECK(plan.at(of_w[std::size_t(i)]).kind == Location::kLeaf);
    CHECK(plan.at(of_w[std::size_t(i)]).offset == i * 64);
  }
  CHECK(plan.at(again[0]).offset != plan.at(of_x[1]).offset);  // 32 bytes: copied
  CHECK(plan.at(y).offset != plan.at(of_x[2]).offset);         // an input is never written
}

TEST_CASE("memory plan: a part is overwritten when nobody reads the whole any more") {
  for (const bool is_read_later : {false, true}) {
    Graph g;
    const Value x = ops::exp(g, g.input("x", {DType::kF32, {2, 16}}));
    const Value first = ops::split(g, x, 2)[0], y = ops::neg(g, first);
    g.mark_output("y", y);
    if (is_read_later) g.mark_output("z", ops::split(g, x, 2)[1]);
    const MemoryPlan plan = plan_memory(g);
    CHECK((plan.at(y).offset == plan.at(first).offset) == !is_read_later);
  }
}

TEST_CASE("memory plan: a value is not overwritten by an op that reads a part of it, too") {
  for (const std::size_t part : {0, 3}) {
    for (const bool part_first : {false, true}) {
      CAPTURE(part);
      FedGraph f;
      const Value a = ops::exp(f.g, f.input({4, 64})), b = ops::split(f.g, a, 4)[part];
      const Value y = part_first ? ops::sub(f.g, b, a) : ops::mul(f.g, a, b);
      f.g.mark_output("y", y);
      const MemoryPlan plan = plan_memory(f.g);
      CHECK(plan.at(b).offset == plan.at(a).offset + std::int64_t(part) * 64 * 8);
      CHECK(plan.at(y).offset != plan.at(a).offset);
      reference::ReferenceBackend backend;
      const Results results = run_graph(backend, f.g, f.feeds);
      const Tensor &got = results.at("y"), &x = f.feeds.at("x0");
      for (std::int64_t e = 0; e < 4 * 64; ++e) {
        const double whole = std::exp(x.at(e)),
                     of_part = std::exp(x.at(std::int64_t(part) * 64 + e % 64));
        CHECK(got.at(e) == doctest::Approx(part_first ? of_part - whole : whole * of_part));
      }
    }
  }
}

TEST_CASE("memory plan: leaves and constants have memory of their own, absent outputs none") {
  Graph g;
  const Value p = g.parameter("p", kLine, {}), c = g.constant(1.0);
  const Value grad = g.input("g", kLine);
  const Value next = ops::sgd_step(g, {p, grad, c, {}, {}}, {});
  g.mark_update(p, next);
  const MemoryPlan plan = plan_memory(g);
  CHECK(plan.at(p).kind == Location::kLeaf);
  CHECK(plan.at(c).kind == Location::kConstant);
  CHECK(plan.at(next.at(1)).kind == Location::kAbsent);
  CHECK(plan.at(next).kind == Location::kLeaf);
  CHECK(plan.at(next).leaf == p.node);
  CHECK(plan.copies.empty());
}

TEST_CASE("memory plan: an update is a copy when the old value is still needed") {
  Graph g;
  const Value p = g.parameter("p", kLine, {}), q = g.parameter("q", kLine, {});
  const Value next_p = ops::neg(g, p), next_q = ops::neg(g, q);
  g.mark_output("late", ops::exp(g, p));  // reads p after next_p is made
  g.mark_update(p, next_p);
  g.mark_update(q, next_q);
  const MemoryPlan plan = plan_memory(g);
  REQUIRE(plan.copies.size() == 1);
  CHECK(plan.copies[0].leaf == p);
  CHECK(plan.at(next_p).kind == Location::kArena);
  CHECK(plan.at(next_q).kind == Location::kLeaf);
}

TEST_CASE("memory plan: workspaces lie beside what is alive, and sizes follow the backend") {
  Graph g;
  const Value x = g.input("x", kLine);
  const Value a = ops::matmul(g, ops::reshape(g, x, {8, 8}), ops::reshape(g, x, {8, 8}));
  g.mark_output("y", a);
  std::vector<std::int64_t> workspaces(std::size_t(g.size()), 0);
  workspaces[std::size_t(a.node)] = 100;
  const MemoryPlan plan = plan_memory(g, {nullptr, workspaces});
  CHECK(plan.workspace_offsets[x.node] == -1);
  const std::int64_t workspace = plan.workspace_offsets[a.node];
  for (Value v : {x, a}) {
    const std::int64_t begin = plan.at(v).offset;
    CHECK((workspace + 100 <= begin || begin + kLine.bytes() <= workspace));
  }
  CHECK(plan.arena_bytes == 2 * kLine.bytes() + 128);
  const MemoryPlan wide = plan_memory(g, {[](DType) -> std::int64_t { return 8; }, {}});
  CHECK(wide.arena_bytes == 4 * kLine.bytes());
}

}  // namespace
}  // namespace keel::test
