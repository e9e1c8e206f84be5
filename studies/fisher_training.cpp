// Implicit learning-rate decay while a network trains (Ba, Kiros, Hinton 2016, section 5.2): where
// a norm makes the loss blind to the length of a unit's weights w_i, the gradient is orthogonal to
// w_i. A step of gradient descent then adds up lengths, |w_i'|^2 = |w_i|^2 + |step|^2: weights
// never get shorter, and steps of one length turn them less and less. BatchNorm and WeightNorm do
// this for every unit, LayerNorm for the whole matrix of a layer. eps = 0.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "studies/lab.h"
#include "studies/list.h"
#include "studies/memory_training.h"
#include "studies/mini_jobs.h"
#include "studies/mlp_network.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

constexpr int kStepsOfEpoch = 47, kEpochs = 5;  // 6,000 rows in batches of 128
constexpr std::string_view kRecipe = R"(
[train]
batch = 128
optimizer = "sgd"
lr = 0.1
)";

struct Variant {
  std::string norm;
  BlindTo blind_to;
};

// The weights of one layer, unit by unit: columns, and the whole matrix last.
using Units = std::vector<std::vector<double>>;

Units units_of(const Tensor& stored) {
  const Tensor w = stored.to(DType::kF64);
  Units units;
  for (std::int64_t c = 0; c < w.shape()[1]; ++c) units.push_back(column(w, c));
  units.emplace_back(w.as<double>().begin(), w.as<double>().end());
  return units;
}

// The movement of one layer's units, and of its whole matrix, in one epoch.
struct Epoch : LengthNumbers {
  double mean_length = 0, mean_angle = 0;  // at the end; from the beginning, in degrees
};

class Tracked {
 public:
  explicit Tracked(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  const std::vector<Epoch>& epochs() const { return epochs_; }

  void start(const Variables& variables) { last_ = first_ = units_of(variables.read(name_, true)); }

  void step(const Program& program, const Variables& variables) {
    const Units dw = units_of(program.fetch("gradient/" + name_, true));
    Units next = units_of(variables.read(name_, true));
    for (std::size_t i = 0; i < dw.size(); ++i) {
      const bool whole = i + 1 == dw.size();
      take_largest(whole ? now_.cosine : now_.unit_cosine, std::abs(cosine(last_[i], dw[i])));
      take_largest(whole ? now_.loss : now_.unit_loss, 1 - length(next[i]) / length(last_[i]));
    }
    last_ = std::move(next);
  }

  void end_epoch() {
    const double n = double(last_.size() - 1);
    for (std::size_t i = 0; i + 1 < last_.size(); ++i) {
      const double turned = std::acos(std::min(1.0, cosine(first_[i], last_[i])));
      now_.mean_length += length(last_[i]) / n;
      now_.mean_angle += turned * 180 / std::numbers::pi / n;
    }
    epochs_.push_back(std::exchange(now_, {}));
    first_ = last_;
  }

 private:
  std::string name_;
  Units first_, last_;  // at the beginning of the epoch, before the step
  std::vector<Epoch> epochs_;
  Epoch now_;
};

std::vector<Tracked> train_with(const Options& options, const std::string& norm) {
  const int steps = options.steps > 0 ? options.steps : kEpochs * kStepsOfEpoch;
  const train::Job job = mini_job(std::make_unique<Mlp>(), kRecipe, options.seed,
                                  {{"model.norm", norm}, {"model.order", "drawn"}}, steps);
  Training training(options.backend, job);
  std::vector<Tracked> layers{Tracked("fc1/weight"), Tracked("fc2/weight")};
  for (Tracked& layer : layers) layer.start(training.variables());
  const auto look = [&](const TrainedStep& done) {
    const std::int64_t step = done.step + 1;
    for (Tracked& layer : layers) {
      layer.step(*done.program, training.variables());
      if (step % kStepsOfEpoch == 0 || step == steps) layer.end_epoch();
    }
  };
  training.run({.mark = [](Graph&) {}, .gradients = {"fc1/weight", "fc2/weight"}, .look = look});
  return layers;
}

void add_rows(const std::string& norm, const Tracked& layer, Table& table) {
  for (std::size_t i = 0; i < layer.epochs().size(); ++i) {
    const Epoch& e = layer.epochs()[i];
    table.rows.push_back({norm, layer.name(), fmt::format("{}", i + 1),
                          fmt::format("{:.4f}", e.mean_length), fmt::format("{:.3f}", e.mean_angle),
                          fmt::format("{:.1e}", e.unit_cosine), fmt::format("{:.1e}", e.cosine),
                          fmt::format("{:.1e}", e.unit_loss), fmt::format("{:.1e}", e.loss)});
  }
}

void add_checks(const Variant& variant, std::span<const Tracked> layers, Result& result) {
  LengthNumbers worst;
  for (const Tracked& layer : layers) {
    for (const Epoch& e : layer.epochs()) {
      take_largest(worst.unit_cosine, e.unit_cosine);
      take_largest(worst.cosine, e.cosine);
      take_largest(worst.unit_loss, e.unit_loss);
      take_largest(worst.loss, e.loss);
    }
  }
  judge_lengths(variant.norm, variant.blind_to, worst, result);
}

}  // namespace

Result fisher_training(const Options& options) {
  Result result;
  Table table{
      "gradient descent at rate 0.1; the largest |cos| and the largest loss of length in a "
      "step are of a unit's weights and of the layer's",
      {{"norm", "weights", "epoch", "mean |w_i|", "turned, degrees", "|cos|, unit", "layer",
        "lost, unit", "layer"}}};
  for (const Variant& variant :
       {Variant{"none", BlindTo::kNone}, Variant{"batchnorm{eps=0}", BlindTo::kColumn},
        Variant{"weightnorm", BlindTo::kColumn}, Variant{"layernorm{eps=0}", BlindTo::kMatrix}}) {
    const std::vector<Tracked> layers = train_with(options, variant.norm);
    for (const Tracked& layer : layers) add_rows(variant.norm, layer, table);
    add_checks(variant, layers, result);
  }
  result.tables.push_back(std::move(table));
  return result;
}

}  // namespace keel::study
