#include "tests/support/norm_golden.h"

#include <sstream>
#include <string>
#include <vector>

namespace keel::test {
namespace {

constexpr std::string_view kTexts[] = {
#include "tests/support/norm_golden_rows.inc"
    ,
#include "tests/support/norm_golden_columns.inc"
};

// The lines between "# section", "key =" and the next key, or "" when there is no such key.
std::string_view find(std::string_view text, std::string_view section, std::string_view key) {
  const std::string title = fmt::format("\n# {}\n", section), name = fmt::format("\n{} =", key);
  std::size_t begin = text.find(title);
  if (begin == text.npos) return "";
  text = text.substr(begin + title.size() - 1);
  text = text.substr(0, text.find("\n# "));
  begin = text.find(name);
  if (begin == text.npos) return "";
  text = text.substr(begin + name.size());
  std::size_t end = text.find('=');
  if (end != text.npos) end = text.rfind('\n', end);
  return text.substr(0, end);
}

}  // namespace

Tensor golden(std::string_view section, std::string_view key) {
  for (std::string_view text : kTexts) {
    std::istringstream numbers{std::string(find(text, section, key))};
    std::vector<double> values;
    for (double value; numbers >> value;) values.push_back(value);
    if (values.empty()) continue;
    const auto n = std::int64_t(values.size());
    return Tensor::of<double>(n == 24 ? Shape{4, 6} : Shape{n}, values);
  }
  fail(ErrorKind::kUsage, "golden: no '{}' in section '{}'", key, section);
}

void check_near(const Tensor& got, const Tensor& expected) {
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(got.at(i) - expected.at(i)) <= 1e-5);
  }
}

}  // namespace keel::test
