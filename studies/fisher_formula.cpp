// The derivatives of normalized outputs as Ba, Kiros, Hinton 2016 print them, in plain loops.
#include <cmath>

#include "studies/fisher_model.h"

namespace keel::study {
namespace {

// The values that a norm computes from the summed inputs a = X W^T.
struct Summed {
  Tensor xhat, sigma;  // (cases, outputs)
  Tensor dmu, dsigma;  // (outputs, inputs): derivatives by the own weights; not for layernorm
};

Tensor products(const Tensor& x, const Tensor& w) {
  const std::int64_t outputs = w.shape()[0];
  return mapped(Tensor(DType::kF64, {x.shape()[0], outputs}), [&](double, std::int64_t e) {
    return mean_product(row(x, e / outputs), row(w, e % outputs)) * double(w.shape()[1]);
  });
}

// (a - mean) / sigma with the mean and deviation that `of` gives of element e's group.
template <class Group>
void centre(const Tensor& a, Summed& s, const Group& of) {
  s.sigma = mapped(a, [&](double, std::int64_t e) { return std::sqrt(variance(of(e))); });
  s.xhat = mapped(
      a, [&](double value, std::int64_t e) { return (value - mean(of(e))) / s.sigma.at(e); });
}

void batchnorm(const Glm& glm, const Tensor& a, Summed& s) {
  std::vector<std::vector<double>> of_output, of_input;
  for (std::int64_t i = 0; i < glm.outputs(); ++i) of_output.push_back(column(a, i));
  for (std::int64_t d = 0; d < glm.inputs(); ++d) of_input.push_back(column(glm.x, d));
  centre(a, s, [&](std::int64_t e) -> const std::vector<double>& {
    return of_output[std::size_t(e % glm.outputs())];
  });
  s.dmu = mapped(
      glm.w, [&](double, std::int64_t e) { return mean(of_input[std::size_t(e % glm.inputs())]); });
  // Cov(x) w / sigma = mean of x xhat
  s.dsigma = mapped(glm.w, [&](double, std::int64_t e) {
    const std::vector<double> xhat = column(s.xhat, e / glm.inputs());
    return mean_product(of_input[std::size_t(e % glm.inputs())], xhat);
  });
}

void weightnorm(const Glm& glm, const Tensor& a, Summed& s) {
  s.sigma =
      mapped(a, [&](double, std::int64_t e) { return length(row(glm.w, e % glm.outputs())); });
  s.xhat = mapped(a, [&](double value, std::int64_t e) { return value / s.sigma.at(e); });
  s.dsigma = mapped(glm.w, [&](double value, std::int64_t e) {
    return value / length(row(glm.w, e / glm.inputs()));
  });
}

Summed summed(const Glm& glm) {
  Summed s;
  const Tensor a = products(glm.x, glm.w);
  s.dmu = Tensor(glm.w.type());
  s.dsigma = Tensor(glm.w.type());
  if (glm.norm == "none") s.sigma = mapped(a, [](double, std::int64_t) { return 1; });
  if (glm.norm == "batchnorm") batchnorm(glm, a, s);
  if (glm.norm == "weightnorm") weightnorm(glm, a, s);
  if (glm.norm == "layernorm") {
    centre(a, s, [&](std::int64_t e) { return row(a, e / glm.outputs()); });
  }
  return s;
}

// do_k/dw_id of case c
double weight_derivative(const Glm& glm, const Summed& s, std::int64_t c, std::int64_t k,
                         std::int64_t e) {
  const std::int64_t i = e / glm.inputs(), d = e % glm.inputs(), n = glm.outputs();
  const double x = glm.x.at(c * glm.inputs() + d), sigma = s.sigma.at(c * n + k);
  if (glm.norm == "none") return i == k ? x : 0;
  if (glm.norm == "layernorm") {
    const double shared = (1 + s.xhat.at(c * n + k) * s.xhat.at(c * n + i)) / double(n);
    return glm.gain.at(k) / sigma * ((i == k ? 1 : 0) - shared) * x;
  }
  const double chi = x - s.dmu.at(e) - s.xhat.at(c * n + k) * s.dsigma.at(e);
  return i == k ? glm.gain.at(k) / sigma * chi : 0;
}

}  // namespace

double formula_error(const Glm& glm, const Jacobian& j) {
  const Summed s = summed(glm);
  double error = 0, largest = 0;
  const auto add = [&](double got, double expected) {
    take_largest(error, std::abs(got - expected));
    take_largest(largest, std::abs(expected));
  };
  for (std::int64_t c = 0; c < glm.cases(); ++c) {
    for (std::int64_t k = 0; k < glm.outputs(); ++k) {
      for (std::int64_t e = 0; e < glm.w.elements(); ++e) {
        add(j.at(c, k, e), weight_derivative(glm, s, c, k, e));
      }
      for (std::int64_t i = 0; i < glm.outputs(); ++i) {
        const bool has_gain = i == k && glm.norm != "none";
        add(j.at(c, k, j.bias(i)), i == k ? 1 : 0);
        add(j.at(c, k, j.gain(i)), has_gain ? s.xhat.at(c * glm.outputs() + k) : 0);
      }
    }
  }
  return error / largest;
}

}  // namespace keel::study
