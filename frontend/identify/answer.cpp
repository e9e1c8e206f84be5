// The description of an answer.
#include <algorithm>
#include <set>

#include "frontend/identify/identify.h"
#include "frontend/nn/norm.h"

namespace keel::identify {
namespace {

struct Advice {
  const char *option, *data;
};
constexpr Advice kAdvice[] = {{"eps", "a row whose variance is near eps"},
                              {"eps_outside", "a row whose variance is near eps"},
                              {"unbiased", "fewer elements in a group"},
                              {"offset", "a gain that is not constant"},
                              {"groups", "data that differ between the groups"},
                              {"heads", "data that differ between the groups"},
                              {"evaluation", "states that differ from the batch's statistics"},
                              {"r_max", "states that are farther from the batch's statistics"},
                              {"d_max", "states that are farther from the batch's statistics"}};

// Norms that are the same function where the data have nothing that tells them apart.
constexpr std::pair<const char*, const char*> kTwins[] = {
    {"layernorm_simple",
     "layernorm without parameters; detachnorm, detachmean and detachvariance "
     "differ only in dx"},
    {"pn_v", "mabn and unifiednorm{keep=0} in their first steps, and powernorm in its warm-up"},
    {"batchnorm",
     "recurrentbatchnorm of one time step, sequencebatchnorm over all, and batchrenorm "
     "while its r_max is 1"},
    {"rmsnorm", "layerscaling where there is no gain"},
    {"scalenorm", "weightnorm, where rows are the weights of units"}};

// Every option that is not a number of the data, the offset among them.
std::string value_of(const Candidate& c, const std::string& option) {
  if (option == "offset") return c.form.adds_one ? "1" : "0";
  if (option == "evaluation") return c.form.evaluates ? "true" : "false";
  if (option == "channel_axis") return c.form.by_channel ? "1" : "last";
  const std::string value = c.form.option(option);
  return value.empty() ? nn::Norm::parse(c.form.text()).option(option) : value;
}

// Every option that was chosen for one of the candidates of a norm.
std::set<std::string> options_of(const std::vector<Candidate>& matches, const std::string& norm) {
  std::set<std::string> names;
  for (const Candidate& c : matches) {
    if (c.norm() != norm) continue;
    for (const Option& option : c.options()) names.insert(option.first);
  }
  return names;
}

// "" where all candidates of the norm agree.
std::string undecided_option(const std::vector<Candidate>& matches, const std::string& norm,
                             const std::string& option) {
  std::set<std::string> values;
  for (const Candidate& c : matches) {
    if (c.norm() == norm) values.insert(value_of(c, option));
  }
  if (values.size() < 2) return "";
  const std::string line = fmt::format("{} cannot be told ({})", option, fmt::join(values, ", "));
  const auto advice = std::ranges::find(kAdvice, option, &Advice::option);
  return advice == std::end(kAdvice) ? line : fmt::format("{}: {} would tell", line, advice->data);
}

}  // namespace

std::string Candidate::gradient() const {
  const auto fits = std::ranges::find_if(dx, [](const auto& d) { return d.second <= 1; });
  return fits == dx.end() ? "" : fits->first;
}

std::string Candidate::norm() const {
  const std::string way = gradient();
  if (form.by_step) return "recurrentbatchnorm";
  if (!form.norm.starts_with("layernorm")) return form.norm;
  if (way == "backward treats mean and deviation as constants") return "detachnorm";
  if (way == "backward treats the mean as a constant") return "detachmean";
  return way == "backward treats the deviation as a constant" ? "detachvariance" : form.norm;
}

std::vector<Option> Candidate::options() const {
  std::vector<Option> shown;
  for (const Option& option : form.options) {
    if (option.first != "gain" && option.first != "bias") shown.push_back(option);
  }
  if (form.adds_one) shown.emplace_back("offset", "1");
  if (form.evaluates) shown.emplace_back("evaluation", "true");
  if (form.by_channel) shown.emplace_back("channel_axis", "1");
  return shown;
}

std::string Candidate::text() const {
  Form named{.norm = norm(), .options = options()};
  return named.text();
}

std::vector<std::string> undecided(const std::vector<Candidate>& matches) {
  std::vector<std::string> lines;
  if (matches.empty()) return lines;
  std::vector<std::string> norms;
  for (const Candidate& c : matches) {
    if (std::ranges::find(norms, c.norm()) == norms.end()) norms.push_back(c.norm());
  }
  if (norms.size() > 1) {
    lines.push_back(fmt::format("cannot be told apart by these data: {}", fmt::join(norms, ", ")));
  }
  for (const std::string& option : options_of(matches, norms[0])) {
    std::string line = undecided_option(matches, norms[0], option);
    if (!line.empty()) lines.push_back(std::move(line));
  }
  if (norms[0] == "groupnorm" && matches[0].form.option("groups") == "1") {
    lines.push_back("the same as layernorm of a whole sample with a gain and a bias per channel");
  }
  for (const auto& [norm, others] : kTwins) {
    if (norms[0] == norm) lines.push_back(fmt::format("the same as {}", others));
  }
  return lines;
}

}  // namespace keel::identify
