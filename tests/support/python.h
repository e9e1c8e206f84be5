// Runs the Python of this machine, for tests that compare keel with another program.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace keel::test {

// The output of a script, run in a folder by the Python that KEEL_PYTHON names, or else by python3;
// nothing, after a MESSAGE, if there is no Python or an import of the script fails. `what` is the
// purpose of the script. Any other failure of the script is a failed check.
std::optional<std::string> python_says(const std::string& what, const std::string& script,
                                       const std::filesystem::path& folder);

}  // namespace keel::test
