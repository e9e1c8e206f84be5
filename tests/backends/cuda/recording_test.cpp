// When a step is recorded, what must not happen meanwhile, and which updates are launched together.
// Counted on the emulator; replay_test.cpp compares bits.
#include <doctest/doctest.h>

#include <map>

#include "backends/cuda/device.h"
#include "src/ops/elementwise.h"
#include "src/ops/optimizer_step.h"
#include "src/ops/reduce.h"
#include "tests/backends/cuda/steps.h"

namespace keel::cuda {
namespace {

using simt::counts;

__global__ void add_one(Global<float> y) { y[grid_thread()] += 1; }

TEST_CASE("cuda recording: a recorded kernel runs when it is replayed, and not before") {
  Device device({});
  std::byte* const memory = device.allocate(4);
  const Global<float> y(reinterpret_cast<float*>(memory), 1);
  const Kernel kernel = [y] { launch(add_one, {1, 1}, y); };
  const auto value = [&] {
    float result = 0;
    device.download(&result, memory, 4);
    return result;
  };
  const Kernel recorded = device.record({&kernel, 1}, in_a_row(1));
  CHECK(value() == 0);
  recorded();
  recorded();
  CHECK(value() == 2);
  device.release(memory);
}

TEST_CASE("cuda recording: a kernel that allocates, copies from the host or waits is refused") {
  const auto device = std::make_shared<Device>(Options{});
  std::byte* const memory = device->allocate(4);
  const auto readback = device->allocate_readback(4);
  float value = 1;
  const Kernel kernels[] = {
      [&] { device->release(device->allocate(4)); }, [&] { device->upload(memory, &value, 4); },
      [&] { device->download(&value, memory, 4); }, [&] { readback->receive(0, memory, 4); },
      [&] { device->synchronize(); }};
  for (const Kernel& kernel : kernels) {
    CHECK_THROWS_AS(device->record({&kernel, 1}, in_a_row(1)), Error);
    kernel();  // the refusal has ended the recording
  }
  device->release(memory);
}

TEST_CASE("cuda recording: a step's first run is not recorded, its second is, its third a replay") {
  Training run({});
  for (std::int64_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    const std::int64_t before = counts.recordings;
    run.feed(i);
    run.step.run();
    CHECK(counts.recordings - before == (i == 1));
  }
}

TEST_CASE("cuda recording: one launch updates all parameters, two sum their gradients' squares") {
  Training training({});
  training.feed(0);
  const std::int64_t start = counts.launches;
  training.step.profile(1);
  const std::int64_t single = counts.launches - start;
  const auto parameters = std::int64_t(8);  // two weights with gain and bias, the last with bias
  for (int i = 0; i < 3; ++i) {
    const std::int64_t before = counts.launches;
    training.step.run();
    CHECK(counts.launches - before == single - (parameters - 1) - 2 * (parameters - 1));
  }
}

// Parameters, each with one update node that `update` adds.
struct Updates {
  int parameters;
  bool are_uneven;  // of different sizes
  std::function<Value(Graph&, Value p, Value lr, int i)> update;
};

struct Launches {
  std::int64_t joined, single;
};

// The launches of a run, and of one kernel by kernel: all parameters are the same bits afterwards.
Launches launches_of(const Updates& updates) {
  Graph g;
  const Value lr = g.constant(Tensor::scalar(0.5f));
  for (int i = 0; i < updates.parameters; ++i) {
    const Value p = g.parameter(fmt::format("p{}", i),
                                {DType::kF32, {updates.are_uneven ? 5 + 4999 * (i % 3) : 9}},
                                [](Tensor& value, const Philox& random) {
                                  std::uint64_t e = 0;
                                  for (float& v : value.as<float>()) v = float(random.normal(e++));
                                });
    g.mark_update(p, updates.update(g, p, lr, i));
  }
  Launches result{};
  std::map<std::string, Tensor> values[2];
  for (const bool is_single : {false, true}) {
    const auto backend = make_backend("cuda");
    Variables variables(*backend, 1);
    Program program(*backend, variables, g);
    const std::int64_t before = counts.launches;
    is_single ? static_cast<void>(program.profile(1)) : program.run();
    (is_single ? result.single : result.joined) = counts.launches - before;
    for (const auto& [name, v] : variables.all()) values[is_single][name] = variables.read(name);
  }
  for (const auto& [name, value] : values[0]) CHECK(same_bytes(value, values[1].at(name)));
  return result;
}

TEST_CASE("cuda recording: updates of many parameters, in as few launches as parameters allow") {
  for (const int parameters : {32, 33, 256, 300}) {
    CAPTURE(parameters);
    const bool are_uneven = parameters < 64;
    const Launches launches =
        launches_of({parameters, are_uneven, [](Graph& g, Value p, Value lr, int) {
                       return ops::sgd_step(g, {p, p, lr, {}, {}}, {});
                     }});
    CHECK(launches.single == parameters);
    CHECK(launches.joined == (parameters > 256 ? 2 : 1));
  }
  const Launches wide =
      launches_of({220, false, [](Graph& g, Value p, Value lr, int i) {
                     std::array<Value, 3> states;
                     for (std::size_t j = 0; j < 3; ++j) {
                       const std::string name = fmt::format("state{}.{}", i, j);
                       states[j] = g.state(name, g.type(p), nullptr);
                     }
                     const auto& [n, q, d] = states;
                     const Value next = ops::rmsprop_step(g, {p, p, lr, {}, n, q, d}, {});
                     for (int j = 0; j < 3; ++j) {
                       g.mark_update(states[std::size_t(j)], next.at(j + 1));
                     }
                     return next;
                   }});
  CHECK(wide.single == 220);
  CHECK(wide.joined == 2);  // 213 and 7: fewer nodes of nine tensors fit the parameters
}

// Launches of three sums of squares, each followed by an add that the next sum waits for or not.
std::int64_t launches_of_sums(bool waits) {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {40}});
  Value last = x;
  for (int i = 0; i < 3; ++i) {
    const Value squares = ops::sum_squares(g, waits ? last : x);
    last = ops::add(g, x, squares);
    g.mark_output(fmt::format("squares{}", i), squares);  // so that all have memory of their own
    g.mark_output(fmt::format("y{}", i), last);
  }
  const auto backend = make_backend("cuda");
  Variables variables(*backend, 1);
  Program program(*backend, variables, g, {.optimize = false});
  program.feed("x", Tensor::of<float>({40}, std::vector<float>(40, 1.5f)));
  const std::int64_t before = counts.launches;
  program.run();
  double y = 1.5;
  for (int i = 0; i < 3; ++i) {
    y = 1.5 + 40 * (waits ? y * y : 2.25);
    CHECK(program.fetch(fmt::format("y{}", i)).at(39) == doctest::Approx(y).epsilon(1e-6));
  }
  return counts.launches - before;
}

TEST_CASE("cuda recording: sums join past what they do not touch, and no further") {
  CHECK(launches_of_sums(false) == 2 + 3);
  CHECK(launches_of_sums(true) == 3 * (2 + 1));
}

// tests/backends/guarded_copy_test.cpp checks the states.
TEST_CASE("cuda recording: one launch copies all states that are not changed in place") {
  constexpr int kStates = 40;
  Graph g;
  for (int i = 0; i < kStates; ++i) {
    const Value s = g.state(fmt::format("s{}", i), {DType::kF32, {1 + 37 * i}}, nullptr);
    const Value next = ops::scale(g, s, 0.5, i + 1);
    g.mark_update(s, next);
    g.mark_output(fmt::format("last{}", i), ops::sum(g, ops::mul(g, s, next)));
  }
  g.mark_output("guard", ops::scale(g, g.input("given", {DType::kF32, {}}), 2, 0));
  const auto backend = make_backend("cuda");
  Variables variables(*backend, 1);
  Program program(*backend, variables, g, {.guard = "guard"});
  const std::int64_t start = counts.launches;
  program.run();
  const std::int64_t joined = counts.launches - start;
  program.profile(1);
  CHECK(counts.launches - start - joined == joined + kStates - 1);
}

TEST_CASE("cuda recording: updates that differ, or that wait for each other, stay apart") {
  const Launches different = launches_of({4, false, [](Graph& g, Value p, Value lr, int i) {
                                            const SgdAttrs attrs{.weight_decay = 0.1 * (i / 2)};
                                            return ops::sgd_step(g, {p, p, lr, {}, {}}, attrs);
                                          }});
  CHECK(different.single == 4);
  CHECK(different.joined == 2);
  const Launches turns = launches_of({6, false, [](Graph& g, Value p, Value lr, int i) {
                                        const SgdAttrs attrs{.weight_decay = 0.1 * (i % 2)};
                                        return ops::sgd_step(g, {p, p, lr, {}, {}}, attrs);
                                      }});
  CHECK(turns.joined == 2);  // past those between
  Value former;
  const Launches chained = launches_of({3, false, [&](Graph& g, Value p, Value lr, int i) {
                                          const Value gradient = i == 0 ? p : former;
                                          former = ops::sgd_step(g, {p, gradient, lr, {}, {}}, {});
                                          return former;
                                        }});
  CHECK(chained.single == 3);
  CHECK(chained.joined == 3);
}

}  // namespace
}  // namespace keel::cuda
