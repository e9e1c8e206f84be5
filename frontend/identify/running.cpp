// Which share of a batch its norm's running statistics took.
#include <algorithm>
#include <cmath>

#include "frontend/identify/identify.h"
#include "frontend/identify/trial.h"
#include "frontend/nn/norm.h"

namespace keel::identify {
namespace {

// How a norm's option says what its running statistics keep, or take.
struct Average {
  const char *norm, *option;
  bool keeps;  // the option is what is kept, not what is taken
};
constexpr Average kAverages[] = {
    {"batchnorm", "keep", true}, {"pn_v", "keep", true}, {"batchrenorm", "rate", false}};

// The share a of after = (1 - a) before + a batch, by least squares, to four digits; or none.
std::optional<double> share_of(const Tensor& before, const Tensor& after, const Tensor& batch) {
  double products = 0, squares = 0;
  for (std::int64_t i = 0; i < before.elements(); ++i) {
    const double change = batch.at(i) - before.at(i);
    products += change * (after.at(i) - before.at(i));
    squares += change * change;
  }
  if (squares == 0) return {};
  const std::string text = fmt::format("{:.4g}", products / squares);
  return std::stod(text);
}

// The result of one form of a running statistic.
struct Told {
  double distance = INFINITY, share = 0;
  std::string kind;
};

class Running {
 public:
  Running(Backend& reference, const Given& given, const Form& form, const Average& average)
      : reference_(reference), given_(given), form_(form), average_(average) {}

  std::string line(const std::string& state) const {
    Told best;
    for (const std::string& kind : kinds(state)) {
      const std::optional<Told> told = tried(state, kind);
      if (!told) return state + ": equal to the batch's statistic, so that nothing can be told";
      if (told->distance < best.distance || best.kind.empty()) best = *told;
    }
    const std::string kind = best.kind == "plain" ? "" : ", " + best.kind;
    if (!(best.distance <= 1)) {
      return fmt::format("{}: no running average of this batch; nearest takes {:g} of it{}", state,
                         best.share, kind);
    }
    return fmt::format("{}: takes {:g} of the batch and keeps {:g}{}", state, best.share,
                       1 - best.share, kind);
  }

 private:
  std::vector<std::string> kinds(const std::string& state) const {
    if (state == "running_var") return {"biased", "unbiased"};
    return {"plain"};
  }

  std::map<std::string, Judged> states_for(double share, const std::string& kind) const {
    Form form = form_;
    form.set(average_.option, fmt::format("{}", average_.keeps ? 1 - share : share));
    if (kind == "unbiased") form.set("running_unbiased", "true");
    return Trial(reference_, given_, form).states();
  }

  std::optional<Told> tried(const std::string& state, const std::string& kind) const {
    const Tensor &before = given_.before.at(state), &after = given_.after.at(state);
    // A state that takes all of the batch is the batch's statistic.
    const Judged whole = std::move(states_for(1, kind).at(state));
    const std::optional<double> share = share_of(before, after, whole.value);
    if (!share) return {};
    if (!(*share >= 0 && *share <= 1)) return Told{INFINITY, *share, kind};
    return Told{states_for(*share, kind).at(state).distance(after), *share, kind};
  }

  Backend& reference_;
  const Given& given_;
  const Form& form_;
  const Average& average_;
};

// Why nothing is told of a state's average; "": it is told.
std::string untold(const Trial& trial, const Given& given, const Form& form,
                   const std::string& state) {
  if (form.by_step) return state + ": how recurrentbatchnorm changes it is not checked";
  if (!trial.has_state(state)) return fmt::format("{}: {} has no such state", state, form.norm);
  if (!given.before.contains(state)) {
    return fmt::format("{0}: nothing can be told without before.{0}", state);
  }
  if (form.evaluates) return state + ": y is that of evaluation, which changes no state";
  if (std::ranges::find(kAverages, form.norm, &Average::norm) == std::end(kAverages)) {
    return fmt::format("{}: how {} changes it is not checked", state, form.norm);
  }
  return "";
}

}  // namespace

std::vector<std::string> running(Backend& reference, const Given& given, const Form& form) {
  std::vector<std::string> lines;
  const auto average = std::ranges::find(kAverages, form.norm, &Average::norm);
  const Trial trial(reference, given, form);
  for (const auto& [name, after] : given.after) {
    if (name == "step" || name == "t0.seen") continue;  // a counter is no statistic
    std::string line = untold(trial, given, form, name);
    if (line.empty()) line = Running(reference, given, form, *average).line(name);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace keel::identify
