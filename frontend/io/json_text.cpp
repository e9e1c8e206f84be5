#include "frontend/io/json_text.h"

#include <nlohmann/json.hpp>

namespace keel::io {
namespace {

std::optional<nlohmann::json> value_at(std::string_view json, std::string_view key) {
  int times = 0;
  const auto count = [&](int depth, nlohmann::json::parse_event_t event, const nlohmann::json& at) {
    if (depth == 1 && event == nlohmann::json::parse_event_t::key && at == key) ++times;
    return true;
  };
  const nlohmann::json value = nlohmann::json::parse(json, count, false);
  if (!value.is_object() || times > 1) return std::nullopt;
  const auto found = value.find(key);
  return found == value.end() ? std::nullopt : std::optional(*found);
}

std::optional<std::string> text_at(std::string_view json, std::string_view key,
                                   bool takes_numbers) {
  const std::optional<nlohmann::json> value = value_at(json, key);
  if (!value) return std::nullopt;
  if (takes_numbers && value->is_number_integer()) return value->dump();
  return value->is_string() ? std::optional(value->get<std::string>()) : std::nullopt;
}

}  // namespace

std::optional<std::string> json_text(std::string_view json, std::string_view key) {
  return text_at(json, key, false);
}

std::optional<std::string> json_word(std::string_view json, std::string_view key) {
  return text_at(json, key, true);
}

std::optional<std::string> json_value(std::string_view json, std::string_view key) {
  const std::optional<nlohmann::json> value = value_at(json, key);
  return value ? std::optional(value->dump()) : std::nullopt;
}

}  // namespace keel::io
