#include "frontend/identify/form.h"

#include <algorithm>

#include "frontend/nn/norm.h"

namespace keel::identify {
namespace {

// 1.1920929e-07, the spacing of float32 at 1, is what PyTorch's RMSNorm takes where none is given.
constexpr const char* kEps[] = {"1e-05", "1e-06",         "0",      "1e-12", "1e-08",
                                "1e-07", "1.1920929e-07", "0.0001", "0.001", "0.01"};

// A family of forms: a norm, whose options take all of these values.
struct Family {
  std::string norm;
  std::vector<std::string> switches = {};  // options that may be true
  std::vector<Option> fixed = {};
  bool evaluates = false, by_step = false, by_channel = false;
};

const std::vector<std::string> kKinds{"eps_outside", "unbiased"};

// Numbers of groups that divide the features, without single features.
std::vector<std::string> group_counts(std::int64_t features, std::int64_t least) {
  std::vector<std::string> counts;
  for (std::int64_t k = least; k < features; ++k) {
    if (features % k == 0) counts.push_back(fmt::format("{}", k));
  }
  return counts;
}

void add_rows(const Given& given, std::vector<Family>& families) {
  const std::string plain = given.has_parameters() ? "layernorm" : "layernorm_simple";
  families.push_back({plain, kKinds});
  const Shape& x = given.x.shape();
  if (x.rank() == 4 && x[2] * x[3] > 1) {
    families.push_back({plain, kKinds, {{"per_pixel", "true"}}});
  }
  families.push_back({"rmsnorm"});
  if (given.bias) return;
  families.push_back({"scalenorm"});
  if (given.gain) families.push_back({"weightnorm"});
  if (!given.gain) families.push_back({"adanorm", kKinds});
}

// The norm that has all of the further parameters that were given.
void add_further(const Given& given, std::vector<Family>& families) {
  if (given.more.contains("alpha")) {
    families.push_back({given.more.contains("shift") ? "derf" : "dyt"});
  } else if (given.more.contains("a") && given.more.contains("b")) {
    families.push_back({"seednorm"});
  }
}

void add_columns(const Given& given, std::vector<Family>& families) {
  families.push_back({"batchnorm", {"unbiased"}});
  families.push_back({"pn_v"});
  if (given.x.shape().rank() == 3) families.push_back({"batchnorm", {}, {}, false, true});
  const auto& before = given.before;
  if (before.contains("running_mean") && before.contains("running_var")) {
    families.push_back({"batchnorm", {}, {}, true});
  }
  if (before.contains("running_mean") && before.contains("running_std")) {
    for (const auto& [r, d] : {std::pair{"1", "0"}, {"3", "5"}, {"1e+30", "1e+30"}}) {
      families.push_back({"batchrenorm", {}, {{"r_max", r}, {"d_max", d}}});
    }
  }
  if (before.contains("psi2")) {
    families.push_back({"powernorm", {}, {{"mode", "paper"}, {"heads", "0"}}});
    families.push_back({"powernorm", {}, {{"mode", "release"}, {"heads", "0"}}});
    families.push_back({"powernorm", {}, {{"mode", "paper"}}});
    families.push_back({"powernorm"});
    families.push_back({"pn_v", {}, {}, true});
  }
  if (const auto ring = before.find("x2"); ring != before.end()) {
    const Shape& shape = ring->second.shape();
    families.push_back({"mabn", {}, {{"m", fmt::format("{}", shape.rank() > 0 ? shape[0] : 1)}}});
  }
}

// One group of all channels is layernorm, but where each channel of images has a gain of its own.
void add_groups(const Given& given, std::vector<Family>& families) {
  const Shape& x = given.x.shape();
  const bool is_image = x.rank() == 4;
  const std::int64_t features = is_image ? x[1] : x.back();
  const bool takes_one = is_image && given.has_parameters() && x[2] * x[3] > 1;
  if (x.rank() > 2) families.push_back({"instancenorm"});
  for (const std::string& k : group_counts(features, takes_one ? 1 : 2)) {
    families.push_back({"groupnorm", kKinds, {{"groups", k}}});
    if (!given.has_parameters()) families.push_back({"groupscaling", {}, {{"groups", k}}});
  }
}

// Norms of (samples, channels, steps). Without parameters an instance norm of these is a norm of
// rows.
void add_channels(const Given& given, std::vector<Family>& families) {
  const Shape& x = given.x.shape();
  if (x.rank() != 3 || !given.has_parameters_of(x[1])) return;
  const auto add = [&](Family family) {
    family.by_channel = true;
    families.push_back(std::move(family));
  };
  for (const std::string& k : group_counts(x[1], 1)) add({"groupnorm", kKinds, {{"groups", k}}});
  if (given.has_parameters()) add({"instancenorm"});
  add({"batchnorm", {"unbiased"}});
  const auto& before = given.before;
  if (before.contains("running_mean") && before.contains("running_var")) {
    add({"batchnorm", {}, {}, true});
  }
}

bool has_option(const std::string& norm, const std::string& option) {
  return !nn::Norm::parse(norm).option(option).empty();
}

// Gain and bias that were given are taken as parameters, where the norm can be told to have them.
Form form_of(const Family& family, const Given& given) {
  Form form{.norm = family.norm, .options = family.fixed};
  form.evaluates = family.evaluates;
  form.by_step = family.by_step;
  form.by_channel = family.by_channel;
  if (given.gain && has_option(family.norm, "gain")) form.set("gain", "true");
  if (given.bias && has_option(family.norm, "bias")) form.set("bias", "true");
  return form;
}

void add_forms(const Family& family, const Given& given, std::vector<Form>& forms) {
  const bool has_eps = has_option(family.norm, "eps");
  for (const char* eps : kEps) {
    for (unsigned chosen = 0; chosen < 1U << family.switches.size(); ++chosen) {
      for (const bool adds_one : {false, true}) {
        Form form = form_of(family, given);
        form.adds_one = adds_one;
        if (has_eps) form.set("eps", eps);
        for (std::size_t i = 0; i < family.switches.size(); ++i) {
          if (chosen >> i & 1U) form.set(family.switches[i], "true");
        }
        const bool is_idle = form.option("eps_outside") == "true" && std::string(eps) == "0";
        if ((!adds_one || given.gain) && !is_idle) forms.push_back(std::move(form));
      }
    }
    if (!has_eps) return;
  }
}

}  // namespace

std::string Form::text() const {
  std::vector<std::string> pairs;
  for (const auto& [name, value] : options) pairs.push_back(name + "=" + value);
  return pairs.empty() ? norm : fmt::format("{}{{{}}}", norm, fmt::join(pairs, ","));
}

std::string Form::option(const std::string& name) const {
  const auto found = std::ranges::find(options, name, &Option::first);
  return found == options.end() ? "" : found->second;
}

void Form::set(const std::string& name, std::string value) {
  options.emplace_back(name, std::move(value));
}

namespace {

// The same numbers in another shape and order of elements.
using Rearranged = Tensor (*)(const Tensor& x);

Tensor pixels_as_rows(const Tensor& x) {
  const Shape& s = x.shape();
  const std::int64_t area = s[2] * s[3];
  Tensor result(DType::kF64, {s[0] * area, s[1]});
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const std::int64_t pixel = i / (area * s[1]) * area + i % area, channel = i / area % s[1];
    result.as<double>()[std::size_t(pixel * s[1] + channel)] = x.at(i);
  }
  return result;
}

Tensor steps_as_columns(const Tensor& x) {
  const Shape& s = x.shape();
  return Tensor::of<double>({s[0], s[1], s[2], 1}, x.as<double>());
}

Given rearranged(const Given& given, Rearranged change) {
  const auto copy = [](const std::optional<Tensor>& t) {
    return t ? std::optional(t->clone()) : std::nullopt;
  };
  const auto changed = [&](const std::optional<Tensor>& t) {
    return t ? std::optional(change(*t)) : std::nullopt;
  };
  Given result;
  result.x = change(given.x), result.y = change(given.y);
  result.dy = changed(given.dy), result.dx = changed(given.dx);
  result.gain = copy(given.gain), result.bias = copy(given.bias), result.dgain = copy(given.dgain);
  for (const auto& [name, state] : given.before) result.before[name] = state.clone();
  for (const auto& [name, state] : given.after) result.after[name] = state.clone();
  return result;
}

}  // namespace

Views::Views(const Given& given) : own_(given) {
  if (given.x.shape().rank() == 4) pixels_ = rearranged(given, pixels_as_rows);
  if (given.x.shape().rank() == 3) columns_ = rearranged(given, steps_as_columns);
}

const Given& Views::of(const Form& form) const {
  if (form.by_channel) return *columns_;
  return form.option("per_pixel") == "true" ? *pixels_ : own_;
}

std::vector<Form> forms_for(const Given& given) {
  std::vector<Family> families;
  add_further(given, families);
  if (given.more.empty()) {
    add_rows(given, families);
    add_columns(given, families);
    add_groups(given, families);
    add_channels(given, families);
    if (!given.has_parameters()) families.push_back({"none"});
  }
  std::vector<Form> forms;
  for (const Family& family : families) add_forms(family, given, forms);
  return forms;
}

}  // namespace keel::identify
