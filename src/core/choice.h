// A choice among named values: an enum class that lists the words for its values, in their order.
//
//   enum class Activation { kNone, kRelu };
//   constexpr auto choice_words(Activation) {
//     return std::to_array<std::string_view>({"none", "relu"}); }
//
// The list is found by argument-dependent lookup in the enum's namespace. Graphs and recipes print
// and parse choices with it.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace keel {

template <class E>
concept Choice = std::is_enum_v<E> && requires(E e) {
  choice_words(e);
};

template <Choice E>
constexpr std::string_view choice_text(E value) {
  return choice_words(value)[static_cast<std::size_t>(value)];
}

// The index of `text` in `words`. Throws Error{kUsage}, "expected none or relu, got 'tanh'".
std::size_t choice_index(std::string_view text, std::span<const std::string_view> words);

template <Choice E>
E parse_choice(std::string_view text) {
  constexpr auto kWords = choice_words(E{});
  return static_cast<E>(choice_index(text, kWords));
}

}  // namespace keel
