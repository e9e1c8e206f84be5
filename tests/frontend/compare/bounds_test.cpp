// The rules that say what rounding may add: there is one for every op, and none is generous.
#include "frontend/compare/bounds/running_error.h"
#include "frontend/compare/walk/node_reference.h"
#include "tests/frontend/compare/helpers.h"

namespace keel::compare {
namespace {

TEST_CASE("bounds: a number with an error holds what float32 makes of it") {
  const float a = 0.1f, b = 3.3f, c = -7.7f;
  const Err product = Err(a) * Err(b), sum = product + Err(c), root = sqrt(Err(b) / Err(a));
  CHECK(std::abs(double(a * b) - product.value) <= product.error);
  CHECK(std::abs(double(a * b + c) - sum.value) <= sum.error);
  CHECK(std::abs(double(std::sqrt(b / a)) - root.value) <= root.error);
  CHECK(product.error < 2 * kEps * product.value);
  CHECK(root.error < 5 * kEps * root.value);
  CHECK(std::isinf((Err(1) / Err(0, 1)).error));
  const Err loose(4, 0.5);
  for (const Err& e : {Err(2) * loose, loose * Err(2), loose / Err(0.5)}) CHECK(e.error >= 1);
  CHECK((Err(8) / loose).error >= 8 / 3.5 - 2);
  CHECK((loose - loose).error >= 1);
}

TEST_CASE("bounds: a sum may be off by eps a term, and by less where it is long") {
  CHECK(sum_error(10) == 12 * kEps);
  CHECK(sum_error(10000) == 802 * kEps);
}

// Whether an error of input i changes a bound of a node that was compared.
bool widens(Backend& reference, const NodeReport& report, const NodeTensors& tensors, int i) {
  const Tensor& input = *tensors.inputs[std::size_t(i)];
  Tensor error(DType::kF64, input.shape());
  for (std::int64_t e = 0; e < input.elements(); ++e) {
    // As large as it takes for a sign to turn, or for equal numbers to differ.
    error.as<double>()[std::size_t(e)] = 2 * std::abs(input.at(e)) + 1;
  }
  std::vector<const Tensor*> errors(tensors.inputs.size());
  const auto bounds = [&] {
    return reference_node(reference, tensors.graph, report.node, tensors.inputs,
                          {.kernels = Kernels::kAny, .input_errors = errors})
        .bounds.largest;
  };
  const std::vector<Tensor> exact = bounds();
  errors[std::size_t(i)] = &error;
  const std::vector<Tensor> inexact = bounds();
  for (std::size_t port = 0; port < exact.size(); ++port) {
    for (std::int64_t e = 0; e < exact[port].elements(); ++e) {
      if (exact[port].at(e) != inexact[port].at(e)) return true;
    }
  }
  return false;
}

TEST_CASE("bounds: an input of which an error is said to count makes the bounds wider") {
  const TestBackends backends;
  for (const std::string& op : subject_ops()) {
    if (!has_own_subject(op)) continue;
    CompareOptions options;
    options.sink = [&](const NodeReport& report, const NodeTensors& tensors) {
      const Node& node = tensors.graph.node(report.node);
      if (report.op == "update" || is_view(node)) return;
      for (int i = 0; i < int(tensors.inputs.size()); ++i) {
        const Tensor* const input = tensors.inputs[std::size_t(i)];
        const bool counts = takes_input_error(node, i);
        if (!input || !counts || !is_floating(input->dtype())) continue;
        CAPTURE(report.op);
        CAPTURE(i);
        CHECK(widens(*backends.reference, report, tensors, i));
      }
    };
    for (const auto& subject : op_subjects(op)) backends.compare(*subject, options);
  }
}

TEST_CASE("bounds: of no value is more allowed than a ten thousandth of the values around it") {
  const TestBackends backends;
  for (const std::string& op : subject_ops()) {
    if (!has_own_subject(op)) continue;
    for (const auto& subject : op_subjects(op)) {
      CompareOptions options;
      options.sink = [&](const NodeReport& report, const NodeTensors& tensors) {
        CAPTURE(report.path);
        for (std::size_t j = 0; j < tensors.bounds.size(); ++j) {
          double bound = 0, size = 0;
          for (std::int64_t e = 0; e < tensors.bounds[j].elements(); ++e) {
            bound += tensors.bounds[j].at(e);
            size += std::abs(tensors.expected[j].at(e));
          }
          CHECK(bound <= 1e-4 * size + 1e-30);
        }
      };
      backends.compare(*subject, options);
    }
  }
}

}  // namespace
}  // namespace keel::compare
