#include "src/graph/kind_text.h"

namespace keel {

std::string_view kind_text(NodeKind kind) {
  switch (kind) {
    case NodeKind::kInput:
      return "input";
    case NodeKind::kParameter:
      return "parameter";
    case NodeKind::kState:
      return "state";
    case NodeKind::kCarry:
      return "carry";
    case NodeKind::kConstant:
      return "constant";
    case NodeKind::kOp:
      return "op";
  }
  return "?";
}

}  // namespace keel
