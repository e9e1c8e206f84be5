#include "frontend/compare/verdicts/race_runner.h"

#include <cmath>

#include "src/core/rng.h"

namespace keel::compare {
namespace {

Tensor one_ulp_off(const Tensor& value, const Philox& coin) {
  Tensor result = value.to(DType::kF32);
  std::uint64_t e = 0;
  for (float& v : result.as<float>()) {
    v = std::nextafter(v, coin.uniform(e++) < 0.5 ? -INFINITY : INFINITY);
  }
  return result;
}

bool is_parameter(const Variable& variable) {
  return variable.kind == NodeKind::kParameter && is_floating(variable.type.dtype);
}

}  // namespace

RaceRunner::RaceRunner(Backend& backend, ModelSubject& subject)
    : backend_(backend),
      subject_(subject),
      variables_(backend, subject.seed()),
      carries_(backend) {}

void RaceRunner::begin(const SubjectStep& first) {
  variables_.declare(*first.graph);
  for (const auto& [name, value] : subject_.first_values()) variables_.write(name, value);
}

void RaceRunner::perturb(std::uint32_t coin) {
  for (const auto& [name, variable] : variables_.all()) {
    if (!is_parameter(variable)) continue;
    variables_.write(name, one_ulp_off(variables_.read(name), Philox(coin, stream_of(name))));
  }
}

Program& RaceRunner::program_of(const SubjectStep& step) {
  std::unique_ptr<Program>& program = programs_[step.graph];
  if (!program) {
    program = std::make_unique<Program>(backend_, variables_, *step.graph,
                                        CompileOptions{.guard = "grad_norm", .carries = &carries_});
  }
  return *program;
}

double RaceRunner::run(const SubjectStep& step) {
  Program& program = program_of(step);
  for (const auto& [name, value] : step.feeds) program.feed(name, value);
  program.run();
  return program.scalar("loss");
}

TrainingState RaceRunner::state() const {
  TrainingState state{{}, carries_.read()};
  for (const auto& [name, variable] : variables_.all()) {
    if (!variable.is_cached) state.variables.emplace(name, variables_.read(name, true));
  }
  return state;
}

void RaceRunner::set(const TrainingState& state, const SubjectStep& next) {
  program_of(next);  // which makes variables and carries
  for (const auto& [name, value] : state.variables) variables_.write(name, value);
  carries_.write(state.carries);
}

double RaceRunner::distance(const RaceRunner& other) const {
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

}  // namespace keel::compare
