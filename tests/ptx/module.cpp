#include "tests/ptx/module.h"

#include <algorithm>

#include "tests/ptx/fault.h"

namespace keel::ptx {
namespace {

// A variable of global memory, at an address of its alignment.
std::vector<std::byte> memory_of(const Variable& variable) {
  std::vector<std::byte> memory(static_cast<std::size_t>(variable.bytes));
  std::copy(variable.initial.begin(), variable.initial.end(), memory.begin());
  return memory;
}

std::vector<Variable> parameters(Reader& reader) {
  std::vector<Variable> all;
  reader.expect("(");
  while (!reader.take(")")) {
    reader.expect(".param");
    all.push_back(reader.variable());
    reader.take(",");
  }
  return all;
}

template <class Map>
auto* found(Map& map, const std::string& name) {
  const auto at = map.find(name);
  return at == map.end() ? nullptr : &at->second;
}

}  // namespace

Module::Module(std::string text) : text_(std::move(text)), tokens_(tokens_of(text_)) {
  Reader reader(tokens_);
  while (!reader.is_done()) read_item(reader);
}

const Function* Module::function(const std::string& name) const { return found(functions_, name); }
const Variable* Module::shared(const std::string& name) const { return found(shared_, name); }
std::byte* Module::global(const std::string& name) const {
  auto* const memory = found(globals_, name);
  return memory ? memory->data() : nullptr;
}

void Module::read_item(Reader& reader) {
  if (reader.take(".visible") || reader.take(".weak")) return;
  if (reader.take(".version") || reader.take(".target") || reader.take(".address_size")) {
    reader.next();
  } else if (reader.take(".entry")) {
    read_function(reader, true);
  } else if (reader.take(".func")) {
    read_function(reader, false);
  } else if (reader.take(".shared")) {
    Variable made = reader.variable();
    reader.expect(";");
    shared_.emplace(made.name, std::move(made));
  } else if (reader.take(".global")) {
    const Variable made = reader.variable();
    reader.expect(";");
    globals_.emplace(made.name, memory_of(made));
  } else {
    reader.refuse("is a directive that is not known");
  }
}

void Module::read_function(Reader& reader, bool is_entry) {
  Function made;
  made.is_entry = is_entry;
  if (!is_entry && reader.sees("(")) made.results = parameters(reader);
  made.name = reader.next().text;
  if (reader.sees("(")) made.parameters = parameters(reader);
  read_limits(reader, made);
  if (reader.take("{")) {
    made.body = reader.braced();
  } else {
    reader.expect(";");
  }
  Function& kept = functions_[made.name];
  if (kept.body.empty()) kept = std::move(made);
}

void Module::read_limits(Reader& reader, Function& made) {
  while (reader.peek().text.starts_with(".")) {
    if (reader.take(".maxntid")) {
      std::int64_t threads = reader.integer();
      while (reader.take(",")) threads *= reader.integer();
      made.most_threads = int(threads);
    } else if (reader.take(".minnctapersm")) {
      reader.integer();
    } else if (!reader.take(".noreturn")) {
      reader.refuse("is a limit that is not known");
    }
  }
}

}  // namespace keel::ptx
