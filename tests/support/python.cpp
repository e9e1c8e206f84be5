#include "tests/support/python.h"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "frontend/io/child.h"
#include "src/core/error.h"
#include "tests/support/temp_dir.h"

namespace keel::test {
namespace {

constexpr int kNothingToImport = 77;

// Runs the text in `script.py` with what it prints in `said` and its progress nowhere, and without
// an import ends with 77.
const char* const kRunner = R"(import contextlib, sys
with open("said", "w", encoding="utf-8", newline="\n") as said, open("progress", "w") as progress, \
        contextlib.redirect_stdout(said), contextlib.redirect_stderr(progress):
    try:
        exec(compile(open("script.py", encoding="utf-8").read(), "script.py", "exec"))
    except ImportError:
        sys.exit(77)
)";

int exit_code_of(const std::vector<std::string>& command) {
  try {
    io::Child child(command);
    while (true) {
      if (const std::optional<int> code = child.ended()) return *code;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  } catch (const Error&) {
    return kNothingToImport;
  }
}

}  // namespace

std::optional<std::string> python_says(const std::string& what, const std::string& script,
                                       const std::filesystem::path& folder) {
  const char* named = std::getenv("KEEL_PYTHON");
  const std::string python = named != nullptr ? named : "python3";
  write_bytes(folder / "script.py", script);
  const std::string enter = fmt::format("import os; os.chdir({:?})\n", folder.string());
  const int code = exit_code_of({python, "-c", enter + kRunner});
  if (code == kNothingToImport) {
    MESSAGE("skipped: " << python << " has not what is needed for " << what);
    return std::nullopt;
  }
  CHECK(code == 0);
  return read_bytes(folder / "said");
}

}  // namespace keel::test
