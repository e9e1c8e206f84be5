#include "frontend/io/json_text.h"

#include <nlohmann/json.hpp>

namespace keel::io {
namespace {

std::optional<std::string> text_at(std::string_view json, std::string_view key,
                                   bool takes_numbers) {
  const nlohmann::json value = nlohmann::json::parse(json, nullptr, false);
  if (!value.is_object()) return std::nullopt;
  const auto found = value.find(key);
  if (found == value.end()) return std::nullopt;
  if (takes_numbers && found->is_number_integer()) return found->dump();
  return found->is_string() ? std::optional(found->get<std::string>()) : std::nullopt;
}

}  // namespace

std::optional<std::string> json_text(std::string_view json, std::string_view key) {
  return text_at(json, key, false);
}

std::optional<std::string> json_word(std::string_view json, std::string_view key) {
  return text_at(json, key, true);
}

}  // namespace keel::io
