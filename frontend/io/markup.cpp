#include "frontend/io/markup.h"

#include <nlohmann/json.hpp>

namespace keel::io {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

// The JSON library replaces what is not UTF-8.
std::string valid_utf8(std::string_view text) {
  const auto replace = nlohmann::json::error_handler_t::replace;
  const std::string json = nlohmann::json(text).dump(-1, ' ', false, replace);
  return nlohmann::json::parse(json).get<std::string>();
}

}  // namespace

std::string clean_text(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string result;
  for (std::string_view rest = valid; !rest.empty();) {
    const auto first = static_cast<unsigned char>(rest[0]);
    const bool noncharacter = rest.starts_with("\uFFFE") || rest.starts_with("\uFFFF");
    const bool control = first < 0x20 || first == 0x7F;
    result += noncharacter || control ? kReplacement : rest.substr(0, 1);
    rest.remove_prefix(noncharacter ? 3 : 1);
  }
  return result;
}

std::string escape_markup(std::string_view text) {
  std::string result;
  for (const char c : clean_text(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace keel::io
