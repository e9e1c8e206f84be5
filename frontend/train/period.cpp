#include "frontend/train/period.h"

namespace keel::train {

std::string attr_text(const Period& period) {
  return fmt::format("{}{}", period.n, period.unit == PeriodUnit::kEpochs ? 'e' : 'u');
}

void attr_parse(std::string_view text, Period& period) {
  const bool has_unit = text.ends_with('e') || text.ends_with('u');
  check(has_unit || text == "0", ErrorKind::kUsage,
        "expected epochs or updates like 1e or 300u, got '{}'", text);
  Period parsed{.n = 0, .unit = text.ends_with('u') ? PeriodUnit::kUpdates : PeriodUnit::kEpochs};
  try {
    keel::attr_parse(text.substr(0, text.size() - (has_unit ? 1 : 0)), parsed.n);
  } catch (const Error&) {
    fail(ErrorKind::kUsage, "expected epochs or updates like 1e or 300u, got '{}'", text);
  }
  period = parsed;
}

}  // namespace keel::train
