// SGD and Adam against the reference backend, and sums of squares.
#include "src/ops/optimizer_step.h"

#include <limits>

#include "tests/backends/optimizer_cases.h"
#include "tests/support/placed.h"

namespace keel::test {
namespace {

OpCase adam_case(std::int64_t n, double scale, const AdamAttrs& attrs) {
  OpCase c;
  c.inputs = update_inputs(n, scale);
  c.gradients = false;
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    const Value p = ops::adam_step(g, {v[0], v[1], v[4], v[6], v[5], v[2], v[3]}, attrs);
    return std::vector{p, p.at(1), p.at(2)};
  };
  return c;
}

OpCase sgd_case(std::int64_t n, double scale, const SgdAttrs& attrs) {
  OpCase c;
  c.inputs = update_inputs(n, scale);
  c.gradients = false;
  c.build = [attrs](Graph& g, const std::vector<Value>& v) {
    const Value p = ops::sgd_step(g, {v[0], v[1], v[4], v[6], v[2]}, attrs);
    return std::vector{p, p.at(1),
                       ops::sgd_step(g, {v[0], v[1], v[4], {}, {}}, {.weight_decay = 0.1})};
  };
  return c;
}

void check_adam(std::int64_t n, const AdamAttrs& attrs) {
  const OpCase c = adam_case(n, 0.37, attrs);
  const Results got = run_tested(c), expected = run_reference(c);
  const double decay = attrs.decoupled ? 0 : attrs.weight_decay;
  const auto unbias = [&](double beta) {
    return 1 - std::pow(attrs.release_bias ? 1 - beta : beta, kStep + 1);
  };
  const double unbias_m = unbias(attrs.beta1), unbias_v = unbias(attrs.beta2);
  // There are two products of rounded factors, and a sum.
  const auto of_m = [&](std::int64_t i) {
    const Gradient g = gradient_of(c, i, decay);
    return g.error + 3 * kEps * (std::abs(c.inputs[2].at(i)) + g.size);
  };
  const auto of_v = [&](std::int64_t i) {
    const Gradient g = gradient_of(c, i, decay);
    const double share = 1 - attrs.beta2;
    return share * g.error * 2.1 * g.size +
           kEps * (3 * c.inputs[3].at(i) + 5 * share * g.size * g.size);
  };
  check_within(got.at("y1"), expected.at("y1"), of_m);
  check_within(got.at("y2"), expected.at("y2"), of_v);
  check_within(got.at("y0"), expected.at("y0"), [&](auto i) {
    const double m = expected.at("y1").at(i), v = expected.at("y2").at(i);
    const double root = std::sqrt(v / unbias_v);
    const double deviation = root + attrs.eps / (attrs.raw_eps ? std::sqrt(unbias_v) : 1);
    const double change = attrs.lr_scale * kLr / unbias_m / deviation;  // a unit of m
    // The root halves the relative error of v; seven more roundings on the way.
    const double relative = of_v(i) / (2 * v + 1e-30) + 7 * kEps;
    return change * (of_m(i) + std::abs(m) * relative) + 3 * kEps * std::abs(c.inputs[0].at(i));
  });
}

TEST_CASE("backend optimizer: adam at every size") {
  for_each_target([] {
    for (const std::int64_t n : kSizes) {
      CAPTURE(n);
      check_adam(n, {});
      check_adam(n, {.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1});
      check_adam(n, {.weight_decay = 0.1, .decoupled = true});
      check_adam(n, {.eps = 1e-3, .weight_decay = 0.1, .decoupled = true, .raw_eps = true});
      check_adam(n, {.raw_eps = true, .release_bias = true, .lr_scale = 0.3});
    }
  });
}

void check_sgd(std::int64_t n, const SgdAttrs& attrs) {
  const OpCase c = sgd_case(n, -1.7f, attrs);
  const Results got = run_tested(c), expected = run_reference(c);
  const auto of_u = [&](std::int64_t i) {
    const Gradient g = gradient_of(c, i, attrs.weight_decay);
    return g.error + 3 * kEps * (std::abs(c.inputs[2].at(i)) + g.size);
  };
  check_within(got.at("y1"), expected.at("y1"), of_u);
  const auto of_p = [&](std::int64_t i) {
    const double size = std::abs(c.inputs[2].at(i)) + 2 * gradient_of(c, i, 0.1).size;
    return kEps * std::abs(c.inputs[0].at(i)) +
           attrs.lr_scale * kLr * (3 * of_u(i) + 6 * kEps * size);
  };
  check_within(got.at("y0"), expected.at("y0"), of_p);
  check_within(got.at("y2"), expected.at("y2"), of_p);
}

TEST_CASE("backend optimizer: sgd at every size") {
  for_each_target([] {
    for (const std::int64_t n : kSizes) {
      CAPTURE(n);
      check_sgd(n, {});
      check_sgd(n, {.momentum = 0.9, .weight_decay = 0.01});
      check_sgd(n, {.momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
      check_sgd(n, {.momentum = 0.9, .lr_scale = 3});
    }
  });
}

// A GPU has threads for 2^21 elements of an update, so that its threads have several groups of four
// here.
TEST_CASE("backend optimizer: more elements than threads") {
  check_sgd((std::int64_t{1} << 21) + 5, {.momentum = 0.9});
}

TEST_CASE("backend optimizer: a scale that is not finite changes nothing") {
  for (const double scale : {double(NAN), std::numeric_limits<double>::infinity()}) {
    const OpCase adam = adam_case(1000, scale, {}), sgd = sgd_case(1000, scale, {.momentum = 0.9});
    const Results by_adam = run_tested(adam), by_sgd = run_tested(sgd);
    const auto exactly = [](auto) { return 0.0; };
    check_within(by_adam.at("y0"), adam.inputs[0], exactly);
    check_within(by_adam.at("y1"), adam.inputs[2], exactly);
    check_within(by_adam.at("y2"), adam.inputs[3], exactly);
    check_within(by_sgd.at("y0"), sgd.inputs[0], exactly);
    check_within(by_sgd.at("y1"), sgd.inputs[2], exactly);
  }
}

TEST_CASE("backend optimizer: adam writes over its own inputs") {
  Graph g;
  std::vector<Tensor> x = update_inputs(40000, 0.5);
  std::vector<Value> v;
  std::vector<Placed> inputs, apart;
  const auto backend = make_backend(default_backend(), {2});
  for (const Tensor& t : x) {
    const DType declared = is_floating(t.dtype()) ? DType::kF32 : t.dtype();
    v.push_back(g.input(fmt::format("x{}", v.size()), {declared, t.shape()}));
    inputs.emplace_back(*backend, t.to(backend->storage(declared)));
  }
  const Value p = ops::adam_step(g, {v[0], v[1], v[4], v[6], v[5], v[2], v[3]}, {});
  const Prepared prepared = backend->prepare({g, g.node(p)});
  const std::size_t own[] = {0, 2, 3};  // the inputs that the outputs may take the place of
  Binding binding;
  for (const std::size_t i : {0, 1, 4, 6, 5, 2, 3}) binding.inputs.push_back(inputs[i].ref());
  for (const std::size_t i : own) apart.emplace_back(*backend, Tensor(inputs[i].ref().type));
  for (const bool in_place : {false, true}) {
    binding.outputs.clear();
    for (std::size_t j = 0; j < 3; ++j) {
      binding.outputs.push_back(in_place ? inputs[own[j]].ref() : apart[j].ref());
    }
    const Kernel kernel = prepared.bind(binding);
    backend->run({&kernel, 1});
  }
  for (std::size_t j = 0; j < 3; ++j) {
    const Tensor over = inputs[own[j]].read(), fresh = apart[j].read();
    CHECK(std::memcmp(over.data(), fresh.data(), std::size_t(fresh.bytes())) == 0);
    CHECK(fresh.at(7) != x[own[j]].to(DType::kF32).at(7));
  }
}

TEST_CASE("backend optimizer: a sum of squares is rounded once") {
  for_each_target([] {
    for (const std::int64_t n : kSizes) {
      OpCase c;
      c.inputs.push_back(random_normal({n}, 1, 0, 1e15).to(DType::kF32).to(DType::kF64));
      c.gradients = false;
      c.build = [](Graph& g, const std::vector<Value>& v) {
        return std::vector{ops::sum_squares(g, v[0])};
      };
      const double expected = run_reference(c).at("y0").at(0);
      CHECK(std::abs(run_tested(c).at("y0").at(0) - expected) <= 1.001 * kEps * expected);
    }
  });
}

TEST_CASE("backend optimizer: results do not depend on the thread count") {
  check_thread_counts(adam_case(100003, 0.5, {.weight_decay = 0.1}));
  check_thread_counts(sgd_case(100003, 0.5, {.momentum = 0.9}));
  OpCase c;
  c.inputs.push_back(random_f32({1000003}, 1));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::sum_squares(g, v[0])};
  };
  check_thread_counts(c);
}

}  // namespace
}  // namespace keel::test
