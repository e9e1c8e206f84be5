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

// A GPU has threads for 2^21 elements of an update, so that its threads have several groups of four
// here.
TEST_CASE("backend optimizer: more elements than threads") {
  check_agrees(sgd_case((std::int64_t{1} << 21) + 5, -1.7f, {.momentum = 0.9}));
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

TEST_CASE("backend optimizer: a total norm of any number of tensors is rounded once") {
  for_each_target([] {
    for (const int tensors : {1, 3, 255, 256, 257, 600}) {
      CAPTURE(tensors);
      OpCase c;
      for (int i = 0; i < tensors; ++i) {
        const double squares = std::abs(random_normal({1}, std::uint64_t(i)).at(0)) * (1 + i % 7);
        c.inputs.push_back(Tensor::of<double>({}, {double(float(squares))}));
      }
      c.gradients = false;
      c.build = [](Graph& g, const std::vector<Value>& v) {
        return std::vector{ops::total_norm(g, v)};
      };
      const double expected = run_reference(c).at("y0").at(0);
      CHECK(std::abs(run_tested(c).at("y0").at(0) - expected) <= 1.001 * kEps * expected);
    }
  });
}

}  // namespace
}  // namespace keel::test
