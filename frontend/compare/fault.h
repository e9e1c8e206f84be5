// Faults on purpose, in what one node of one backend gives: a comparison has to name that node.
#pragma once

#include <string>
#include <string_view>

#include "src/core/choice.h"
#include "src/core/tensor.h"

namespace keel::compare {

enum class FaultKind {
  kSign,    // every element is negated
  kScale,   // every element is multiplied by `by`
  kSwap,    // the largest and the smallest element change places
  kStale,   // nothing is written: the memory holds what it held
  kDrop,    // the last eighth of the elements, at least one, is not written
  kOffset,  // `by` times the root of the mean square is added to every element
};
constexpr auto choice_words(FaultKind) {
  return std::to_array<std::string_view>({"sign", "scale", "swap", "stale", "drop", "offset"});
}

struct Fault {
  std::string node;     // its path, or that of a leaf, whose update then is at fault
  std::string backend;  // empty: the first one that is compared
  FaultKind kind = FaultKind::kSign;
  int port = 0;   // which output
  double by = 0;  // 0: 1.1 of kScale, 0.1 of kOffset
  int step = -1;  // the only step that it strikes; -1: all

  // "node=conv1/conv2d,kind=scale,by=1.01,backend=onednn,port=0,step=2"; node and kind are needed.
  // Throws Error{kUsage} for any other text.
  static Fault parse(std::string_view text);
  std::string text() const;
};

// Spoils an output. `former` is what its memory held before. Throws Error{kUsage} when that changes
// no bit, as a fault in nothing is none.
void plant(const Fault& fault, Tensor& output, const Tensor& former);

}  // namespace keel::compare
