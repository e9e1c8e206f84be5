// Readers of what is written on command lines, and of tables.
#include "frontend/compare/walk/fault.h"
#include "frontend/compare/walk/trace.h"
#include "frontend/nn/norm.h"
#include "frontend/train/period.h"
#include "studies/paper_table.h"
#include "tests/fuzz/target.h"

namespace keel::fuzz {
namespace {

// "name{a=b}", and after the first end of line the defaults.
void read_norm(std::string_view bytes) {
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  nn::Norm::parse(bytes.substr(0, end), bytes.substr(std::min(end + 1, bytes.size())));
}

void read_fault(std::string_view bytes) {
  const compare::Fault fault = compare::Fault::parse(bytes);
  expect(compare::Fault::parse(fault.text()).text() == fault.text(),
         "a fault changes when it is written");
}

void read_period(std::string_view bytes) {
  train::Period period;
  train::attr_parse(bytes, period);
  train::Period again;
  train::attr_parse(train::attr_text(period), again);
  expect(again.n == period.n && again.unit == period.unit, "a period changes when it is written");
}

// The file that says of what a trace is.
void read_trace(std::string_view bytes) {
  const MemoryFile file(bytes);
  char pattern[] = "/dev/shm/keel-fuzz-XXXXXX";
  expect(mkdtemp(pattern) != nullptr, "no folder");
  const std::filesystem::path folder = pattern;
  std::filesystem::create_symlink(file.path(), folder / "trace.safetensors");
  try {
    compare::TraceReader(folder).leaves(0);
  } catch (...) {
    std::filesystem::remove_all(folder);
    throw;
  }
  std::filesystem::remove_all(folder);
}

// Tables come with the program, so that what they may not say is a bug of keel's.
void read_tables(std::string_view bytes) {
  try {
    study::read_paper_tables(bytes, "input");
  } catch (const Error& error) {
    expect(error.kind() == ErrorKind::kInternal, error.what());
  }
}

}  // namespace

std::span<const Target> recipe_targets() {
  static constexpr Target kTargets[] = {{"norm", read_norm},
                                        {"fault", read_fault},
                                        {"period", read_period},
                                        {"trace", read_trace},
                                        {"tables", read_tables}};
  return kTargets;
}

}  // namespace keel::fuzz
