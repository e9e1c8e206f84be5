// The rules that say what rounding may add: there is one for every op, and none is generous.
#include "frontend/compare/running_error.h"
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
