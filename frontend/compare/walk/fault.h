// Deliberate faults in the outputs of one node on one backend: a comparison has to name that node.
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
  kStale,   // nothing is written: the memory keeps its former content
  kDrop,    // the last eighth of the elements, at least one, is not written
  kOffset,  // `by` times the root of the mean square is added to every element
};
constexpr auto choice_words(FaultKind) {
  return std::to_array<std::string_view>({"sign", "scale", "swap", "stale", "drop", "offset"});
}

struct Fault {
  std::string node;     // its path, or the path of a leaf whose update is at fault
  std::string backend;  // empty: the first of the compared backends
  FaultKind kind = FaultKind::kSign;
  int port = 0;   // the number of the output
  double by = 0;  // 0: 1.1 of kScale, 0.1 of kOffset
  int step = -1;  // the only step with the fault; -1: all

  // "node=conv1/conv2d,kind=scale,by=1.01,backend=onednn,port=0,step=2"; node and kind are needed.
  // Throws Error{kUsage} for any other text.
  static Fault parse(std::string_view text);
  std::string text() const;
};

// Spoils an output. `former` is the former content of its memory. Throws Error{kUsage} when that
// changes no bit, since that would be no fault.
void plant(const Fault& fault, Tensor& output, const Tensor& former);

}  // namespace keel::compare
