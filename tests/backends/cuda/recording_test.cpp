// A step runs as it is first, is then recorded and replayed; optimizer updates that stand in a row
// are launched together. Counted on the emulator.
#include <doctest/doctest.h>

#include <cstring>
#include <map>

#include "backends/cuda/device.h"
#include "frontend/data/batcher.h"
#include "frontend/train/feeder.h"
#include "frontend/train/step_graph.h"
#include "src/ops/optimizer_step.h"
#include "tests/backends/cuda/norm_step.h"
#include "tests/support/small_run.h"

namespace keel::cuda {
namespace {

using simt::counts;

__global__ void add_one(Global<float> y) { y[grid_thread()] += 1; }

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.data(), b.data(), std::size_t(a.bytes())) == 0;
}

TEST_CASE("cuda recording: a recorded kernel runs when it is replayed, and not before") {
  const auto backend = make_backend("cuda");
  const auto memory = backend->allocate(4);
  const Global<float> y(reinterpret_cast<float*>(memory->address()), 1);
  const Kernel kernel = [y] { launch(add_one, {1, 1}, y); };
  const auto value = [&] {
    float result = 0;
    memory->download(0, &result, 4);
    return result;
  };
  const Kernel recorded = cuda::record({&kernel, 1});
  CHECK(value() == 0);
  recorded();
  recorded();
  CHECK(value() == 2);
}

TEST_CASE("cuda recording: a kernel that allocates, copies from the host or waits is refused") {
  const auto backend = make_backend("cuda");
  const auto memory = backend->allocate(4);
  const auto readback = backend->allocate_readback(4);
  float value = 1;
  const Kernel kernels[] = {[&] { backend->allocate(4); }, [&] { memory->upload(0, &value, 4); },
                            [&] { memory->download(0, &value, 4); },
                            [&] { readback->receive(0, memory->address(), 4); },
                            [] { synchronize(); }};
  for (const Kernel& kernel : kernels) {
    CHECK_THROWS_AS(cuda::record({&kernel, 1}), Error);
    kernel();  // the refusal has ended the recording
  }
}

// A training step of a small mnist_mlp with its data.
struct Training {
  train::Config config;
  test::Rows rows{config};
  std::unique_ptr<Backend> backend = make_backend("cuda");
  Variables variables{*backend, 1};
  Program step{*backend, variables, train::build_step(config), {.guard = "grad_norm"}};
  data::Batcher batcher{rows.count(), {.batch = 32}};

  explicit Training(const test::Settings& settings) : config(test::small_config(settings)) {}

  void feed(std::int64_t number) {
    step.feed("lr", Tensor::scalar(1e-2f));
    step.feed("step", Tensor::scalar(std::int32_t(number)));
    rows.feed(step, batcher.rows(0, number));
  }
  std::map<std::string, Tensor> results() const {
    std::map<std::string, Tensor> all;
    for (const char* name : {"loss", "grad_norm"}) all[name] = step.fetch(name);
    for (const auto& [name, variable] : variables.all()) all[name] = variables.read(name);
    return all;
  }
};

TEST_CASE("cuda recording: a step's first run is not recorded, its third is a replay, same bits") {
  for (const char* optimizer : {"train.optimizer=adamw", "train.optimizer=sgd"}) {
    CAPTURE(std::string(optimizer));
    const test::Settings settings{optimizer, "train.weight_decay=0.1", "train.clip=global",
                                  "model.norm=batchnorm"};
    Training run(settings), single(settings);
    for (std::int64_t i = 0; i < 4; ++i) {
      CAPTURE(i);
      const std::int64_t before = counts.recordings;
      run.feed(i);
      run.step.run();
      CHECK(counts.recordings - before == (i == 1));
      single.feed(i);
      single.step.profile(1);  // runs kernel by kernel
      const auto got = run.results(), expected = single.results();
      for (const auto& [name, value] : expected) {
        CAPTURE(name);
        CHECK(same_bytes(got.at(name), value));
      }
    }
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
  const Launches launches = launches_of({70, true, [](Graph& g, Value p, Value lr, int) {
                                           return ops::sgd_step(g, {p, p, lr, {}, {}}, {});
                                         }});
  CHECK(launches.single == 70);
  CHECK(launches.joined == 3);  // 32, 32 and 6
  const Launches wide =
      launches_of({70, true, [](Graph& g, Value p, Value lr, int i) {
                     std::array<Value, 3> states;
                     for (std::size_t j = 0; j < 3; ++j) {
                       const std::string name = fmt::format("state{}.{}", i, j);
                       states[j] = g.state(name, g.type(p), nullptr);
                     }
                     const auto& [n, q, d] = states;
                     const Value next = ops::graves_step(g, {p, p, lr, {}, n, q, d}, {});
                     for (int j = 0; j < 3; ++j) {
                       g.mark_update(states[std::size_t(j)], next.at(j + 1));
                     }
                     return next;
                   }});
  CHECK(wide.single == 70);
  CHECK(wide.joined == 3);  // 25, 25 and 20: fewer nodes of nine tensors fit the parameters
}

TEST_CASE("cuda recording: updates that differ, or that wait for each other, stay apart") {
  const Launches different = launches_of({4, false, [](Graph& g, Value p, Value lr, int i) {
                                            const SgdAttrs attrs{.weight_decay = 0.1 * (i / 2)};
                                            return ops::sgd_step(g, {p, p, lr, {}, {}}, attrs);
                                          }});
  CHECK(different.single == 4);
  CHECK(different.joined == 2);
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
