#include "studies/fisher_model.h"

#include <cmath>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/weight_norm.h"
#include "src/runtime/program.h"

namespace keel::study {
namespace {

// A statistic that training only writes.
Value unused(Graph& g, const GlmValues& v) { return g.constant(Tensor(g.type(v.bias))); }

Value outputs_of(Graph& g, const std::string& norm, const GlmValues& v) {
  if (norm == "weightnorm") {
    const Value w = ops::weight_norm(g, v.w, v.gain);
    return ops::matmul(g, v.x, w, {.bias = v.bias, .transpose_b = true});
  }
  const Value a = ops::matmul(g, v.x, v.w, {.transpose_b = true});
  if (norm == "layernorm") return ops::layer_norm(g, a, {v.gain, v.bias}, {.eps = 0});
  if (norm == "batchnorm") {
    return ops::batch_norm(g, a, {v.gain, v.bias}, {unused(g, v), unused(g, v)}, {.eps = 0});
  }
  return ops::add(g, a, v.bias);
}

// An (cases, outputs, outputs) tensor of f(case, i, j).
template <class F>
Tensor each_pair(const Tensor& o, const F& f) {
  const std::int64_t cases = o.shape()[0], n = o.shape()[1];
  return mapped(Tensor(DType::kF64, {cases, n, n}),
                [&](double, std::int64_t e) { return f(e / (n * n), e / n % n, e % n); });
}

}  // namespace

Glm Glm::with(const Tensor& other_x, const Tensor& other_w) const {
  return {norm, other_x.clone(), other_w.clone(), gain.clone(), bias.clone()};
}

GlmValues add_glm(Graph& g, const Glm& glm) {
  GlmValues v{input(g, "x", glm.x.shape()),
              input(g, "w", glm.w.shape()),
              input(g, "gain", glm.gain.shape()),
              input(g, "bias", glm.bias.shape()),
              {}};
  v.o = outputs_of(g, glm.norm, v);
  return v;
}

Tensors feeds_of(const Glm& glm) {
  Tensors feeds;
  feeds["x"] = glm.x.clone();
  feeds["w"] = glm.w.clone();
  feeds["gain"] = glm.gain.clone();
  feeds["bias"] = glm.bias.clone();
  return feeds;
}

Tensor outputs(Backend& backend, const Glm& glm) {
  Graph g;
  g.mark_output("o", add_glm(g, glm).o);
  return std::move(run_graph(backend, g, feeds_of(glm), kDeclared).at("o"));
}

Jacobian jacobian(Backend& backend, const Glm& glm) {
  Graph g;
  const GlmValues v = add_glm(g, glm);
  const Value chosen = input(g, "chosen", g.shape(v.o)), wrt[] = {v.w, v.bias, v.gain};
  const std::vector<Value> d = gradient(g, dot(g, v.o, chosen), wrt);
  g.mark_output("o", v.o);
  for (std::size_t i = 0; i < d.size(); ++i) g.mark_output(fmt::format("d{}", i), d[i]);
  Variables variables(backend, 0);
  Program program(backend, variables, g);
  for (const auto& [name, value] : feeds_of(glm)) program.feed(name, value);
  Jacobian j{glm.outputs(), glm.inputs(), {}, {}};
  Tensor one_hot(g.type(v.o));
  for (double& element : one_hot.as<double>()) {
    element = 1;
    program.feed("chosen", one_hot);
    program.run();
    for (const char* name : {"d0", "d1", "d2"}) {
      const Tensor part = program.fetch(name);
      j.values.insert(j.values.end(), part.as<double>().begin(), part.as<double>().end());
    }
    element = 0;
  }
  j.o = program.fetch("o");
  return j;
}

Tensor gaussian_covariance(const Tensor& o) {
  return each_pair(o, [](std::int64_t, std::int64_t i, std::int64_t j) { return double(i == j); });
}

Tensor softmax_covariance(const Tensor& o) {
  const std::int64_t n = o.shape()[1];
  const auto p = [&](std::int64_t c, std::int64_t i) {
    double sum = 0;
    for (std::int64_t k = 0; k < n; ++k) sum += std::exp(o.at(c * n + k) - o.at(c * n + i));
    return 1 / sum;
  };
  return each_pair(o, [&](std::int64_t c, std::int64_t i, std::int64_t j) {
    return (i == j ? p(c, i) : 0) - p(c, i) * p(c, j);
  });
}

Tensor averaged(const Tensor& covariance) {
  const std::int64_t cases = covariance.shape()[0], pairs = covariance.elements() / cases;
  std::vector<double> sums(std::size_t(pairs), 0);
  for (std::int64_t e = 0; e < covariance.elements(); ++e) {
    sums[std::size_t(e % pairs)] += covariance.at(e);
  }
  return mapped(covariance, [&](double, std::int64_t e) {
    return sums[std::size_t(e % pairs)] / double(cases);
  });
}

Tensor fisher_matrix(const Jacobian& j, const Tensor& covariance) {
  const std::int64_t n = j.outputs, p = j.parameters(), cases = j.o.shape()[0];
  Tensor f(DType::kF64, {p, p});
  const std::span<double> sum = f.as<double>();
  for (std::int64_t c = 0; c < cases; ++c) {
    for (std::int64_t e = 0; e < n * n; ++e) {
      const double weight = covariance.at(c * n * n + e) / double(cases);
      for (std::int64_t a = 0; a < p; ++a) {
        const double left = weight * j.at(c, e / n, a);
        if (left == 0) continue;
        for (std::int64_t b = 0; b < p; ++b)
          sum[std::size_t(a * p + b)] += left * j.at(c, e % n, b);
      }
    }
  }
  return f;
}

}  // namespace keel::study
