// The table of known instructions. Each concern adds its own rows.
#pragma once

#include <map>
#include <string>

#include "tests/ptx/instruction.h"

namespace keel::ptx {

class Forms {
 public:
  void add(Form form) {
    std::string name = form.name;
    all_.emplace(std::move(name), std::move(form));
  }
  const std::map<std::string, Form, std::less<>>& all() const { return all_; }

 private:
  std::map<std::string, Form, std::less<>> all_;
};

void add_integer_forms(Forms& forms);
void add_wide_forms(Forms& forms);
void add_bit_forms(Forms& forms);
void add_float_forms(Forms& forms);
void add_rounded_forms(Forms& forms);
void add_approximate_forms(Forms& forms);
void add_compare_forms(Forms& forms);
void add_convert_forms(Forms& forms);
void add_move_forms(Forms& forms);
void add_memory_forms(Forms& forms);
void add_together_forms(Forms& forms);
void add_flow_forms(Forms& forms);

}  // namespace keel::ptx
