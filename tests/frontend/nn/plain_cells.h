// Recurrent cells with a norm of their summed input as one, written out number by number in double
// precision, for all rows of a batch at once.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/frontend/nn/recurrent_layers.h"

namespace keel::nn {

// The values of all rows of the batch at one time step, and which of these are no padding.
using Values = std::vector<std::vector<double>>;
using Known = std::vector<bool>;

inline Values values_of(const Tensor& x, std::int64_t t, std::int64_t width) {
  Values rows(kRows);
  for (std::int64_t e = 0; e < kRows * width; ++e) {
    rows[std::size_t(e / width)].push_back(x.at(t * kRows * width + e));
  }
  return rows;
}

inline Values times(const Values& x, const Values& weight) {
  Values y(x.size(), std::vector<double>(weight[0].size(), 0));
  for (std::size_t row = 0; row < x.size(); ++row) {
    for (std::size_t i = 0; i < weight.size(); ++i) {
      for (std::size_t j = 0; j < weight[i].size(); ++j) y[row][j] += x[row][i] * weight[i][j];
    }
  }
  return y;
}

// f(a, b) for every pair of elements.
template <class F>
inline Values both(const Values& a, const Values& b, const F& f) {
  Values y = a;
  for (std::size_t row = 0; row < a.size(); ++row) {
    for (std::size_t i = 0; i < a[row].size(); ++i) y[row][i] = f(a[row][i], b[row][i]);
  }
  return y;
}

inline double plus(double a, double b) { return a + b; }
inline double factor(double a, double b) { return a * b; }
inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// Applies a default norm to one list of numbers, without gain and bias.
inline void normalize_list(const std::string& norm, std::vector<double*> list) {
  const bool is_centred = norm != "rmsnorm" && norm != "pn_v";
  double mean = 0, square = 0;
  for (const double* v : list) mean += is_centred ? *v / double(list.size()) : 0;
  for (const double* v : list) square += (*v - mean) * (*v - mean) / double(list.size());
  const double size = std::sqrt(square + (norm == "rmsnorm" ? 1e-8 : 1e-5));
  for (double* v : list) {
    *v = (*v - mean) / size;
    if (norm == "adanorm") *v *= 1 - 0.1 * *v;
  }
}

inline Values normalize(const std::string& norm, Values x, const Known& known) {
  if (norm == "none") return x;
  if (norm == "batchnorm" || norm == "pn_v") {
    for (std::size_t i = 0; i < x[0].size(); ++i) {
      std::vector<double*> column;
      for (std::size_t row = 0; row < x.size(); ++row) {
        if (known[row]) column.push_back(&x[row][i]);
      }
      normalize_list(norm, column);
    }
    return x;
  }
  for (std::vector<double>& row : x) {
    std::vector<double*> list;
    for (double& v : row) list.push_back(&v);
    normalize_list(norm, list);
  }
  return x;
}

// The layer's parameters as a run has them.
struct PlainLayer {
  const LayerRun& run;
  std::string norm;

  bool has(const std::string& name) const {
    return std::ranges::find(run.parameters, "layer/" + name) != run.parameters.end();
  }
  Values at(const std::string& name) const {
    const Tensor value = run.read("layer/" + name);
    Values rows;
    for (std::int64_t e = 0; e < value.elements(); ++e) {
      if (e % value.shape().back() == 0) rows.emplace_back();
      rows.back().push_back(value.at(e));
    }
    return rows;
  }
  Values with(const Values& x, const std::string& parameter, double (*f)(double, double)) const {
    return has(parameter) ? both(x, Values(x.size(), at(parameter)[0]), f) : x;
  }
  Values normed(const std::string& site, const Values& x, const Known& known) const {
    if (norm == "weightnorm") return x;
    const Values y = normalize(norm, x, known);
    return with(with(y, site + "/gain", factor), site + "/bias", plus);
  }
  // The weights of h and of x. A norm of weights has columns of both together of length gain.
  std::pair<Values, Values> weights(const std::string& name) const {
    Values u = at(name + "recurrent/weight"), w = at(name + "input/weight");
    if (norm != "weightnorm") return {u, w};
    const std::vector<double> gain = at(name + "norm/gain")[0];
    for (std::size_t j = 0; j < gain.size(); ++j) {
      double square = 0;
      for (const Values* part : {&u, &w}) {
        for (const auto& row : *part) square += row[j] * row[j];
      }
      for (Values* part : {&u, &w}) {
        for (auto& row : *part) row[j] *= gain[j] / std::sqrt(square);
      }
    }
    return {u, w};
  }
  // norm(gate (h U) + x W) + b.
  Values input(const std::string& name, const Values& h, const Values& x, const Known& known,
               const Values* gate = nullptr) const {
    const auto [u, w] = weights(name);
    Values product = times(h, u);
    if (gate) product = both(*gate, product, factor);
    const Values a = normed(name + "norm", both(product, times(x, w), plus), known);
    return with(with(a, name + "bias", plus), name + "input/bias", plus);
  }
};

struct StateOfRows {
  Values h = Values(kRows, std::vector<double>(kWidth, 0)), c = h;
};

inline void step_rnn(const PlainLayer& p, const Values& x, const Known& known, StateOfRows& s) {
  const Values a = p.input("", s.h, x, known);
  s.h = both(a, a, [](double v, double) { return std::tanh(v); });
}

inline void step_lstm(const PlainLayer& p, const Values& x, const Known& known, StateOfRows& s) {
  const Values a = p.input("", s.h, x, known);
  const auto gate = [&](std::size_t row, std::size_t place, std::size_t i) {
    return a[row][place * kWidth + i];
  };
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t i = 0; i < kWidth; ++i) {
      s.c[row][i] = logistic(gate(row, 0, i)) * s.c[row][i] +
                    logistic(gate(row, 1, i)) * std::tanh(gate(row, 3, i));
    }
  }
  const Values n = p.normed("cell_norm", s.c, known);
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t i = 0; i < kWidth; ++i) {
      s.h[row][i] = logistic(gate(row, 2, i)) * std::tanh(n[row][i]);
    }
  }
}

inline void step_gru(const PlainLayer& p, const Values& x, const Known& known, StateOfRows& s) {
  const Values gates = p.input("gates/", s.h, x, known);
  Values z = s.h, r = s.h;
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t i = 0; i < kWidth; ++i) {
      z[row][i] = logistic(gates[row][i]);
      r[row][i] = logistic(gates[row][kWidth + i]);
    }
  }
  const Values a = p.input("candidate/", s.h, x, known, &r);
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t i = 0; i < kWidth; ++i) {
      s.h[row][i] = (1 - z[row][i]) * s.h[row][i] + z[row][i] * std::tanh(a[row][i]);
    }
  }
}

}  // namespace keel::nn
