// The generalized linear model of Ba, Kiros, Hinton 2016, section 5.2: outputs o = norm(X W^T) with
// gain and bias, eps = 0, and their derivatives by the engine's backward.
#pragma once

#include "studies/lab.h"

namespace keel::study {

struct Glm {
  std::string norm;   // none (which has no gain), weightnorm, batchnorm or layernorm
  Tensor x, w;        // (cases, inputs), (outputs, inputs)
  Tensor gain, bias;  // (outputs)

  std::int64_t cases() const { return x.shape()[0]; }
  std::int64_t inputs() const { return x.shape()[1]; }
  std::int64_t outputs() const { return w.shape()[0]; }
  // The same model with other data or weights.
  Glm with(const Tensor& other_x, const Tensor& other_w) const;
};

// The parameters as inputs of a graph, and o (cases, outputs).
struct GlmValues {
  Value x, w, gain, bias, o;
};
GlmValues add_glm(Graph& g, const Glm& glm);
Tensors feeds_of(const Glm& glm);
Tensor outputs(Backend& backend, const Glm& glm);

// Derivatives of every output of every case with respect to every parameter: W row by row, then
// bias, then gain.
struct Jacobian {
  std::int64_t outputs = 0, inputs = 0;
  Tensor o;                    // (cases, outputs)
  std::vector<double> values;  // (cases, outputs, parameters)

  std::int64_t parameters() const { return outputs * (inputs + 2); }
  std::int64_t weight(std::int64_t i, std::int64_t d) const { return i * inputs + d; }
  std::int64_t bias(std::int64_t i) const { return outputs * inputs + i; }
  std::int64_t gain(std::int64_t i) const { return outputs * (inputs + 1) + i; }
  double at(std::int64_t c, std::int64_t output, std::int64_t parameter) const {
    return values[std::size_t((c * outputs + output) * parameters() + parameter)];
  }
};
Jacobian jacobian(Backend& backend, const Glm& glm);

// The largest error of the Jacobian against the formulas of the paper,
//     do_i/dw_i = gain_i / sigma_i chi_i,   chi_i = x - dmu_i/dw_i - xhat_i dsigma_i/dw_i,
//     do_i/dbias_i = 1,   do_i/dgain_i = xhat_i = (a_i - mu_i) / sigma_i,
// relative to its largest element. For layernorm, whose outputs share their statistics,
//     do_k/dw_i = gain_k / sigma (delta_ki - (1 + xhat_k xhat_i) / outputs) x
double formula_error(const Glm& glm, const Jacobian& j);

// Cov(y | x) of each case, (cases, outputs, outputs): the identity for Gaussian outputs, or diag(p)
// - p p^T with p = softmax(o).
Tensor gaussian_covariance(const Tensor& o);
Tensor softmax_covariance(const Tensor& o);
// Every case gets the mean over the cases.
Tensor averaged(const Tensor& covariance);

// The mean over cases of J^T Cov J, (parameters, parameters).
Tensor fisher_matrix(const Jacobian& j, const Tensor& covariance);

}  // namespace keel::study
