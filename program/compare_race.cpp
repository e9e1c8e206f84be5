// keel compare --steps N: the same training on several backends.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "frontend/compare/verdicts/training_race.h"
#include "frontend/io/atomic_file.h"
#include "program/common.h"
#include "program/compare.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

// Steps that a table shows: 1, 2, 5, 10, 20, 50, ... and the last.
std::vector<std::int64_t> shown_steps(std::int64_t steps) {
  std::vector<std::int64_t> shown;
  for (std::int64_t decade = 1; decade <= steps; decade *= 10) {
    for (const std::int64_t s : {decade, 2 * decade, 5 * decade}) {
      if (s < steps) shown.push_back(s);
    }
  }
  shown.push_back(steps);
  return shown;
}

// The least and the largest distance of the twins after a step; "" without twins.
std::string twins_range(const compare::Race& race, std::size_t step) {
  double least = INFINITY, largest = 0;
  for (const compare::RaceCurve& curve : race.curves) {
    if (!curve.is_twin) continue;
    least = std::min(least, curve.distances[step]);
    largest = std::max(largest, curve.distances[step]);
  }
  return std::isinf(least) ? "" : fmt::format("{:.1e} to {:.1e}", least, largest);
}

std::string race_table(const compare::Race& race) {
  std::vector<std::vector<std::string>> rows{{"step", "loss on " + race.reference}};
  for (const compare::RaceCurve& curve : race.curves) {
    if (curve.is_twin) continue;
    rows[0].push_back("on " + curve.name);
    rows[0].push_back("weights off");
  }
  const bool has_twins = !twins_range(race, 0).empty();
  if (has_twins) rows[0].push_back("twins off");
  for (const std::int64_t step : shown_steps(std::ssize(race.reference_losses))) {
    const auto s = std::size_t(step - 1);
    std::vector<std::string>& row = rows.emplace_back();
    row = {fmt::format("{}", step), fmt::format("{:.8g}", race.reference_losses[s])};
    for (const compare::RaceCurve& curve : race.curves) {
      if (curve.is_twin) continue;
      row.push_back(fmt::format("{:.8g}", curve.losses[s]));
      row.push_back(fmt::format("{:.2e}", curve.distances[s]));
    }
    if (has_twins) row.push_back(twins_range(race, s));
  }
  return table_text(rows);
}

std::string parting_text(const compare::RaceCurve& curve, double parted) {
  return curve.parted < 0 ? fmt::format("losses stay within {:g}", parted)
                          : fmt::format("losses part by {:g} in step {}", parted, curve.parted + 1);
}

// One line on all twins; "" without any.
std::string twins_text(const compare::Race& race, double parted) {
  int twins = 0, apart = 0;
  const compare::RaceCurve* first = nullptr;  // that parts
  for (const compare::RaceCurve& curve : race.curves) {
    if (!curve.is_twin) continue;
    ++twins;
    if (curve.parted < 0) continue;
    ++apart;
    if (first == nullptr || curve.parted < first->parted) first = &curve;
  }
  if (twins == 0) return "";
  const std::string who = fmt::format("{} twins 1 ulp off beside {}", twins, race.curves[0].name);
  if (first == nullptr) return fmt::format("{}: losses stay within {:g}\n", who, parted);
  return fmt::format("{}: losses of {} part by {:g}, the first in step {}\n", who, apart, parted,
                     first->parted + 1);
}

std::string race_text(const compare::Race& race, double parted) {
  std::string text = race_table(race);
  for (const compare::RaceCurve& curve : race.curves) {
    if (curve.is_twin) continue;
    text += fmt::format("{} beside {}: {}; the distance grows by {:.4f} a step\n", curve.name,
                        curve.beside, parting_text(curve, parted), curve.growth);
  }
  text += twins_text(race, parted);
  for (const compare::StepVerdict& verdict : race.verdicts) text += verdict.text() + "\n";
  return text;
}

Json numbers(const std::vector<double>& values) {
  Json json = Json::array();
  for (double v : values) json.push_back(std::isfinite(v) ? Json(v) : Json(nullptr));
  return json;
}

Json race_json(const compare::Race& race) {
  Json curves = Json::array();
  for (const compare::RaceCurve& curve : race.curves) {
    curves.push_back({{"name", curve.name},
                      {"beside", curve.beside},
                      {"losses", numbers(curve.losses)},
                      {"distances", numbers(curve.distances)},
                      {"parted", curve.parted < 0 ? Json(nullptr) : Json(curve.parted + 1)},
                      {"growth", curve.growth}});
  }
  Json verdicts = Json::array();
  for (const compare::StepVerdict& v : race.verdicts) {
    verdicts.push_back({{"backend", v.backend},
                        {"agrees", v.is_decided() ? Json(!v.is_fault()) : Json(nullptr)},
                        {"steps", v.steps},
                        {"further", v.further},
                        {"needed", v.needed},
                        {"variable", v.variable},
                        {"text", v.text()}});
  }
  return {{"reference", race.reference},
          {"reference_losses", numbers(race.reference_losses)},
          {"curves", curves},
          {"verdicts", verdicts}};
}

}  // namespace

int run_compare_training(const CompareArgs& args) {
  check(args.faults.empty(), ErrorKind::kUsage,
        "--inject: expected no --steps, which follows whole programs and no single nodes");
  const ComparedBackends backends = compared_backends(args);
  CompareArgs as_built = args;  // programs run the passes themselves
  as_built.unfused = true;
  const ComparedSubjects subjects = compared_subjects(as_built, backends);
  auto* model = subjects.all.size() == 1
                    ? dynamic_cast<compare::ModelSubject*>(subjects.all[0].get())
                    : nullptr;
  check(model != nullptr, ErrorKind::kUsage, "--steps: expected a task, which can be trained");
  const compare::RaceOptions options{.steps = args.steps, .perturb = !args.perturb.empty()};
  const compare::Race race =
      compare::run_race(*backends.reference, backends.all(), *model, options);
  if (!args.svg.empty()) {
    io::write_file_atomically(
        args.svg, compare::race_picture(race, model->name() + ": how far weights are apart"));
  }
  if (args.run.json) {
    print_json(race_json(race));
  } else {
    print(race_text(race, options.parted));
  }
  const auto is_fault = [](const compare::StepVerdict& v) { return v.is_fault(); };
  return std::ranges::any_of(race.verdicts, is_fault) ? 1 : 0;
}

}  // namespace keel::cli
