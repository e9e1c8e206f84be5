#include "src/core/dtype_set.h"

#include <vector>

#include "src/core/choice_list.h"

namespace keel {

std::string DTypes::text() const {
  std::vector<std::string_view> names;
  for (const DType dtype : kAllDTypes) {
    if (contains(dtype)) names.push_back(name_of(dtype));
  }
  return names.empty() ? "nothing" : choice_list(names);
}

}  // namespace keel
