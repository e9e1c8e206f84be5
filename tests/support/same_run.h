// Whether two runs end equal: checkpoints to the byte, and the lines of the metrics.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace keel::test {

bool same_bytes(const std::filesystem::path& a, const std::filesystem::path& b);

// Lines of a run's metrics without the values that depend on the clock.
std::vector<nlohmann::ordered_json> timeless_metrics(const std::filesystem::path& folder);
// Its result.json without them.
nlohmann::ordered_json timeless_result(const std::filesystem::path& folder);

// Checks that the folders of two runs have the same files with the same bytes, except for times,
// TensorBoard's events (which are times) and locks.
void check_same_files(const std::filesystem::path& a, const std::filesystem::path& b);

// Checks that the checkpoints of `step` are the same, and so are the best ones and all metrics.
void check_same_end(const std::filesystem::path& a, const std::filesystem::path& b,
                    std::int64_t step);

}  // namespace keel::test
