// Questions of attentive_reader for tests.
#pragma once

#include <fmt/format.h>

#include "models/attentive_reader/question.h"

namespace keel::test {

// Calls entity N otherwise: @entity followed by other(N).
template <class Other>
void rename_entities(models::Question& question, Other other) {
  const auto renamed = [&](std::string_view token) {
    if (!models::is_entity(token)) return std::string(token);
    return fmt::format("@entity{}", other(std::stoi(std::string(token.substr(7)))));
  };
  models::TokenText passage;
  for (const std::string_view token : question.passage.views()) passage.add(renamed(token));
  question.passage = passage;
  for (std::string& token : question.question) token = renamed(token);
  question.answer = renamed(question.answer);
}

}  // namespace keel::test
