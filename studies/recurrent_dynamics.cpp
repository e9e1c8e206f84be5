// Ba, Kiros, Hinton 2016, section 3.1: in a standard recurrent network "there is a tendency for the
// average magnitude of the summed inputs to the recurrent units to either grow or shrink at every
// time-step, leading to exploding or vanishing gradients", and one with layer normalization is
// invariant to a scale of all summed inputs, "which results in much more stable hidden-to-hidden
// dynamics". Both run here for 500 steps of
//     h = tanh(h' U + x W)   and   h = tanh(layernorm(h' U + x W)), without eps (eq. 4)
// with U a scale times an orthogonal matrix, on normal inputs at every step or only at the first
// one. The gradient is that of a random weighting of the last state, by the state of every step.
#include "studies/recurrent_dynamics.h"

#include <algorithm>
#include <cmath>

#include "frontend/nn/recurrent.h"
#include "src/autodiff/gradient.h"
#include "src/runtime/program.h"
#include "studies/lab.h"
#include "studies/list.h"
#include "studies/sample.h"
#include "studies/summary.h"

namespace keel::study {
namespace {

constexpr std::int64_t kSequences = 4, kUnits = 32;
constexpr int kDynamicsSeeds = 5;
constexpr const char* kRecurrent = "rnn/recurrent/weight";
constexpr const char* kInput = "rnn/input/weight";

// Values of all steps, (steps, sequences, units) each.
struct Trajectory {
  Tensor states, gradients;
};

// The root of the mean square of a step's values. Squares of 1e-245 would be 0.
double size_at(const Tensor& values, std::int64_t t) {
  constexpr std::size_t kCount = kSequences * kUnits;
  const std::span<const double> of = values.as<double>().subspan(std::size_t(t) * kCount, kCount);
  double largest = 0, squares = 0;
  for (const double v : of) take_largest(largest, std::abs(v));
  if (largest == 0) return 0;
  for (const double v : of) squares += v / largest * (v / largest);
  return largest * std::sqrt(squares / double(kCount));
}

Graph unrolled(const std::string& norm) {
  Graph g;
  nn::Net net{.graph = g, .dtype = DType::kF64};
  const nn::CellOptions options{.norms = nn::cell_norms(nn::Norm::parse(norm), nn::NormOf::kSum),
                                .input_init = nn::lecun_normal};
  const nn::Rnn rnn(net, "rnn", kUnits, kUnits, options);
  Value h = rnn.start(kSequences);
  std::vector<Value> states;
  for (const Value projected : rnn.project(input(g, "x", {kDynamicsSteps, kSequences, kUnits}))) {
    h = rnn.step(projected, h, {std::int64_t(states.size()), {}});
    states.push_back(h);
  }
  const Value loss = dot(g, h, input(g, "weighting", {kSequences, kUnits}));
  const std::vector<Value> gradients = gradient(g, loss, states);
  g.mark_output("states", nn::stack(net, states));
  g.mark_output("gradients", nn::stack(net, gradients));
  return g;
}

// A network with weights that a seed draws, which are then scaled.
class RecurrentNetwork {
 public:
  RecurrentNetwork(Backend& backend, const Graph& graph, std::uint64_t seed)
      : variables_(backend, seed), program_(backend, variables_, graph) {
    program_.feed("weighting", normal({kSequences, kUnits}, seed, "weighting"));
    for (const char* name : {kRecurrent, kInput}) drawn_[name] = variables_.read(name, true);
    for (const DynamicsInput kind : {DynamicsInput::kPulse, DynamicsInput::kEveryStep}) {
      const bool is_pulse = kind == DynamicsInput::kPulse;
      inputs_.push_back(mapped(normal({kDynamicsSteps, kSequences, kUnits}, seed, "x"),
                               [is_pulse](double value, std::int64_t i) {
                                 return is_pulse && i >= kSequences * kUnits ? 0 : value;
                               }));
    }
  }

  Trajectory run(DynamicsInput input, double recurrent, double projected = 1) {
    variables_.write(kRecurrent, scaled(drawn_.at(kRecurrent), recurrent));
    variables_.write(kInput, scaled(drawn_.at(kInput), projected));
    program_.feed("x", inputs_[std::size_t(input)]);
    program_.run();
    return {program_.fetch("states"), program_.fetch("gradients")};
  }

 private:
  Variables variables_;
  Program program_;
  Tensors drawn_;
  std::vector<Tensor> inputs_;  // by DynamicsInput
};

// By how much a trajectory differs from another, relative to the size of each step.
double moved_from(const Trajectory& expected, const Trajectory& got) {
  double worst = 0;
  for (const auto part : {&Trajectory::states, &Trajectory::gradients}) {
    const Tensor difference = mapped(got.*part, [&](double value, std::int64_t i) {
      return value - (expected.*part).as<double>()[std::size_t(i)];
    });
    for (std::int64_t t = 0; t < kDynamicsSteps; ++t) {
      take_largest(worst, size_at(difference, t) / size_at(expected.*part, t));
    }
  }
  return worst;
}

// Sizes of states and of gradients by the step, of every seed.
struct Curves {
  std::vector<std::vector<double>> state, gradient;
};

void add_run(const Trajectory& run, ScaleDynamics& numbers, Curves& curves) {
  std::vector<double>&state = curves.state.emplace_back(),
  &gradient = curves.gradient.emplace_back();
  for (std::int64_t t = 0; t < kDynamicsSteps; ++t) {
    state.push_back(size_at(run.states, t));
    gradient.push_back(size_at(run.gradients, t));
  }
  numbers.state.push_back(std::log10(state.back() / state.front()));
  numbers.gradient.push_back(std::log10(gradient.front() / gradient.back()));
  const auto [low, high] = std::ranges::minmax(state);
  numbers.spread.push_back(high / low);
}

double median_at(const std::vector<std::vector<double>>& curves, std::int64_t t) {
  std::vector<double> values;
  for (const std::vector<double>& curve : curves) values.push_back(curve[std::size_t(t)]);
  return quantile(values, 0.5);
}

constexpr std::int64_t kShown[] = {1, 10, 100, kDynamicsSteps};  // steps of the table

struct DynamicsPage {
  Table table{"medians over seeds of the sizes of states and of gradients, by the step",
              {{"input", "norm", "scale"}}};
  io::Plot states{.title = "", .x_label = "step", .y_label = "size of the state", .series = {}},
      gradients{.title = "", .x_label = "step", .y_label = "size of the gradient", .series = {}};

  DynamicsPage() {
    for (const char* of : {"state", "gradient"}) {
      for (const std::int64_t step : kShown) {
        table.rows[0].push_back(fmt::format("{} {}", of, step));
      }
    }
    states.log_y = gradients.log_y = true;
  }
  void add(DynamicsInput input, const std::string& norm, double scale, const Curves& curves) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    cells = {std::string(choice_text(input)), norm, fmt::format("{}", scale)};
    for (const auto part : {&Curves::state, &Curves::gradient}) {
      for (const std::int64_t step : kShown) {
        cells.push_back(fmt::format("{:.2g}", median_at(curves.*part, step - 1)));
      }
      io::PlotSeries series{fmt::format("{}, {}, x {}", choice_text(input), norm, scale), {}, {}};
      for (std::int64_t t = 0; t < kDynamicsSteps; ++t) {
        series.x.push_back(double(t + 1));
        series.y.push_back(median_at(curves.*part, t));
      }
      (part == &Curves::state ? states : gradients).series.push_back(std::move(series));
    }
  }
};

using Networks = std::vector<RecurrentNetwork*>;  // of one norm, one a seed

std::vector<ScaleDynamics> measure(const Networks& networks, DynamicsInput input,
                                   const std::string& norm, DynamicsPage& page) {
  std::vector<ScaleDynamics> scales;
  for (const double scale : kDynamicsScales) {
    Curves curves;
    ScaleDynamics& numbers = scales.emplace_back();
    for (RecurrentNetwork* network : networks) {
      add_run(network->run(input, scale), numbers, curves);
    }
    page.add(input, norm, scale, curves);
  }
  return scales;
}

// The largest move of states and gradients for a scale of the weights, one a seed.
std::vector<double> rescaled(const Networks& networks, DynamicsInput input) {
  std::vector<double> moved;
  for (RecurrentNetwork* network : networks) {
    const Trajectory expected = network->run(input, 1);
    double& worst = moved.emplace_back(0);
    for (const double scale : kDynamicsScales) {
      const double of_inputs = input == DynamicsInput::kPulse ? 1 : scale;
      take_largest(worst, moved_from(expected, network->run(input, scale, of_inputs)));
    }
  }
  return moved;
}

}  // namespace

Result recurrent_dynamics(const Options& options) {
  const int seeds = options.seeds > 0 ? options.seeds : kDynamicsSeeds;
  const std::string norms[] = {"none", "layernorm{eps=0}"};
  std::vector<std::unique_ptr<RecurrentNetwork>> all;
  Networks networks[2];
  for (std::size_t n = 0; n < std::size(norms); ++n) {
    const Graph graph = unrolled(norms[n]);
    for (int i = 0; i < seeds; ++i) {
      all.push_back(std::make_unique<RecurrentNetwork>(options.backend, graph,
                                                       options.seed + std::uint64_t(i)));
      networks[n].push_back(all.back().get());
    }
  }
  Result result;
  result.seeds = std::size_t(seeds);
  DynamicsPage page;
  for (const DynamicsInput input : {DynamicsInput::kPulse, DynamicsInput::kEveryStep}) {
    Dynamics dynamics{input, measure(networks[0], input, "none", page),
                      measure(networks[1], input, "layernorm", page)};
    judge_dynamics(dynamics, result);
    judge_rescaled(input, rescaled(networks[1], input), result);
  }
  Sample sample;
  for (int i = 0; i < seeds; ++i) {
    sample.add("", fmt::format("{} sequences of normal inputs, {} units", kSequences, kUnits),
               std::int64_t(options.seed) + i);
  }
  page.states.title =
      sample.caption("size (root mean square) of the state; lines: medians over seeds");
  page.gradients.title = sample.caption(
      "size (root mean square) of the gradient by the state of each step; lines: medians over "
      "seeds");
  result.tables.push_back(std::move(page.table));
  result.drawings = {{"states", std::move(page.states)}, {"gradients", std::move(page.gradients)}};
  return result;
}

}  // namespace keel::study
