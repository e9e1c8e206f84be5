#include "bench/table_step.h"

#include <limits>
#include <memory>

#include "frontend/optim/clip.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/embedding.h"
#include "src/ops/reduce.h"
#include "src/runtime/program.h"

namespace keel::bench {
namespace {

constexpr RowChoice kByWhole{.least_rows_per_id = std::numeric_limits<double>::infinity()};
constexpr RowChoice kByRows{.least_rows_per_id = 0};

// Ordinary numbers: zeros have a speed of their own.
void draw(Tensor& table, const Philox& random) {
  std::uint64_t element = 0;
  for (float& x : table.as<float>()) x = float(random.uniform(element++)) - 0.5f;
}

Graph step_of(const TableCase& c, const RowChoice& choice, optim::EmbeddingUpdates updates) {
  Graph g;
  const TensorType type{DType::kF32, {c.vocabulary, c.width}};
  const std::vector<Value> table{g.parameter("table", type, draw)};
  const Value y = ops::embedding(g, table[0], g.input("ids", {DType::kI32, {c.ids}}));
  const Value loss = ops::sum(g, ops::square(g, y));
  const ParameterGradients d = differentiate_by_rows(g, loss, table, choice);
  const optim::Clipped clipped =
      optim::clip_gradients(g, table, d.of, {optim::Clipping::kGlobal, 1});
  const optim::StepInputs inputs{g.input("lr", {DType::kF32, {}}), clipped.scale,
                                 g.input("step", {DType::kI32, {}})};
  optim::apply_optimizer(g, table, clipped.gradients, inputs,
                         {.kind = c.optimizer, .embedding_updates = updates});
  g.mark_output("norm", clipped.norm);
  return g;
}

// A program with a table of its own.
class TableProgram {
 public:
  TableProgram(Backend& backend, const TableCase& c, const Graph& graph)
      : variables_(backend, 1), program_(backend, variables_, graph, {.guard = "norm"}) {
    Tensor ids(DType::kI32, {c.ids});
    const Philox random(1, 2);
    for (std::uint64_t i = 0; i < std::uint64_t(c.ids); ++i) {
      ids.as<std::int32_t>()[i] = std::int32_t(random.below(i, std::uint32_t(c.vocabulary)));
    }
    program_.feed("ids", ids);
    program_.feed("lr", Tensor::scalar(1e-3f));
    program_.feed("step", Tensor::of<std::int32_t>({}, {10}));
  }
  void run() { program_.run(); }

 private:
  Variables variables_;
  Program program_;
};

}  // namespace

TableStep bench_table(Backend& backend, const TableCase& table, int rounds) {
  using Updates = optim::EmbeddingUpdates;
  TableProgram whole(backend, table, step_of(table, kByWhole, Updates::kExact));
  TableProgram rows(backend, table, step_of(table, kByRows, Updates::kExact));
  TableProgram lazy(backend, table, step_of(table, kByRows, Updates::kLazy));
  const std::function<void()> bodies[] = {[&] { whole.run(); }, [&] { rows.run(); },
                                          [&] { lazy.run(); }};
  const std::vector<Timing> times = timings_of(sample_in_turns(bodies, rounds, 1, &backend));
  return {times[0], times[1], times[2]};
}

}  // namespace keel::bench
