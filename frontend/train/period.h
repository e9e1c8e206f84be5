// How often something happens: every N epochs or every N updates.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/graph/attrs.h"

namespace keel::train {

enum class PeriodUnit { kEpochs, kUpdates };

struct Period {
  std::int64_t n = 0;  // 0: never
  PeriodUnit unit = PeriodUnit::kEpochs;

  // Whether it falls on the end of an epoch, or of an update, when `done` of them are done.
  bool falls_on(PeriodUnit what, std::int64_t done) const {
    return n > 0 && unit == what && done % n == 0;
  }
  // How often it falls on one of the first `epochs` epochs or `updates` updates.
  std::int64_t times(std::int64_t epochs, std::int64_t updates) const {
    return n > 0 ? (unit == PeriodUnit::kEpochs ? epochs : updates) / n : 0;
  }
};

using keel::attr_parse;
using keel::attr_text;
// "2e" and "300u"; a bare 0 is never. Parsing throws Error{kUsage} for anything else.
std::string attr_text(const Period& period);
void attr_parse(std::string_view text, Period& period);

}  // namespace keel::train
