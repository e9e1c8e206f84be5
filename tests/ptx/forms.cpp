#include "tests/ptx/forms.h"

namespace keel::ptx {
namespace {

const Forms& forms() {
  static const Forms made = [] {
    Forms all;
    for (auto* const add :
         {add_integer_forms, add_wide_forms, add_bit_forms, add_float_forms, add_rounded_forms,
          add_approximate_forms, add_compare_forms, add_convert_forms, add_move_forms,
          add_memory_forms, add_together_forms, add_flow_forms}) {
      add(all);
    }
    return all;
  }();
  return made;
}

}  // namespace

const Form* find_form(std::string_view name) {
  const auto at = forms().all().find(name);
  return at == forms().all().end() ? nullptr : &at->second;
}

std::vector<std::string> form_names() {
  std::vector<std::string> names;
  for (const auto& [name, form] : forms().all()) names.push_back(name);
  return names;
}

}  // namespace keel::ptx
