// Results that were rounded to bfloat16, once or before the product with the gain too.
#include "src/core/bf16.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "frontend/identify/identify.h"
#include "frontend/identify/trial.h"

namespace keel::identify {
namespace {

// Fewer different numbers may be those of bfloat16 by chance, such as small integers.
constexpr std::size_t kLeastDifferent = 16;

// The share of the elements of y that a rounding of y, with or without one of xhat before the
// product with the gain, gives exactly.
double share_equal(const Tensor& y, const Tensor& xhat, const Tensor& product, bool xhat_first) {
  std::int64_t equal = 0;
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    // The program's gain, or 1 + gain, is what makes the product of xhat.
    const double factor = xhat_first && xhat.at(i) != 0 ? product.at(i) / xhat.at(i) : 1;
    const double value = xhat_first ? rounded_to_bf16(xhat.at(i)) * factor : product.at(i);
    equal += y.at(i) == rounded_to_bf16(value);
  }
  return double(equal) / double(y.elements());
}

}  // namespace

bool is_bf16(const Tensor& y) {
  std::set<double> different;
  for (const double v : y.as<double>()) {
    if (rounded_to_bf16(v) != v) return false;
    if (different.size() < kLeastDifferent) different.insert(v);
  }
  return different.size() >= kLeastDifferent;
}

void add_bf16_rounding(Judged& y) {
  for (std::int64_t i = 0; i < y.value.elements(); ++i) {
    y.bound.as<double>()[std::size_t(i)] += 2 * kBf16Eps * std::abs(y.value.at(i));
  }
}

std::string place_of_rounding(Backend& reference, const Given& given, const Form& form) {
  if (!is_bf16(given.y)) return "";
  std::string line = "y is rounded to bfloat16";
  if (!given.gain || given.bias) return line;
  Given plain;
  plain.x = given.x.clone();
  Form own = form;
  own.adds_one = false;
  const Tensor xhat = Trial(reference, plain, own).y(), product = Trial(reference, given, form).y();
  const double once = share_equal(given.y, xhat, product, false),
               twice = share_equal(given.y, xhat, product, true);
  constexpr double kNearlyAll = 0.98;  // a program's float32 may fall on the other side of a tie
  if (std::max(once, twice) < kNearlyAll || (once >= kNearlyAll && twice >= kNearlyAll)) {
    return line + "; whether x is rounded before the product with the gain cannot be told";
  }
  return line + (twice > once ? ", and so is the normalized x before the product with the gain, as "
                                "in Llama (rmsnorm{cast_first=true}, keel_norms' cast_first)"
                              : " after the product with the gain, as in Gemma");
}

}  // namespace keel::identify
