// Whether norms see changes of weights and data (Ba, Kiros, Hinton 2016, table 1; RMSNorm, PN-V and
// evaluation modes added): outputs y of summed inputs a = X W^T, with random gain and bias and eps
// = 0, before and after. Running statistics are those of the batch before the change.
// A norm whose gain can be the deviation of what it divides, and its bias the mean, can also be the
// identity: gain = sigma and bias = mu restore a.
// The paper's text calls all three norms invariant to re-scaled data; its table is right: the
// output of weight norm is linear in X.
#include <cmath>

#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/pn_v.h"
#include "src/ops/norm/power_norm.h"
#include "src/ops/norm/rms_norm.h"
#include "src/ops/norm/weight_norm.h"
#include "src/ops/reduce.h"
#include "studies/lab.h"
#include "studies/list.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

constexpr std::int64_t kInvariantCases = 64, kInvariantInputs = 12, kInvariantOutputs = 10;
constexpr double kFactor = 2.7;

struct Data {
  Tensor x, w;  // (cases, inputs), (outputs, inputs)
};

// Running statistics (outputs).
struct Running {
  Value mean, var, quadratic;
};

struct Values {
  Value x, w, a;
  ops::NormAffine affine;
  Running running;
};

struct Column {
  std::string norm;
  Value (*build)(Graph&, const Values&);
  std::string invariant;  // Y or N for each of changes()
  // Gain and bias that undo the norm; of norms of rows, whose gain is not one number a row, those
  // that undo BatchNorm.
  ops::NormAffine (*restoring)(Graph&, const Values&);
  bool restores = true;
};

Value batch_norm(Graph& g, const Values& v, bool training) {
  return ops::batch_norm(g, v.a, v.affine, {v.running.mean, v.running.var},
                         {.eps = 0, .training = training});
}

Value pn_v(Graph& g, const Values& v, bool training) {
  return ops::pn_v(g, v.a, v.affine, {v.running.quadratic, {}}, {.eps = 0, .training = training});
}

Value power_norm(Graph& g, const Values& v) {
  const ops::PowerNormState state{
      v.running.quadratic, g.constant(Tensor(g.type(v.running.mean))), {}, {}};
  return ops::power_norm(g, v.a, v.affine, state, {.eps = 0, .training = false});
}

Value weight_norm(Graph& g, const Values& v) {
  const Value w = ops::weight_norm(g, v.w, v.affine.gain);
  return ops::matmul(g, v.x, w, {.bias = v.affine.bias, .transpose_b = true});
}

ops::NormAffine by_moments(Graph& g, const Values& v) {
  return {ops::sqrt(g, v.running.var), v.running.mean};
}

ops::NormAffine by_quadratic_mean(Graph& g, const Values& v) {
  return {ops::sqrt(g, v.running.quadratic), g.constant(Tensor(g.type(v.running.mean)))};
}

// The lengths of the rows of W.
ops::NormAffine by_lengths(Graph& g, const Values& v) {
  return {ops::sqrt(g, ops::sum(g, ops::square(g, v.w), {1})),
          g.constant(Tensor(g.type(v.running.mean)))};
}

enum {
  kBatchNormColumn,
  kWeightNormColumn,
  kLayerNormColumn,
  kRmsNormColumn,
  kPnVColumn,
  kBatchEvalColumn,
  kPnVEvalColumn,
  kPowerEvalColumn
};
const Column kColumns[] = {
    {"BatchNorm", [](Graph& g, const Values& v) { return batch_norm(g, v, true); }, "YNYYYN",
     by_moments},
    {"WeightNorm", weight_norm, "YNYNNN", by_lengths},
    {"LayerNorm",
     [](Graph& g, const Values& v) { return ops::layer_norm(g, v.a, v.affine, {.eps = 0}); },
     "YYNYNY", by_moments, false},
    {"RMSNorm",
     [](Graph& g, const Values& v) { return ops::rms_norm(g, v.a, v.affine, {.eps = 0}); },
     "YNNYNY", by_quadratic_mean, false},
    {"PN-V", [](Graph& g, const Values& v) { return pn_v(g, v, true); }, "YNYYNN",
     by_quadratic_mean},
    {"BatchNorm eval", [](Graph& g, const Values& v) { return batch_norm(g, v, false); }, "NNNNNN",
     by_moments},
    {"PN-V eval", [](Graph& g, const Values& v) { return pn_v(g, v, false); }, "NNNNNN",
     by_quadratic_mean},
    {"PowerNorm eval", power_norm, "NNNNNN", by_quadratic_mean},
};

// t with row i multiplied by factors[i].
Tensor row_scaled(const Tensor& t, const Tensor& factors) {
  const std::int64_t width = t.shape().back();
  return mapped(t, [&](double value, std::int64_t i) { return value * factors.at(i / width); });
}

// t with one vector added to every row.
Tensor shifted(const Tensor& t, const Tensor& shift) {
  const std::int64_t width = t.shape().back();
  return mapped(t, [&](double value, std::int64_t i) { return value + shift.at(i % width); });
}

Tensor random_factors(std::int64_t n, std::uint64_t seed) {
  return mapped(normal({n}, seed, "factors"), [](double v, std::int64_t) { return std::exp(v); });
}

struct Change {
  std::string name;
  Data after;
};

std::vector<Change> changes(const Data& d, std::uint64_t seed) {
  const Tensor shift = normal({kInvariantInputs}, seed, "shift");
  const Tensor unit_factors = random_factors(kInvariantOutputs, seed);
  const Tensor case_factors = random_factors(kInvariantCases, seed);
  std::vector<Change> list;
  list.push_back({"W scaled", {d.x.clone(), scaled(d.w, kFactor)}});
  list.push_back({"W shifted, every row alike", {d.x.clone(), shifted(d.w, shift)}});
  list.push_back(
      {"rows of W scaled, each by its own", {d.x.clone(), row_scaled(d.w, unit_factors)}});
  list.push_back({"X scaled", {scaled(d.x, kFactor), d.w.clone()}});
  list.push_back({"X shifted, every case alike", {shifted(d.x, shift), d.w.clone()}});
  list.push_back({"cases scaled, each by its own", {row_scaled(d.x, case_factors), d.w.clone()}});
  return list;
}

class Lab {
 public:
  Lab(Backend& backend, std::uint64_t seed)
      : backend_(backend),
        before_{normal({kInvariantCases, kInvariantInputs}, seed, "x"),
                normal({kInvariantOutputs, kInvariantInputs}, seed, "w")},
        gain_(normal({kInvariantOutputs}, seed, "gain")),
        bias_(normal({kInvariantOutputs}, seed, "bias")) {}

  const Data& before() const { return before_; }
  const Tensor& bias() const { return bias_; }

  Tensor output(const Column& column, const Data& data) const {
    Graph g;
    Values v = values(g, data);
    v.affine = {g.constant(gain_.clone()), g.constant(bias_.clone())};
    g.mark_output("y", column.build(g, v));
    return std::move(run(g, data).at("y"));
  }

  // By how much the norm with the gain and bias that undo it changes a, of the largest |a|.
  double restoring_error(const Column& column) const {
    Graph g;
    Values v = values(g, before_);
    v.affine = column.restoring(g, v);
    g.mark_output("y", column.build(g, v));
    g.mark_output("a", v.a);
    const Tensors results = run(g, before_);
    const std::span<const double> a = results.at("a").as<double>();
    const std::vector<double> none(a.size(), 0);
    return largest_difference(results.at("y").as<double>(), a) / largest_difference(a, none);
  }

 private:
  // All but the affine part.
  Values values(Graph& g, const Data& data) const {
    Values v{input(g, "x", data.x.shape()), input(g, "w", data.w.shape()), {}, {}, {}};
    v.a = ops::matmul(g, v.x, v.w, {.transpose_b = true});
    const Value a = ops::matmul(g, g.constant(before_.x.clone()), g.constant(before_.w.clone()),
                                {.transpose_b = true});
    v.running.mean = ops::mean(g, a, {0});
    v.running.quadratic = ops::mean(g, ops::square(g, a), {0});
    v.running.var = ops::mean(g, ops::square(g, ops::sub(g, a, v.running.mean)), {0});
    return v;
  }

  Tensors run(Graph& g, const Data& data) const {
    Tensors feeds;
    feeds["x"] = data.x.clone();
    feeds["w"] = data.w.clone();
    return run_graph(backend_, g, feeds, kDeclared);
  }

  Backend& backend_;
  Data before_;
  Tensor gain_, bias_;
};

// The largest |after - bias - factor (before - bias)|.
double deviation(const Tensor& before, const Tensor& after, const Tensor& bias, double factor) {
  const Tensor expected = mapped(before, [&](double y, std::int64_t i) {
    const double b = bias.at(i % kInvariantOutputs);
    return b + factor * (y - b);
  });
  return largest_difference(after.as<double>(), expected.as<double>());
}

void add_table(const Lab& lab, const std::vector<Change>& list, Result& result) {
  Table table{"largest change of an output; Y: it should not change", {{"change"}}};
  for (const Change& change : list) table.rows.push_back({change.name});
  for (const Column& column : kColumns) {
    table.rows[0].push_back(column.norm);
    const Tensor before = lab.output(column, lab.before());
    std::vector<Moved> moves;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const double by = deviation(before, lab.output(column, list[i].after), lab.bias(), 1);
      moves.push_back({column.invariant[i] == 'Y', by});
      table.rows[i + 1].push_back(fmt::format("{} {:.1e}", column.invariant[i], by));
    }
    judge_invariance(column.norm, moves, result);
  }
  result.tables.push_back(std::move(table));
}

// A negative factor flips what is normalized; weight norm follows the data.
void add_signs(const Lab& lab, Result& result) {
  const Data flipped{lab.before().x.clone(), scaled(lab.before().w, -kFactor)};
  for (const Column& column : kColumns) {
    if (column.invariant[0] != 'Y') continue;
    const Tensor before = lab.output(column, lab.before());
    const double error = deviation(before, lab.output(column, flipped), lab.bias(), -1);
    judge_flip(column.norm, error, result);
  }
  const Column& weight = kColumns[kWeightNormColumn];
  const Data larger{scaled(lab.before().x, kFactor), lab.before().w.clone()};
  const double error =
      deviation(lab.output(weight, lab.before()), lab.output(weight, larger), lab.bias(), kFactor);
  judge_linear(error, kFactor, result);
}

// Before the change the running statistics are those of the batch.
void add_evaluation(const Lab& lab, Result& result) {
  const std::pair<int, int> pairs[] = {{kBatchEvalColumn, kBatchNormColumn},
                                       {kPnVEvalColumn, kPnVColumn},
                                       {kPowerEvalColumn, kPnVColumn}};
  for (const auto& [evaluation, training] : pairs) {
    const Column &a = kColumns[evaluation], &b = kColumns[training];
    const Tensor left = lab.output(a, lab.before()), right = lab.output(b, lab.before());
    judge_evaluation(a.norm, b.norm, largest_difference(left.as<double>(), right.as<double>()),
                     result);
  }
}

void add_restoring(const Lab& lab, Result& result) {
  Table table{"gain = sigma, bias = mu: the largest |y - a| / |a|; Y: it should be 0",
              {{"norm", "restored", "error"}}};
  for (const Column& column : kColumns) {
    const double error = lab.restoring_error(column);
    table.rows.push_back({column.norm, column.restores ? "Y" : "N", fmt::format("{:.1e}", error)});
    judge_restoring(column.norm, column.restores, error, result);
  }
  result.tables.push_back(std::move(table));
}

}  // namespace

Result invariance(const Options& options) {
  const Lab lab(options.backend, options.seed);
  Result result;
  add_table(lab, changes(lab.before(), options.seed), result);
  add_signs(lab, result);
  add_evaluation(lab, result);
  add_restoring(lab, result);
  return result;
}

}  // namespace keel::study
