// Multi-linear attention against the judge, within what rounding may add.
#include "src/ops/multilinear_attention.h"

#include <cmath>

#include "backends/backend_config.h"
#ifdef KEEL_CUDA
#include "backends/cuda/multilinear_bytes.h"
#endif
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

struct MultilinearShape {
  std::int64_t b, n, rank, features;
  bool causal = true;

  std::vector<Shape> shapes() const {
    const Shape sequences{b, n, rank};
    return {sequences, sequences, sequences, {n, rank}, sequences, {n * n, features}};
  }
};

void check_multilinear(const MultilinearShape& s) {
  const std::string sizes = fmt::format("{} {} {} {} {}", s.b, s.n, s.rank, s.features, s.causal);
  CAPTURE(sizes);
  check_sampled([&](CaseBuilder& d) {
    std::vector<Value> in;
    for (const Shape& shape : s.shapes()) in.push_back(d.normal(shape));
    d.differentiate({ops::multilinear_attention(d.graph, {in[0], in[1], in[2], in[3], in[4], in[5]},
                                                {.causal = s.causal})});
  });
}

OpCase multilinear_case(const MultilinearShape& s) {
  return random_case(s.shapes(), [causal = s.causal](Graph& g, const std::vector<Value>& v) {
    return std::vector{
        ops::multilinear_attention(g, {v[0], v[1], v[2], v[3], v[4], v[5]}, {.causal = causal})};
  });
}

TEST_CASE("backend multilinear_attention: sequences, positions, ranks and features of every size") {
  for_each_target([] {
    for (const MultilinearShape& s : {MultilinearShape{1, 1, 1, 1},
                                      {2, 3, 2, 5},
                                      {1, 9, 8, 16},
                                      {7, 17, 5, 33},
                                      {8, 7, 16, 31},
                                      {17, 8, 3, 65},
                                      {9, 10, 17, 40},
                                      {3, 11, 4, 7, false},
                                      {9, 9, 6, 17, false}}) {
      check_multilinear(s);
    }
  });
}

// While it lives, CUDA takes nine sequences of kTwoChunks at a time. They are not aligned to more
// than a float.
constexpr MultilinearShape kTwoChunks{11, 3, 61, 5};
class NineAtATime {
#ifdef KEEL_CUDA
 public:
  NineAtATime() { cuda::most_multilinear_bytes = 9 * 9 * (61 + 3) * std::int64_t(sizeof(float)); }
  ~NineAtATime() { cuda::most_multilinear_bytes = before_; }

 private:
  std::int64_t before_ = cuda::most_multilinear_bytes;
#endif
};

TEST_CASE("backend multilinear_attention: more sequences than are taken at a time") {
  [[maybe_unused]] const NineAtATime nine;
  check_multilinear(kTwoChunks);
}

TEST_CASE("backend multilinear_attention: T of all sequences never exists at once") {
  constexpr MultilinearShape kShape{2000, 32, 32, 8};
  Graph g;
  std::vector<Value> in;
  for (const Shape& shape : kShape.shapes()) {
    in.push_back(g.input(fmt::format("in{}", in.size()), {DType::kF32, shape}));
  }
  const Value y = ops::multilinear_attention(g, {in[0], in[1], in[2], in[3], in[4], in[5]});
  const Value dy = g.input("dy", g.type(y));
  in.push_back(dy);
  const Value gradients = g.add(kMultilinearAttentionBackward, in, MultilinearAttrs{});
  const auto backend = make_backend(default_backend());
  constexpr std::int64_t kT = 2000 * 32 * 32 * 32 * std::int64_t(sizeof(float));
  CHECK(backend->prepare({g, g.node(y)}).workspace < kT / 2);
  CHECK(backend->prepare({g, g.node(gradients)}).workspace < kT / 2);
}

TEST_CASE("backend multilinear_attention: no sequences") {
  const Results got = run_tested(multilinear_case({0, 3, 2, 4}));
  CHECK(got.at("y0").elements() == 0);
  for (const char* sum : {"d3", "d5"}) {
    for (std::int64_t e = 0; e < got.at(sum).elements(); ++e) CHECK(got.at(sum).at(e) == 0);
  }
}

// Copies of sequence 0 of a case with many, alone.
OpCase first_sequence(const OpCase& all, std::int64_t n, std::int64_t rank) {
  OpCase one = multilinear_case({1, n, rank, all.inputs[5].shape()[1]});
  for (std::size_t i = 0; i < one.inputs.size(); ++i) {
    for (std::int64_t e = 0; e < one.inputs[i].elements(); ++e) {
      one.inputs[i].as<double>()[std::size_t(e)] = all.inputs[i].at(e);
    }
  }
  return one;
}

TEST_CASE("backend multilinear_attention: a sequence's bits do not depend on the others") {
  [[maybe_unused]] const NineAtATime nine;
  for (const MultilinearShape& s : {MultilinearShape{13, 11, 6, 21}, kTwoChunks}) {
    const OpCase all = multilinear_case(s);
    const Results many = run_tested(all), one = run_tested(first_sequence(all, s.n, s.rank));
    for (std::int64_t e = 0; e < one.at("y0").elements(); ++e) {
      REQUIRE(one.at("y0").at(e) == many.at("y0").at(e));
    }
  }
}

TEST_CASE("backend multilinear_attention: causal, later positions change no bit") {
  for (const std::int64_t b : {2, 9}) {
    constexpr std::int64_t kPositions = 10, kRank = 3;
    OpCase c = multilinear_case({b, kPositions, kRank, 5});
    c.gradients = false;
    const Tensor before = run_tested(c).at("y0").clone();
    constexpr std::int64_t kFrom = 6;
    for (const std::size_t input : {0, 1, 2, 4}) {
      for (std::int64_t e = 0; e < c.inputs[input].elements(); ++e) {
        if (e / kRank % kPositions >= kFrom) c.inputs[input].as<double>()[std::size_t(e)] *= -2;
      }
    }
    const Tensor after = run_tested(c).at("y0").clone();
    for (std::int64_t e = 0; e < before.elements(); ++e) {
      CAPTURE(e);
      REQUIRE((before.at(e) == after.at(e)) == (e / 5 % kPositions < kFrom));
    }
  }
}

}  // namespace
}  // namespace keel::test
