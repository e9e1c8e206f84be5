// Theorem 4 of Shen et al. 2020 while a network trains: at every PowerNorm, how near its recursion
//     nu' = nu (1 - (1 - alpha) Gamma) + (1 - alpha) Lambda
// comes to losing its hold, (1 - alpha) Gamma > 1, and that for each feature, up to the step where
// that happens first,
//     |nu| <= N = max over its steps of |Lambda / Gamma|
#include <algorithm>
#include <cmath>

#include "src/ops/norm/power_norm.h"
#include "studies/lab.h"
#include "studies/list.h"
#include "studies/memory_training.h"
#include "studies/mini_jobs.h"
#include "studies/observed_norms.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

constexpr double kAlpha = 0.9;

struct PowerFeature {
  double bound = 0;         // N
  double contraction = 0;   // the largest (1 - alpha) Gamma
  double nu = 0, used = 0;  // the largest |nu| and |nu| / N
};

// One norm on its way.
struct Site {
  ObservedNorm site;
  std::vector<PowerFeature> features;
  std::vector<double> nu, gain;  // before the step
  int steps_above = 0;           // with (1 - alpha) Gamma > 1 in any feature
  double error = 0;              // of the recursion, relative to the largest N so far
};

std::vector<double> values(const Tensor& t) {
  const Tensor wide = t.to(DType::kF64);
  return {wide.as<double>().begin(), wide.as<double>().end()};
}

class PowerRecorder {
 public:
  PowerRecorder(Training& training, double rows) : training_(training), rows_(rows) {}
  StepObserver observer() {
    return {.mark = [this](Graph& g) { mark_all(g); },
            .look = [this](const TrainedStep& step) { look(*step.program); }};
  }
  const std::vector<Site>& sites() const { return sites_; }

 private:
  void mark_all(Graph& g) {
    for (const ObservedNorm& site : observed_norms(g, kPowerNorm)) {
      mark(g, site, "Gamma", {site.forward, 3});
      mark(g, site, "dgain", {site.backward, 1});
      const auto features = std::size_t(g.shape({site.forward, 3})[0]);
      sites_.push_back({site, std::vector<PowerFeature>(features), std::vector<double>(features, 0),
                        std::vector<double>(features, 1)});
    }
  }

  void look(const Program& program) {
    for (Site& s : sites_) {
      const std::vector<double> gamma = values(fetch(program, s.site, "Gamma"));
      const std::vector<double> dgain = values(fetch(program, s.site, "dgain"));
      const std::vector<double> nu = read(s, "nu");
      bool above = false;
      double error = 0, size = 0;
      for (std::size_t c = 0; c < nu.size(); ++c) {
        PowerFeature& f = s.features[c];
        const double lambda = s.gain[c] * dgain[c] / rows_, part = (1 - kAlpha) * gamma[c];
        take_largest(f.bound, std::abs(lambda / gamma[c]));
        take_largest(f.contraction, part);
        take_largest(f.nu, std::abs(nu[c]));
        const bool holds = f.contraction <= 1 && f.bound > 0;
        if (holds) take_largest(f.used, std::abs(nu[c]) / f.bound);
        take_largest(error, std::abs(nu[c] - s.nu[c] * (1 - part) - (1 - kAlpha) * lambda));
        take_largest(size, f.bound);
        above = above || part > 1;
      }
      take_largest(s.error, error / size);
      s.steps_above += above;
      s.nu = nu;
      s.gain = read(s, "gain");
    }
  }

  std::vector<double> read(const Site& s, const std::string& variable) {
    return values(training_.variables().read(s.site.name + "/" + variable, true));
  }

  Training& training_;
  double rows_;
  std::vector<Site> sites_;
};

struct PowerVariant {
  std::string label, mode;
  bool layer_scale;
};

std::vector<Site> train_with(const Options& options, const PowerVariant& variant) {
  const std::string norm = fmt::format(
      "powernorm{{heads=0,warmup=100,alpha_b={},mode={},eps=1e-5}}", kAlpha, variant.mode);
  const train::Job job = sentence_job(options, 0, {norm, variant.layer_scale});
  Training training(options.backend, job);
  PowerRecorder recorder(training, double(job.train().batch));
  training.run(recorder.observer());
  return recorder.sites();
}

double largest(const Site& s, double PowerFeature::*of) {
  double result = 0;
  for (const PowerFeature& f : s.features) take_largest(result, f.*of);
  return result;
}

void add_variant(const PowerVariant& variant, std::span<const Site> sites, Table& table,
                 Result& result) {
  RecursionNumbers worst;
  for (const Site& s : sites) {
    const double site_contraction = largest(s, &PowerFeature::contraction);
    const double site_used = largest(s, &PowerFeature::used);
    const double nu = largest(s, &PowerFeature::nu);
    take_largest(worst.contraction, site_contraction);
    take_largest(worst.used, site_used);
    take_largest(worst.error, s.error);
    table.rows.push_back({variant.label, s.site.name, fmt::format("{:.3f}", site_contraction),
                          fmt::format("{}", s.steps_above), fmt::format("{:.2e}", nu),
                          fmt::format("{:.4f}", site_used), fmt::format("{:.1e}", s.error)});
  }
  judge_trained_recursion(variant.label, variant.layer_scale, worst, result);
}

}  // namespace

Result theorem4_training(const Options& options) {
  Result result;
  Table table{"sentences of uneven scale, alpha = 0.9; ls: layerscaling in front of every norm",
              {{"norm", "site", "max (1 - alpha) Gamma", "steps above 1", "max |nu|",
                "max |nu| / N", "error of the recursion"}}};
  for (const PowerVariant& variant : {PowerVariant{"powernorm paper + ls", "paper", true},
                                      PowerVariant{"powernorm release + ls", "release", true},
                                      PowerVariant{"powernorm paper", "paper", false},
                                      PowerVariant{"powernorm release", "release", false}}) {
    add_variant(variant, train_with(options, variant), table, result);
  }
  result.tables.push_back(std::move(table));
  return result;
}

}  // namespace keel::study
