// The verdicts of the studies: which numbers make a claim hold. A study computes the numbers and
// passes them on; claims, bounds and their directions are only here, so that tests can try them on
// synthetic numbers.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "studies/study.h"
#include "studies/theorem1_rows.h"

namespace keel::study {

using SeedValues = std::vector<double>;  // one a seed
using ValuesByNorm = std::map<std::string, SeedValues>;

// fisher: of a generalized linear model. Errors are relative to the largest number of a block.
struct DoublingNumbers {
  double formula = 0;                    // error of the derivatives as printed
  double trace = 0;                      // tr(F_ww), all rows of W doubled / before
  double own = 0, cross = 0, other = 0;  // errors of F's blocks, w_1 doubled
};
void judge_doubling(const std::string& norm, const DoublingNumbers& of, Result& result);
// The factor by which the metric of the gains grows when the data grow by 10.
double gain_factor(const std::string& norm);
struct GainNumbers {
  double data = 0, weights = 0;  // errors of the metric by the gains, data or weights x 10
};
void judge_gains(const std::string& norm, const GainNumbers& of, Result& result);
void judge_moved_rows(double error, Result& result);  // of none, less the metric of weightnorm
struct PrintedGainNumbers {
  double same_diagonal = 0, same_rest = 0, own_diagonal = 0;
};
void judge_printed_gains(const PrintedGainNumbers& of, Result& result);
// The relative error of KL as delta^T F delta / 2, for a delta of each of these sizes.
inline constexpr double kMoveSizes[] = {1e-4, 1e-5, 1e-6};
void judge_divergences(const std::string& norm, std::span<const double> errors, Result& result);
// A step of gradient descent from s W, for s of kStepScales.
inline constexpr double kStepScales[] = {0.5, 1, 2, 4};
// The angle that batchnorm is specified to turn by at scale 1; the size of the targets sets it.
inline constexpr double kAngleAtOne = 2.648;  // degrees
struct StepNumbers {
  double angle, gradient;  // radians; the length of the gradient
  double row_cosine = 0;   // the largest |cos| between a row of W and its gradient
  double cosine = 0;       // between W and its gradient
};
void judge_steps(const std::string& norm, std::span<const StepNumbers> steps, Result& result);

// invariance: how far outputs move under changes that a norm should see, and under others that it
// should not see.
struct Moved {
  bool is_invariant = false;
  double by = 0;
};
void judge_invariance(const std::string& norm, std::span<const Moved> moves, Result& result);
void judge_flip(const std::string& norm, double error, Result& result);
void judge_linear(double error, double factor, Result& result);
void judge_evaluation(const std::string& norm, const std::string& training, double error,
                      Result& result);
// The error of y = a where gain and bias undo the norm, or would for a norm of columns.
void judge_restoring(const std::string& norm, bool restores, double error, Result& result);

// lemma2: |dx|^2 s^2 / gain^2 of a feature as it is and as claimed, |dy|^2, and gain / s.
struct FeatureGradient {
  double squared, claimed, size, gain_over_s;

  double error() const;  // of the claim, relative to |dy|^2
  double ratio() const;  // |dx| / |dy|
};
struct FeatureWorst {
  double error = 0, shrunk = 0, grown = 0;  // the largest ratio where gain <= s, and elsewhere
};
FeatureWorst worst_of(std::span<const FeatureGradient> features);
void judge_features(const std::string& norm, double eps, const FeatureWorst& worst, Result& result);

// theorem1 and theorem1-training: the worst of all rows.
struct RowWorst {
  double mean = 0, variance = 0, ratio = 0;
};
void judge_rows(const std::string& who, const Detaching& of, const RowWorst& worst, Result& result);
// The ratio where g is orthogonal to xhat, and where it is along it.
void judge_ends(double across, double along, Result& result);
// The mean ratio at every norm of a network.
void judge_depths(const Detaching& of, std::span<const double> ratios, Result& result);

// theorem2: rows of these widths.
inline constexpr std::int64_t kScalingWidths[] = {16, 64, 256, 1024, 4096};
inline constexpr double kScalingC = 2, kScalingSlope = 0.1;
struct AdanormNumbers {
  double skew = 0, formula = 0, mean_z = 0;  // errors
};
void judge_adanorm(const AdanormNumbers& of, Result& result);
// The numbers that the theorem needs of a phi: least and largest mean(phi), and mean(z) of the skew
// row of every width.
struct ScalingNumbers {
  double low = 0, high = 0;
  std::vector<double> skew;

  double spread() const;
  double off(double c) const;  // how far mean(phi) gets from c
  double growth() const;       // how far mean(z) gets from the least width to the largest
  bool is_constant() const;
  bool is_bounded() const;
};
struct ScalingExamples {
  ScalingNumbers linear, square, sine;
};
void judge_examples(const ScalingExamples& of, Result& result);
inline constexpr int kPolynomials = 20;  // of each degree
void judge_polynomials(int degree, int both, Result& result);
inline constexpr double kSignSlopes[] = {0.05, 0.1, 0.2, 0.5};  // k
// The largest share of a row whose |y| is at least 1 / k, and whose sign 1 - k y turns; the first
// of a row of two spikes, the second of rows of one spike, as long as keeps its sign, and one more.
struct SignNumbers {
  double beyond = 0, turned = 0, pair = 0, spike = 0, longer_spike = 0;
};
void judge_signs(double k, const SignNumbers& of, Result& result);

// theorem4 and theorem4-training.
struct RecursionNumbers {
  double error = 0;        // of dx, nu and psi^2, relative to the size of their terms
  double contraction = 0;  // the largest (1 - alpha) Gamma
  double used = 0;         // the largest |nu| / N
  double dx_used = 0;      // the largest |dx| psi / (|g| + N |xhat|)
};
void judge_recursion(const std::string& who, const RecursionNumbers& of, Result& result);
// |nu| after 200 steps with alpha = 0.9, Lambda = 0, nu_0 = 1.
void judge_divergence(double gamma, double nu, Result& result);
void judge_trained_recursion(const std::string& label, bool layer_scale, const RecursionNumbers& of,
                             Result& result);

// fisher-training: the weights to whose lengths the loss is blind.
enum class BlindTo { kNone, kColumn, kMatrix };
struct LengthNumbers {
  double unit_cosine = 0, cosine = 0;  // the largest |cos| of w and its gradient, unit and layer
  double unit_loss = 0, loss = 0;      // the largest 1 - |w'| / |w| of a step
};
void judge_lengths(const std::string& norm, BlindTo blind_to, const LengthNumbers& worst,
                   Result& result);

// figure7: |gain| / psi of all features; a control is shown and not judged.
double share_at_most_one(std::span<const double> ratios);
void judge_shares(const std::string& who, bool is_control, std::span<const double> ratios,
                  Result& result);
// The shares of a task, one per seed. They are evaluated for PN-V in a Transformer for translation,
// over three seeds: on real data that every feature has |gain| <= psi, on built-in data that the
// share is above 0.95.
struct ShareSeeds {
  std::string task, norm;
  bool is_of_real_data = false;
  SeedValues shares = {};
};
void judge_share_seeds(const ShareSeeds& of, Result& result);

// convergence: a norm's cost on the validation set after `step` updates; less is better.
struct CostPoint {
  double step = 0, cost = 0;
};
// The updates of the first curve to its best cost, divided by those of the other to the same cost,
// interpolated linearly between points; 0 if the other never reaches it.
double speedup(std::span<const CostPoint> first, std::span<const CostPoint> other);
struct SpeedupNumbers {
  std::string task, first, norm;
  SeedValues found;
};
// The claim is that speedups are above 1. It is judged over three seeds of what the source states:
// `none` beside layernorm on a task of Ba, Kiros, Hinton 2016, and beside any norm on mnist_mlp.
void judge_speedup(const SpeedupNumbers& of, Result& result);
// convergence: the losses after the last update of two norms, of training and of validation, one a
// seed. Claims of Xu et al. 2019, figures 1 to 3: layernorm has a lower training loss than
// layernorm_simple and a higher loss of validation, because gain and bias over-fit (section 3.1);
// detachnorm has both higher than layernorm_simple; adanorm has a higher training loss than
// layernorm and a lower loss of validation. They are judged over three seeds of runs on real data,
// of the source's tasks, or of translation for detachnorm; the claim names the data.
struct LastLosses {
  std::string norm;
  SeedValues train, valid;
};
struct CurvePair {
  std::string task;
  std::string data;  // what the task was trained on, to the end; empty for a training cut short
  LastLosses a, b;
};
void judge_curves(const CurvePair& of, Result& result);
// convergence: the best costs of layernorm and of another norm on the validation set, one a seed;
// less is better. Ba, Kiros, Hinton 2016 have layernorm best in figures 1 and 2: on
// order_embeddings beside none, on attentive_reader beside none and batch norms.
struct BestCosts {
  std::string task, norm;
  SeedValues layernorm, other;
};
void judge_best(const BestCosts& of, Result& result);

// boundary-units: means over units of one layer, at the boundary of images and inside: the share of
// cases for which a unit is on, the share of units that rarely are, their mean and variance.
struct UnitStatistics {
  double on = 0, rare = 0, mean = 0, variance = 0;
};
struct UnitParts {
  UnitStatistics boundary, inner;
};
// One list of layers a seed. The claims are that boundary units are on less often, that more of
// them rarely are, and that their variances are others; each is about the mean over layers.
void judge_boundary(const std::string& who, std::span<const std::vector<UnitParts>> seeds,
                    Result& result);

// covariate-shift: medians over steps and layers, and the mean of the last losses.
struct ShiftNumbers {
  double distance = 0, cosine = 0, loss = 0;
};
// Both networks have one entry a seed. The claims are judged for three seeds of mnist_mlp or of a
// task that the source has: that the distance is no smaller with batch norm, that the last loss is
// lower and, of the deep linear network, that the cosine is nearer to 0.
using ShiftSeeds = std::span<const ShiftNumbers>;
void judge_shift(const std::string& task, ShiftSeeds none, ShiftSeeds batch, Result& result);

// noisy-batchnorm.
struct NoisyNumbers {
  double loss = 0, moved = 0, stretched = 0;
};
struct NoisyRuns {
  std::vector<NoisyNumbers> none, batch, noisy;  // one a seed
};
// The claims are judged as those of covariate-shift are: that batch norm trains better than no
// norm, that the noise costs at most a quarter of what it gains, and that activations move and
// stretch most with the noise.
void judge_noise(const std::string& task, const NoisyRuns& runs, Result& result);

// statistics: of one figure, after the steps in which the running statistics settle.
double outlier_ratio(const std::vector<double>& values);  // p99 / median
// The order of magnitude by which the median of `a` is above that of `b`.
double orders_above(const std::vector<double>& a, const std::vector<double>& b);
// One list a seed, of a network on text and of one on images.
using FigureSeeds = std::vector<std::vector<double>>;
struct FigureNumbers {
  std::string figure;
  FigureSeeds text, images;
};
void judge_outliers(const FigureNumbers& of, Result& result);
// Checks that the figure is larger on text, by an order of magnitude.
void judge_distances(const FigureNumbers& of, Result& result);
// The same figure in two parts of the trainings, one after the other. The claims are that it grows
// on text, and that its outliers become fewer on images.
struct FigureParts {
  std::string figure;
  FigureSeeds before, after;
};
void judge_growing(const FigureParts& text, Result& result);
void judge_calming(const FigureParts& images, Result& result);
// A norm without means beside batchnorm, on text, the rows in front of both scaled or of neither:
// distances of psi^2 and sigma^2, and the gradients that come by them.
struct QuadraticNumbers {
  std::string norm, batchnorm;
  FigureSeeds distance, batch_distance;
  FigureSeeds gradient = {}, batch_gradient = {};  // of a norm that has such gradients
};
// Checks that distances of psi^2 are smaller than those of sigma^2, and that gradients by psi^2
// have fewer outliers.
void judge_quadratic(const QuadraticNumbers& of, Result& result);

// landscape: figures by name, one entry a step.
using LandscapeFigures = std::vector<std::pair<std::string, std::vector<double>>>;
struct LandscapeNetworks {
  std::string task, norm;  // task: empty for the miniature
};
// One entry a seed. The miniature's figures are an order of magnitude larger without a norm, for
// every seed; those of a task that the source has are larger, over three seeds.
void judge_landscape(const LandscapeNetworks& what, std::span<const LandscapeFigures> none,
                     std::span<const LandscapeFigures> of, Result& result);

// transfer: by how many points of accuracy a training tells topics better apart, one value a seed;
// and by how much a task's value is better with layernorm than without a norm, which is judged of
// three seeds of runs.
void judge_topics(const std::string& norm, const SeedValues& gains, Result& result);
struct TransferNumbers {
  std::string task;
  bool is_of_runs = false;
  SeedValues better;
};
void judge_transfer(const TransferNumbers& of, Result& result);
// batch-size: losses of the validation set by the size of batches, the largest first.
void judge_growth(const std::string& who, const SeedValues& largest, const SeedValues& smallest,
                  Result& result);
// batch-size: by how much a norm's metric is above another's at one size, one value a seed. It is
// judged for three seeds of the source's data. Where the source has both norms equal it is shown
// and not judged, for no test shows that two means are equal.
struct MarginNumbers {
  std::string claim;
  bool is_of_source = false;  // runs on IWSLT14, trained to the end
  SeedValues margins;
  bool are_equal = false;  // according to the source
};
void judge_margin(const MarginNumbers& of, Result& result);
// singular-values: areas under the spectra of a norm less those of the first one, of the same seed.
struct AreaNumbers {
  std::string claim;
  bool is_of_source = false;  // powernorm beside layernorm, trained to the end on WMT14
  SeedValues differences;
};
void judge_areas(const AreaNumbers& of, Result& result);

// mini-batchsize: losses of all training rows.
struct BatchLosses {
  SeedValues large_batchnorm, large_layernorm, small_none, small_batchnorm, small_layernorm;
};
void judge_batch_losses(const BatchLosses& of, Result& result);

// Checks that batchnorm before the activation has a lower loss and a lower error than after it.
struct PlacementNumbers {
  SeedValues before_loss, after_loss, before_error, after_error;
};
void judge_placement(const PlacementNumbers& of, Result& result);

// mini-layernorm: losses of all training rows.
void judge_detached(const ValuesByNorm& losses, Result& result);
// Checks that layernorm_simple gains more by the derivative of the variance in the deepest network
// than in the shallowest, and there more than by that of the mean.
using LossesByDepth = std::map<int, ValuesByNorm>;
void judge_deeper(const LossesByDepth& losses, Result& result);
// Counts of the numbers that a trained network's norms take in: how many are beyond 1 / k, and
// above it, where 1 - k xhat turns their sign. One entry per seed.
struct TrainedSigns {
  double numbers = 0, beyond = 0, turned = 0, largest = 0;  // largest: of xhat
};
void judge_trained_signs(int width, double k, std::span<const TrainedSigns> seeds, Result& result);

// mini-powernorm: losses and accuracies of the test rows.
inline constexpr int kSentenceSeeds = 3;  // of the source
struct Distances {
  double median = 0, p99 = 0;
};
struct SentenceNumbers {
  ValuesByNorm loss, accuracy;
  Distances uneven, even;  // of BatchNorm's variance, on sentences of uneven scale and of one
};
void judge_sentences(const SentenceNumbers& of, Result& result);

}  // namespace keel::study
