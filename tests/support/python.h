// Asks the Python of this machine, for tests that hold keel against another program's numbers.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace keel::test {

// What a script prints when it is run in a folder by the Python that KEEL_PYTHON names, or else by
// python3; nothing, after a MESSAGE, where there is no Python or an import of the script fails.
// `what` is what the script is for. A script that fails otherwise is a failed check.
std::optional<std::string> python_says(const std::string& what, const std::string& script,
                                       const std::filesystem::path& folder);

}  // namespace keel::test
