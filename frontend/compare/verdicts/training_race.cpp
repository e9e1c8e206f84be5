#include "frontend/compare/verdicts/training_race.h"

#include <cmath>

#include "frontend/io/plot.h"

namespace keel::compare {
namespace {

struct Entrant {
  std::unique_ptr<RaceRunner> runner;
  const RaceRunner* beside = nullptr;
  const std::vector<double>* losses_beside = nullptr;
};

void take_step(RaceCurve& curve, const Entrant& entrant, double loss, double parted) {
  const double other = entrant.losses_beside->back();
  curve.losses.push_back(loss);
  curve.distances.push_back(entrant.runner->distance(*entrant.beside));
  const bool differs = !(std::abs(loss - other) <= parted * std::abs(other));
  if (differs && curve.parted < 0) curve.parted = std::ssize(curve.losses) - 1;
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

Race run_race(Backend& reference, const std::vector<Backend*>& backends, ModelSubject& subject,
              const RaceOptions& options) {
  Race race{.reference = std::string(reference.name()),
            .reference_losses = {},
            .curves = {},
            .verdicts = {}};
  RaceRunner truth(reference, subject);
  std::vector<Entrant> entrants;
  std::vector<std::unique_ptr<StepTwins>> twins;
  race.curves.reserve(backends.size() + kTwins);
  for (Backend* backend : backends) {
    race.curves.push_back({.name = std::string(backend->name()), .beside = race.reference});
    entrants.push_back(
        {std::make_unique<RaceRunner>(*backend, subject), &truth, &race.reference_losses});
    if (options.perturb) twins.push_back(std::make_unique<StepTwins>(reference, *backend, subject));
  }
  for (int i = 0; options.perturb && i < kTwins; ++i) {
    const RaceCurve& first = race.curves[0];
    race.curves.push_back({.name = fmt::format("{} + 1 ulp, twin {}", first.name, i + 1),
                           .beside = first.name,
                           .is_twin = true});
    entrants.push_back({std::make_unique<RaceRunner>(*backends[0], subject),
                        entrants[0].runner.get(), &race.curves[0].losses});
  }
  for (std::int64_t s = 0; s < options.steps; ++s) {
    const SubjectStep step = subject.at(s);
    if (s == 0) {
      truth.begin(step);
      for (std::size_t i = 0; i < entrants.size(); ++i) {
        entrants[i].runner->begin(step);
        if (race.curves[i].is_twin) entrants[i].runner->perturb(std::uint32_t(i));
      }
    }
    race.reference_losses.push_back(truth.run(step));
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      RaceRunner& runner = *entrants[i].runner;
      const bool is_compared = i < twins.size();
      const TrainingState before = is_compared ? runner.state() : TrainingState();
      take_step(race.curves[i], entrants[i], runner.run(step), options.parted);
      if (is_compared) twins[i]->take(before, runner.state(), step);
    }
  }
  for (RaceCurve& curve : race.curves) curve.growth = growth_of(curve.distances);
  for (const auto& steps : twins) race.verdicts.push_back(steps->verdict());
  return race;
}

std::string race_picture(const Race& race, const std::string& title) {
  io::Plot plot{.title = "",
                .x_label = "step",
                .y_label = "distance of the weights",
                .log_y = true,
                .series = {},
                .whole_x = true,
                .caption = title,
                .about = title};
  std::size_t style = 0;
  for (const RaceCurve& curve : race.curves) {
    io::PlotSeries series{.name = curve.name + " beside " + curve.beside, .x = {}, .y = {}};
    // All twins look alike, behind the backends.
    series.style = curve.is_twin ? race.curves.size() : style++;
    for (std::size_t i = 0; i < curve.distances.size(); ++i) {
      series.x.push_back(double(i + 1));
      series.y.push_back(curve.distances[i]);
    }
    plot.series.push_back(std::move(series));
  }
  return io::plot_svg(plot);
}

}  // namespace keel::compare
