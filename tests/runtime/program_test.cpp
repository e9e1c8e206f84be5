// Compiled programs: feeding, running, fetching, updates, the guard, profiles and diagnosis.
#include "src/runtime/program.h"

#include <doctest/doctest.h>

#include <cmath>

#include "backends/reference/backend.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

const TensorType kType{DType::kF32, {2}};

struct Machine {
  reference::ReferenceBackend backend;
  Variables variables{backend, 1};
};

TEST_CASE("program: inputs stay until they are fed again, outputs come in either type") {
  Machine m;
  Graph g;
  const Value x = g.input("x", kType);
  const Value third = ops::scale(g, x, 1.0 / 3);
  g.mark_output("y", third);
  g.mark_output("total", ops::sum(g, third));
  Program program(m.backend, m.variables, g);
  program.feed("x", f64({2}, {1, 2}));
  for (int i = 0; i < 3; ++i) {
    program.run();
    CHECK(program.fetch("y").dtype() == DType::kF32);
    CHECK(program.fetch("y").at(0) == double(float(1.0 / 3)));
    CHECK(program.fetch("y", true).at(0) == 1.0 / 3);
    CHECK(program.scalar("total") == doctest::Approx(1).epsilon(1e-15));
  }
  program.feed("x", Tensor::of<float>({2}, {3, 6}));
  program.run();
  CHECK(program.scalar("total") == doctest::Approx(3).epsilon(1e-15));
}

TEST_CASE("program: outputs may be an input, a parameter, a constant or a view of one") {
  for (bool optimize : {false, true}) {
    CAPTURE(optimize);
    Machine m;
    Graph g;
    const Value x = g.input("x", kType), p = g.parameter("p", kType, {});
    const Value c = g.constant(f64({2}, {5, 6}));
    g.mark_output("x", x);
    g.mark_output("p", p);
    g.mark_output("c", c);
    g.mark_output("view of x", ops::reshape(g, x, {1, 2}));
    g.mark_output("view of c", ops::reshape(g, c, {2, 1}));
    g.mark_output("scalar", g.constant(7.0));
    Program program(m.backend, m.variables, g, {.optimize = optimize, .guard = ""});
    m.variables.write("p", f64({2}, {3, 4}));
    program.feed("x", f64({2}, {1, 2}));
    program.run();
    check_close(program.fetch("x"), f64({2}, {1, 2}));
    check_close(program.fetch("p"), f64({2}, {3, 4}));
    check_close(program.fetch("c"), f64({2}, {5, 6}));
    check_close(program.fetch("view of x"), f64({1, 2}, {1, 2}));
    check_close(program.fetch("view of c"), f64({2, 1}, {5, 6}));
    CHECK(program.scalar("scalar") == 7);
  }
}

TEST_CASE("program: refusals of feed and fetch") {
  Machine m;
  Graph g;
  g.mark_output("y", ops::relu(g, g.input("x", kType)));
  Program program(m.backend, m.variables, g);
  check_refused([&] { program.feed("z", f64({2}, {1, 2})); }, "no input is called 'z'");
  check_refused([&] { program.feed("x", f64({3}, {1, 2, 3})); }, "input x: expected (2), got (3)");
  check_refused([&] { program.fetch("x"); }, "no output is called 'x'");
  check_refused([&] { program.scalar("z"); }, "no output is called 'z'");
  check_refused([&] { Program(m.backend, m.variables, g, {.optimize = true, .guard = "loss"}); },
                "no output is called 'loss'");
}

class Refusing : public reference::ReferenceBackend {
 public:
  Prepared prepare(const NodeContext& context) override {
    if (context.node.op->name == "relu") return refuse("no kernel today");
    return ReferenceBackend::prepare(context);
  }
};

TEST_CASE("program: a backend that refuses a node says which and why") {
  Refusing backend;
  Variables variables(backend, 1);
  Graph g;
  const auto scope = g.scope("fc1");
  g.mark_output("y", ops::relu(g, g.input("x", kType)));
  check_refused([&] { Program(backend, variables, g); },
                "backend reference refuses relu (node fc1/relu): no kernel today", "",
                ErrorKind::kBackendMissing);
}

TEST_CASE("program: updates are visible after the run, to every program of the same variables") {
  Machine m;
  Graph counting, reading;
  const Value s = counting.state("s", kType, {});
  counting.mark_output("before", ops::scale(counting, s, 1, 0.5));
  counting.mark_update(s, ops::scale(counting, s, 1, 1));
  reading.mark_output("doubled", ops::scale(reading, reading.state("s", kType, {}), 2));
  Program count(m.backend, m.variables, counting), read(m.backend, m.variables, reading);
  for (int i = 0; i < 3; ++i) {
    count.run();
    CHECK(count.fetch("before").at(0) == i + 0.5);
    CHECK(m.variables.read("s").at(1) == i + 1);
    read.run();
    CHECK(read.fetch("doubled").at(0) == 2 * (i + 1));
  }
}

TEST_CASE("program: two states that exchange their values do so at once") {
  Machine m;
  Graph g;
  const Value a = g.state("a", kType, {}), b = g.state("b", kType, {});
  g.mark_update(a, ops::neg(g, b));
  g.mark_update(b, ops::scale(g, a, 10));
  Program program(m.backend, m.variables, g);
  m.variables.write("a", f64({2}, {1, 2}));
  m.variables.write("b", f64({2}, {3, 4}));
  program.run();
  check_close(m.variables.read("a"), f64({2}, {-3, -4}));
  check_close(m.variables.read("b"), f64({2}, {10, 20}));
}

TEST_CASE("program: a state whose next value is a look at another gets what that one was") {
  Machine m;
  for (const bool is_first : {false, true}) {
    CAPTURE(is_first);
    Graph g;
    const Value a = g.state("a", kType, {}), b = g.state("b", kType, {});
    const Value seen = ops::reshape(g, ops::reshape(g, b, {1, 2}), {2});
    if (is_first) g.mark_update(a, seen);
    g.mark_update(b, ops::scale(g, a, 10));
    if (!is_first) g.mark_update(a, seen);
    Program program(m.backend, m.variables, g, {.optimize = false});
    m.variables.write("a", f64({2}, {1, 2}));
    m.variables.write("b", f64({2}, {3, 4}));
    program.run();
    check_close(m.variables.read("a"), f64({2}, {3, 4}));
    check_close(m.variables.read("b"), f64({2}, {10, 20}));
  }
}

TEST_CASE("program: two states that would see each other are refused") {
  Machine m;
  Graph g;
  const Value a = g.state("a", kType, {}), b = g.state("b", kType, {});
  const auto seen = [&](Value v) { return ops::reshape(g, ops::reshape(g, v, {1, 2}), {2}); };
  g.mark_update(a, seen(b));
  g.mark_update(b, seen(a));
  check_refused([&] { Program(m.backend, m.variables, g, {.optimize = false}); },
                "update of a: expected a value of its own, got a view of b, which is updated, too");
}

TEST_CASE("program: a guard that is not finite leaves updates by copy out") {
  Machine m;
  Graph g;
  const Value x = g.input("x", {DType::kF32, {}}), s = g.state("s", {DType::kF32, {}}, {});
  g.mark_output("guard", ops::log(g, x));
  // The old value is still read by an output, so the update must be a copy.
  g.mark_output("kept", s);
  g.mark_update(s, ops::add(g, s, x));
  Program program(m.backend, m.variables, g, {.optimize = true, .guard = "guard"});
  REQUIRE(program.plan().copies.size() == 1);
  const std::pair<double, double> runs[] = {{1, 1}, {0, 1}, {-1, 1}, {2, 3}};
  for (const auto& [fed, expected] : runs) {
    program.feed("x", f64({}, {fed}));
    program.run();
    CHECK(m.variables.read("s").at(0) == expected);
  }
}

TEST_CASE("program: find_non_finite names the first node, and its element") {
  Machine m;
  Graph g;
  const Value x = g.input("x", kType);
  const auto scope = g.scope("block");
  const Value y = ops::log(g, x);
  const Value z = ops::sum(g, ops::exp(g, ops::neg(g, y)));
  g.mark_output("z", z);
  Program program(m.backend, m.variables, g, {.optimize = false, .guard = ""});
  program.feed("x", f64({2}, {1, 2}));
  CHECK_FALSE(program.find_non_finite().has_value());
  program.feed("x", f64({2}, {1, 0}));
  const auto found = program.find_non_finite();
  REQUIRE(found.has_value());
  CHECK(found->node == "block/log");
  CHECK(found->what == "output 0 of log");
  CHECK(found->element == 1);
  CHECK(std::isinf(found->value));
  CHECK(found->inputs == "x (2) up to 1");
  program.feed("x", f64({2}, {std::nan(""), 0}));
  const auto leaf = program.find_non_finite();
  REQUIRE(leaf.has_value());
  CHECK(leaf->node == "x");
  CHECK(leaf->what == "output 0 of leaf");
  CHECK(leaf->inputs.empty());
}

TEST_CASE("program: looking for what is not finite changes no variable") {
  Machine m;
  Graph g;
  const Value x = g.input("x", kType), s = g.state("s", kType, {});
  g.mark_output("total", ops::sum(g, x));
  g.mark_update(s, ops::add(g, s, x));
  Program program(m.backend, m.variables, g);
  REQUIRE(program.plan().copies.empty());  // in place
  program.feed("x", f64({2}, {1, 2}));
  CHECK_FALSE(program.find_non_finite().has_value());
  CHECK(m.variables.read("s").at(1) == 0);
  program.run();
  CHECK(m.variables.read("s").at(1) == 2);
}

TEST_CASE("program: a profile lists each kernel once, with a time") {
  Machine m;
  Graph g;
  const Value x = g.input("x", kType), s = g.state("s", kType, {});
  g.mark_output("y", ops::sum(g, ops::reshape(g, ops::exp(g, x), {1, 2})));
  g.mark_output("kept", s);
  g.mark_update(s, ops::add(g, s, x));
  Program program(m.backend, m.variables, g);
  const std::vector<NodeTime> times = program.profile(3);
  CHECK(int(times.size()) == program.kernels());
  std::vector<std::string> names;
  for (const NodeTime& t : times) {
    names.push_back(t.name + " " + t.op);
    CHECK(t.nanoseconds > 0);
  }
  CHECK(names == std::vector<std::string>{"exp exp", "sum sum", "add add", "update copy"});
}

}  // namespace
}  // namespace keel::test
