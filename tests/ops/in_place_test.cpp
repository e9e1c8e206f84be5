// Every claim of an op that it may write an output over an input, tested with aliased buffers.
#include <doctest/doctest.h>

#include <cstring>
#include <set>

#include "backends/reference/backend.h"
#include "src/ops/dropout.h"
#include "src/ops/elementwise.h"
#include "src/ops/loss.h"
#include "src/ops/mixture_density.h"
#include "src/ops/norm_noise.h"
#include "src/ops/op_table.h"
#include "src/ops/optimizer_step.h"
#include "src/ops/recurrent.h"
#include "src/ops/search.h"
#include "src/ops/softmax.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

// The inputs of one node of an op with claims.
struct Case {
  const OpInfo* op;
  std::vector<Tensor> inputs;
  Attrs attrs;
};

Case case_of(const OpInfo& op, std::initializer_list<Shape> shapes, Attrs attrs = {}) {
  Case c{&op, {}, std::move(attrs)};
  for (const Shape& s : shapes) {
    c.inputs.push_back(random_normal(s, 1 + std::uint32_t(c.inputs.size())));
  }
  return c;
}

std::vector<Case> elementwise_cases() {
  const Shape s{3, 5};
  std::vector<Case> cases;
  for (int i = 0; i < kEwCount; ++i) {
    const EwCode code = static_cast<EwCode>(i);
    Case c = arity(code) == 1   ? case_of(elementwise_op(code), {s})
             : arity(code) == 2 ? case_of(elementwise_op(code), {s, s})
                                : case_of(elementwise_op(code), {s, s, s});
    if (code == EwCode::kScale) c.attrs = ScaleAttrs{2, 1};
    if (code == EwCode::kCast) c.attrs = CastAttrs{DType::kF64};
    if (code == EwCode::kSelect) c.inputs[0] = Tensor(DType::kU8, s);
    cases.push_back(std::move(c));
  }
  const EwProgram program{4,
                          {{EwCode::kAdd, {0, 1, -1}, {}},
                           {EwCode::kMul, {4, 2, -1}, {}},
                           {EwCode::kSub, {5, 3, -1}, {}},
                           {EwCode::kMul, {6, 0, -1}, {}}}};
  cases.push_back(case_of(kFusedElementwise, {s, s, s, s}, FusedAttrs{program}));
  return cases;
}

std::vector<Case> other_cases() {
  const Shape s{3, 5};
  std::vector<Case> cases;
  cases.push_back(case_of(kSoftmax, {s}));
  cases.push_back(case_of(kLogSoftmax, {s}));
  cases.push_back(case_of(kSoftmaxBackward, {s, s}));
  cases.push_back(case_of(kLogSoftmaxBackward, {s, s}));
  cases.push_back(case_of(kBceWithLogitsBackward, {s, s, {}, {}}));
  cases.push_back(case_of(kCrossEntropyBackward, {s, {3}, {3}, {}, {}, {}}, CrossEntropyAttrs{}));
  cases.back().inputs[1] = i32({3}, {4, -1, 0});
  cases.push_back(case_of(kMixtureDensityBackward, {{3, 13}, {3, 3}, {3}, {3}}, MixtureAttrs{}));
  cases.back().inputs[2] = Tensor::of<std::uint8_t>({3}, {1, 0, 1});
  for (const OpInfo* op : {&kDropout, &kDropoutBackward}) {
    cases.push_back(case_of(*op, {s, {}, {}}, DropoutAttrs{0.5, 1, 1}));
    for (std::size_t i : {1, 2}) cases.back().inputs[i] = i32({}, {1});
  }
  for (const OpInfo* op : {&kNormNoise, &kNormNoiseBackward}) {
    cases.push_back(case_of(*op, {s, {}, {}, {3}}, NormNoiseAttrs{}));
    for (std::size_t i : {1, 2}) cases.back().inputs[i] = i32({}, {1});
    cases.back().inputs[3] = Tensor::of<std::uint8_t>({3}, {1, 0, 1});
  }
  const Tensor mask = Tensor::of<std::uint8_t>({3}, {1, 0, 1});
  const Shape three{3, 15}, four{3, 20}, two{3, 10};
  cases.push_back(case_of(kLstmCell, {four, four, s, {3}}));
  cases.push_back(case_of(kLstmCellBackward, {three, s, s, s, s, {3}}));
  cases.push_back(case_of(kLstmOutput, {s, s, s, {3}}));
  cases.push_back(case_of(kLstmOutputBackward, {s, s, s, {3}}));
  cases.push_back(case_of(kGruCell, {two, two, s, s, s, {3}}));
  cases.push_back(case_of(kGruCellBackward, {three, s, s, s, {3}}));
  for (auto c = cases.end() - 6; c != cases.end(); ++c) c->inputs.back() = mask.clone();
  cases.push_back(case_of(kScatter, {{2, 3, 5}, {2, 1, 5}, {}}));
  cases.back().inputs[2] = i32({}, {1});
  cases.push_back(case_of(kSgdStep, {s, s, {}, {}, s}, SgdAttrs{0.9, 0.1, true}));
  cases.push_back(case_of(kAdamStep, {s, s, {}, {}, {}, s, s}, AdamAttrs{.weight_decay = 0.1}));
  cases.back().inputs[4] = i32({}, {3});
  for (double& v : cases.back().inputs[6].as<double>()) v *= v;
  const auto by_rows = [&](const OpInfo& op, std::initializer_list<Shape> shapes, Attrs attrs) {
    cases.push_back(case_of(op, shapes, std::move(attrs)));
    cases.back().inputs.back() = i32({2}, {1, 3});
  };
  const Shape rows{2, 5};
  by_rows(kSgdStep, {s, rows, {}, {}, s, {2}}, SgdAttrs{.momentum = 0.9, .lazy = true});
  by_rows(kSgdStep, {s, rows, {}, {}, s, {2}}, SgdAttrs{.momentum = 0.9});
  cases.push_back(case_of(kAdagradStep, {s, s, {}, {}, s}, AdagradAttrs{}));
  for (double& h : cases.back().inputs[4].as<double>()) h *= h;
  cases.push_back(case_of(kRmspropStep, {s, s, {}, {}, s, s, s}, GravesAttrs{}));
  for (double& n : cases.back().inputs[4].as<double>()) n = 4 + n * n;
  return cases;
}

// Runs the node with fresh outputs, or with output `claim.output` over input `claim.input`.
std::vector<Tensor> run_node(const Case& c, const InPlace* claim) {
  reference::ReferenceBackend backend;
  Graph g;
  std::vector<Value> values;
  std::vector<Tensor> inputs, outputs;
  Binding binding;
  for (const Tensor& t : c.inputs) {
    values.push_back(g.input(fmt::format("x{}", values.size()), t.type()));
    inputs.push_back(t.clone());
    binding.inputs.push_back({inputs.back().data(), t.type()});
  }
  const Node& node = g.node(g.add(*c.op, values, c.attrs));
  for (const TensorType& type : node.outputs) {
    outputs.emplace_back(type);
    binding.outputs.push_back({outputs.back().data(), type});
  }
  if (claim) {
    binding.outputs[std::size_t(claim->output)].data =
        binding.inputs[std::size_t(claim->input)].data;
  }
  const Prepared prepared = backend.prepare({g, node});
  std::vector<std::byte> workspace(std::size_t(prepared.workspace));
  binding.workspace = workspace.data();
  prepared.bind(binding)();
  if (claim) outputs[std::size_t(claim->output)] = std::move(inputs[std::size_t(claim->input)]);
  return outputs;
}

void check_claims(const Case& c) {
  CAPTURE(c.op->name);
  const std::vector<Tensor> expected = run_node(c, nullptr);
  for (const InPlace& claim : c.op->in_place) {
    CAPTURE(claim.input);
    CAPTURE(claim.output);
    if (claim.input >= int(c.inputs.size())) continue;
    const Tensor& input = c.inputs[std::size_t(claim.input)];
    if (input.type() != expected[std::size_t(claim.output)].type()) continue;
    const std::vector<Tensor> got = run_node(c, &claim);
    for (std::size_t j = 0; j < expected.size(); ++j) check_close(got[j], expected[j], 0);
  }
}

TEST_CASE("in place: every claim gives the same bits over its input") {
  std::set<std::string_view> covered;
  for (const auto& cases : {elementwise_cases, other_cases}) {
    for (const Case& c : cases()) {
      check_claims(c);
      covered.insert(c.op->name);
    }
  }
  // Norms test their claims beside themselves.
#define X(name, Name) covered.insert({#name, #name "_backward"});
#include "norm_list.inc"
#undef X
  for (const OpInfo* op : all_ops()) {
    CAPTURE(op->name);
    CHECK((op->in_place.empty() || covered.contains(op->name)));
  }
}

}  // namespace
}  // namespace keel::test
