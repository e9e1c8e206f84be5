#include "frontend/io/json_text.h"

#include <nlohmann/json.hpp>

namespace keel::io {

std::optional<std::string> json_text(std::string_view json, std::string_view key) {
  const nlohmann::json value = nlohmann::json::parse(json, nullptr, false);
  if (!value.is_object()) return std::nullopt;
  const auto found = value.find(key);
  if (found == value.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

}  // namespace keel::io
