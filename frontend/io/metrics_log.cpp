// Writing, repairing and reading of metrics.jsonl.
#include "frontend/io/metrics_log.h"

#include <fcntl.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>

#include "frontend/io/input_file.h"
#include "src/core/error.h"

namespace keel::io {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// The text up to and including the last line end; what follows was never finished.
std::string_view finished(std::string_view text) { return text.substr(0, text.rfind('\n') + 1); }

ordered_json parse_line(std::string_view line, const fs::path& path, std::size_t number) {
  ordered_json value = ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
  check(value.is_object() && value.contains("step") && value["step"].is_number_integer(),
        ErrorKind::kBadInput, R"([metrics] {}:{}: expected an object with an integer "step")",
        path.string(), number);
  return value;
}

// Calls visit(line with its line end, parsed line) for every finished line.
template <class Visit>
void for_each_line(std::string_view text, const fs::path& path, Visit visit) {
  text = finished(text);
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n') + 1);
    visit(line, parse_line(line, path, number));
    text.remove_prefix(line.size());
  }
}

// Cuts the file down to what a run at `last_step` would have written.
const fs::path& mend(const fs::path& path, std::optional<std::int64_t> last_step) {
  std::error_code error;
  if (!fs::exists(path, error)) return path;
  const std::string text = InputFile(path).read_all();
  std::string kept;
  if (last_step) {
    for_each_line(text, path, [&](std::string_view line, const ordered_json& value) {
      if (value["step"].get<std::int64_t>() <= *last_step) kept += line;
    });
  } else {
    kept = finished(text);
  }
  if (kept != text) write_file_atomically(path, kept);
  return path;
}

}  // namespace

MetricsLog::MetricsLog(const fs::path& path, std::optional<std::int64_t> last_step)
    : file_(mend(path, last_step), O_WRONLY | O_CREAT | O_APPEND) {}

void MetricsLog::write(std::int64_t step, const ordered_json& values) {
  check(values.is_object() && !values.contains("step"), ErrorKind::kUsage,
        "[metrics] expected an object of values without a step of its own, got {}", values.dump());
  ordered_json line{{"step", step}};
  line.update(values);
  file_.write(line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n');
}

std::vector<ordered_json> read_metrics(const fs::path& path) {
  std::vector<ordered_json> lines;
  for_each_line(InputFile(path).read_all(), path,
                [&](std::string_view, ordered_json value) { lines.push_back(std::move(value)); });
  return lines;
}

}  // namespace keel::io
