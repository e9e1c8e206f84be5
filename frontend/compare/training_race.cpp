#include "frontend/compare/training_race.h"

#include <cmath>

#include "frontend/io/plot.h"
#include "src/runtime/program.h"

namespace keel::compare {
namespace {

// Moves every element to the next float32, up or down by a coin.
Tensor one_ulp_off(const Tensor& value, std::uint32_t stream) {
  Tensor result = value.to(DType::kF32);
  const Philox coin(1, stream);
  std::uint64_t e = 0;
  for (float& v : result.as<float>()) {
    v = std::nextafter(v, coin.uniform(e++) < 0.5 ? -INFINITY : INFINITY);
  }
  return result;
}

bool is_parameter(const Variable& variable) {
  return variable.kind == NodeKind::kParameter && is_floating(variable.type.dtype);
}

// A training on one backend.
class Runner {
 public:
  Runner(Backend& backend, ModelSubject& subject)
      : backend_(backend),
        subject_(subject),
        variables_(backend, subject.seed()),
        carries_(backend) {}

  void begin(const SubjectStep& first, bool perturbed) {
    variables_.declare(*first.graph);
    for (const auto& [name, value] : subject_.first_values()) variables_.write(name, value);
    if (!perturbed) return;
    for (const auto& [name, variable] : variables_.all()) {
      if (!is_parameter(variable)) continue;
      variables_.write(name, one_ulp_off(variables_.read(name), stream_of(name)));
    }
  }

  double run(const SubjectStep& step) {
    std::unique_ptr<Program>& program = programs_[step.graph];
    if (!program) {
      program =
          std::make_unique<Program>(backend_, variables_, *step.graph,
                                    CompileOptions{.guard = "grad_norm", .carries = &carries_});
    }
    for (const auto& [name, value] : step.feeds) program->feed(name, value);
    program->run();
    return program->scalar("loss");
  }

  double distance(const Runner& other) const {
    double squares = 0, sizes = 0;
    for (const auto& [name, variable] : variables_.all()) {
      if (!is_parameter(variable)) continue;
      const Tensor a = variables_.read(name, true), b = other.variables_.read(name, true);
      for (std::int64_t i = 0; i < a.elements(); ++i) {
        const double difference = a.at(i) - b.at(i);
        squares += difference * difference;
        sizes += b.at(i) * b.at(i);
      }
    }
    return std::sqrt(squares / sizes);
  }

 private:
  Backend& backend_;
  ModelSubject& subject_;
  Variables variables_;
  Carries carries_;
  std::map<const Graph*, std::unique_ptr<Program>> programs_;
};

struct Entrant {
  std::unique_ptr<Runner> runner;
  const Runner* beside = nullptr;
  const std::vector<double>* losses_beside = nullptr;
};

void take_step(RaceLane& lane, const Entrant& entrant, double loss, double parted) {
  const double other = entrant.losses_beside->back();
  lane.losses.push_back(loss);
  lane.distances.push_back(entrant.runner->distance(*entrant.beside));
  const bool differs = !(std::abs(loss - other) <= parted * std::abs(other));
  if (differs && lane.parted < 0) lane.parted = std::ssize(lane.losses) - 1;
}

}  // namespace

double growth_of(std::span<const double> y) {
  double n = 0, x_sum = 0, y_sum = 0, xx = 0, xy = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!(y[i] > 0) || !std::isfinite(y[i])) continue;
    const auto x = double(i);
    ++n;
    x_sum += x;
    y_sum += std::log(y[i]);
    xx += x * x;
    xy += x * std::log(y[i]);
  }
  return n < 2 ? 1 : std::exp((n * xy - x_sum * y_sum) / (n * xx - x_sum * x_sum));
}

Race run_race(Backend& judge, const std::vector<Backend*>& backends, ModelSubject& subject,
              const RaceOptions& options) {
  Race race{.judge = std::string(judge.name()), .judge_losses = {}, .lanes = {}};
  Runner truth(judge, subject);
  std::vector<Entrant> entrants;
  race.lanes.reserve(backends.size() + 1);
  for (Backend* backend : backends) {
    race.lanes.push_back({.name = std::string(backend->name()), .beside = race.judge});
    entrants.push_back({std::make_unique<Runner>(*backend, subject), &truth, &race.judge_losses});
  }
  if (options.perturb) {
    const RaceLane& first = race.lanes[0];
    race.lanes.push_back({.name = first.name + " + 1 ulp", .beside = first.name});
    entrants.push_back({std::make_unique<Runner>(*backends[0], subject), entrants[0].runner.get(),
                        &race.lanes[0].losses});
  }
  for (std::int64_t s = 0; s < options.steps; ++s) {
    const SubjectStep step = subject.at(s);
    if (s == 0) {
      truth.begin(step, false);
      for (std::size_t i = 0; i < entrants.size(); ++i) {
        entrants[i].runner->begin(step, i >= backends.size());
      }
    }
    race.judge_losses.push_back(truth.run(step));
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      take_step(race.lanes[i], entrants[i], entrants[i].runner->run(step), options.parted);
    }
  }
  for (RaceLane& lane : race.lanes) lane.growth = growth_of(lane.distances);
  return race;
}

std::string race_picture(const Race& race, const std::string& title) {
  io::Plot plot{.title = title,
                .x_label = "step",
                .y_label = "distance of the weights",
                .log_y = true,
                .series = {},
                .whole_x = true};
  for (const RaceLane& lane : race.lanes) {
    io::PlotSeries series{.name = lane.name + " beside " + lane.beside, .x = {}, .y = {}};
    for (std::size_t i = 0; i < lane.distances.size(); ++i) {
      series.x.push_back(double(i + 1));
      series.y.push_back(lane.distances[i]);
    }
    plot.series.push_back(std::move(series));
  }
  return io::plot_svg(plot);
}

}  // namespace keel::compare
