#include "bench/norm_accuracy.h"

#include <algorithm>
#include <set>

#include "backends/reference/backend.h"
#include "bench/norm_errors.h"
#include "frontend/nn/norm.h"

namespace keel::bench {
namespace {

const nn::NormFacts& facts_of(const std::string& name) {
  const auto facts = nn::norm_facts();
  return *std::ranges::find(facts, name, &nn::NormFacts::name);
}

// One norm, as the command line names it, on the cases it can take.
class Subject {
 public:
  explicit Subject(std::string text)
      : text_(std::move(text)), plain_(nn::Norm::parse(text_)), facts_(facts_of(plain_.name())) {
    check(!plain_.is_none(), ErrorKind::kUsage, "bench accuracy: 'none' does nothing");
    const std::string heads = norm({}).option("heads");
    check(heads.empty() || heads == "0", ErrorKind::kUsage,
          "bench accuracy: {}: expected heads=0, got {}; groupscaling is measured by itself", text_,
          heads);
  }

  std::vector<NormLayout> layouts() const {
    if (plain_.is_batch_type()) {
      return {NormLayout::kColumns, NormLayout::kImages, NormLayout::kThumbnails};
    }
    if (plain_.name() == "instancenorm") return {NormLayout::kInstances, NormLayout::kSequences};
    return {NormLayout::kRows};
  }

  // The norm with the options that a case asks for.
  nn::Norm norm(const NormCase& c) const {
    std::string defaults = has("eps") ? fmt::format("eps={},", c.eps) : "";
    for (const auto& [name, value] : {std::pair{"gain", c.gain}, {"bias", c.bias}}) {
      if (may_have(name)) defaults += fmt::format("{}={},", name, value);
    }
    if (has("heads")) defaults += "heads=0,";
    if (defaults.ends_with(',')) defaults.pop_back();
    return nn::Norm::parse(text_, defaults);
  }

  // The case as this norm takes it: with whole rows of groups, and the gain and bias it has.
  NormCase adapted(NormCase c) const {
    const std::string groups = plain_.option("groups");
    if (!groups.empty()) attr_parse(groups, c.split);
    check(c.split >= 1, ErrorKind::kUsage, "norm {}: groups: expected 1 or more, got {}", text_,
          c.split);
    if (c.layout == NormLayout::kInstances) c.split = 3;
    c.groups += (c.split - c.groups % c.split) % c.split;
    const nn::Norm norm = this->norm(c);
    if (has("eps")) attr_parse(norm.option("eps"), c.eps);
    c.gain = has_single_gain() || norm.option("gain") == "true";
    c.bias = norm.option("bias") == "true";
    return c;
  }

  bool takes(const NormCase& c) const {
    return c.groups > 0 && !(c.n == 1 && plain_.option("unbiased") == "true");
  }

  NormBuild build(const NormCase& c) const {
    return [norm = norm(c)](Graph& g, const NormInputs& in, double) {
      nn::Net net{g};
      return norm(net, "norm", in.x);
    };
  }

  NormData data(const NormCase& c) const {
    NormData data = make_data(c);
    if (has_single_gain()) data.gain = Tensor::of<double>({1}, {data.gain->at(0)});
    // nu starts at 0, which would take its term out of dx.
    for (int i = 0; plain_.name() == "powernorm" && i < 2; ++i) {
      Tensor& ones = data.state.emplace_back(DType::kF64, c.parameter_shape());
      std::ranges::fill(ones.as<double>(), 1);
    }
    return data;
  }

 private:
  bool has(std::string_view option) const { return !plain_.option(option).empty(); }
  bool may_have(std::string_view parameter) const {
    return has(parameter) && facts_.parameters.find(parameter) != std::string::npos;
  }
  bool has_single_gain() const { return facts_.parameters == "gain"; }

  std::string text_;
  nn::Norm plain_;
  const nn::NormFacts& facts_;
};

// As a case's text begins.
std::string name_of(NormLayout layout) {
  const std::string text = NormCase{.layout = layout}.text();
  return text.substr(0, text.find(','));
}

void add(WorstError& worst, double error, const NormCase& c) {
  if (error < worst.error || (!worst.at.empty() && error == worst.error)) return;
  worst.error = error;
  worst.at = c.text();
}

// Calls use(c, data) for those of the cases that a norm takes, once for each.
template <class Use>
void each_case(const Subject& subject, const std::vector<NormCase>& cases, const Use& use) {
  std::set<std::string> seen;
  for (const NormCase& listed : cases) {
    const NormCase c = subject.adapted(listed);
    if (subject.takes(c) && seen.insert(c.text()).second) use(c, subject.data(c));
  }
}

std::vector<NormCase> all_cases(const Subject& subject, const CasesOf& cases_of) {
  std::vector<NormCase> cases;
  for (NormLayout layout : subject.layouts()) {
    const std::vector<NormCase> more = cases_of(layout);
    cases.insert(cases.end(), more.begin(), more.end());
  }
  return cases;
}

// 64-bit FNV-1a of the bytes of tensors.
std::uint64_t hash_of(const NormResult& result) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::vector<Tensor>* tensors : {&result.outputs, &result.gradients}) {
    for (const Tensor& t : *tensors) {
      for (std::int64_t i = 0; i < t.bytes(); ++i) {
        hash = (hash ^ std::to_integer<std::uint64_t>(t.data()[i])) * 0x100000001b3;
      }
    }
  }
  return hash;
}

NormAccuracy measure(Backend& backend, const Subject& subject, const std::vector<NormCase>& cases) {
  reference::ReferenceBackend reference;
  WorstError forward{"forward", compare::kForwardBound}, dx{"dx", compare::kBackwardBound},
      parameters{"parameters", compare::kBackwardBound};
  NormAccuracy result;
  each_case(subject, cases, [&](const NormCase& c, const NormData& data) {
    const NormResult got = run_norm(backend, subject.build(c), data),
                     expected = run_norm(reference, subject.build(c), data);
    const NormErrors errors = norm_errors(c, data, got, expected);
    add(forward, errors.forward, c);
    add(dx, errors.dx, c);
    if (c.gain || c.bias || !expected.more.empty()) add(parameters, errors.parameters, c);
    ++result.cases;
  });
  check(result.cases > 0, ErrorKind::kUsage, "bench accuracy: the norm takes none of the cases");
  result.worst = {forward, dx};
  if (!parameters.at.empty()) result.worst.push_back(parameters);
  return result;
}

}  // namespace

std::vector<std::string> accuracy_norms() {
  // Nothing to measure, batchnorm's own kernels under another name, and a norm of weights, which
  // tests/ops/norm/weight_norm_test.cpp judges.
  const std::set<std::string> skipped{"none", "noisybatchnorm", "recurrentbatchnorm",
                                      "sequencebatchnorm", "weightnorm"};
  std::vector<std::string> norms;
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    if (skipped.contains(facts.name)) continue;
    norms.push_back(facts.any_width());
    if (!nn::Norm::parse(facts.name).option("eps_outside").empty()) {
      norms.push_back(facts.any_width("eps_outside=true"));
    }
  }
  for (const char* more : {"groupnorm{groups=3}", "groupscaling{groups=3}",
                           "batchrenorm{r_max=3,d_max=0}", "powernorm{mode=paper}"}) {
    norms.push_back(more);
  }
  return norms;
}

NormAccuracy measure_accuracy(Backend& backend, const std::string& norm, const CasesOf& cases_of) {
  const Subject subject(norm);
  NormAccuracy result = measure(backend, subject, all_cases(subject, cases_of));
  result.norm = norm;
  return result;
}

NormAccuracy measure_accuracy(Backend& backend, const std::string& norm, std::string_view at) {
  const Subject subject(norm);
  const NormCase c = NormCase::parse(at);
  const std::vector<NormLayout> layouts = subject.layouts();
  std::vector<std::string> names;
  for (NormLayout layout : layouts) names.push_back(name_of(layout));
  check(std::ranges::count(layouts, c.layout) == 1, ErrorKind::kUsage,
        "bench accuracy: case: {}: expected the layout {}, got '{}'", norm,
        fmt::join(names, " or "), at);
  NormAccuracy result = measure(backend, subject, {c});
  result.norm = norm;
  return result;
}

std::vector<NormHash> norm_hashes(Backend& backend, const std::string& norm) {
  const Subject subject(norm);
  std::vector<NormHash> hashes;
  each_case(subject, all_cases(subject, hashed_cases),
            [&](const NormCase& c, const NormData& data) {
              const NormResult result = run_norm(backend, subject.build(c), data);
              hashes.push_back({fmt::format("{} {}", norm, c.text()), hash_of(result)});
            });
  return hashes;
}

}  // namespace keel::bench
