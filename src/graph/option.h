// Options of a task or of a training: a struct that lists its fields with their meaning and limits.
// The recipe's keys, their limits and `keel list keys` come from this list.
//
//   struct Options {
//     std::int64_t width = 240;
//     static constexpr auto fields() {
//       return std::tuple{option("width", &Options::width, "units of a layer", between(1, 65536))};
//     }
//   };
#pragma once

#include <concepts>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "src/core/choice_list.h"
#include "src/graph/attrs.h"

namespace keel {

// The permitted numbers of an option: from `least` to `most`; either end may be excluded.
struct Range {
  double least = -std::numeric_limits<float>::max(), most = std::numeric_limits<float>::max();
  bool above = false, below = false;  // whether `least` or `most` itself is excluded
  std::string_view words = {};        // the range in words; empty: made from the numbers

  // Numbers that are not finite lie in no range.
  bool holds(double value) const;
  // "1 to 20", "in [0, 1)", ">= 1" or "> 0"; empty if nothing is excluded.
  std::string text() const;
};

constexpr Range between(double least, double most) { return {.least = least, .most = most}; }
constexpr Range at_least(double least) { return {.least = least}; }
constexpr Range more_than(double least) { return {.least = least, .above = true}; }
constexpr Range more_than(double least, double most) {
  return {.least = least, .most = most, .above = true};
}
constexpr Range fraction() { return {.least = 0, .most = 1, .below = true}; }
// A range described in words, for texts and for numbers that need more explanation.
constexpr Range described(std::string_view words, Range range = {}) {
  range.words = words;
  return range;
}
constexpr Range norm_name() { return described("a norm"); }

template <class Struct, class Member>
struct Option {
  std::string_view name;
  Member Struct::*member;
  std::string_view about;
  Range range;
};

// The types of options: those that can be written as text and read back.
template <class T>
concept OptionType = requires(const T& value, T& read, std::string_view text) {
  { attr_text(value) } -> std::same_as<std::string>;
  attr_parse(text, read);
};

template <class Struct, class Member>
constexpr Option<Struct, Member> option(std::string_view name, Member Struct::*member,
                                        std::string_view about, Range range = {}) {
  static_assert(OptionType<Member>,
                "an option is a bool, a std::int64_t (not an int), a double (not a float), a "
                "std::string, a std::vector<std::int64_t>, or an enum class with choice_words()");
  return {name, member, about, range};
}

// Whether every field has a description; every struct of options has a static_assert of it.
template <class Options>
constexpr bool all_documented() {
  return std::apply([](const auto&... f) { return (!f.about.empty() && ...); }, Options::fields());
}

// The facts about an option that `keel list keys` prints.
struct OptionFact {
  std::string name, about, value, range;  // the value is that of the struct that was asked
};

// "sgd, adam or adamw", "true or false", "integer, 1 to 20", "number in [0, 1)".
template <class T>
std::string range_text(const Range& range) {
  if constexpr (Choice<T>) {
    constexpr auto kWords = choice_words(T{});
    return choice_list(kWords);
  }
  const std::string text = range.text();
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if (!range.words.empty()) return text;
  const char* kind = std::is_same_v<T, std::string>    ? "text"
                     : std::is_same_v<T, std::int64_t> ? "integer"
                                                       : "number";
  return text.empty() ? kind : std::string(kind) + (text.front() == 'i' ? " " : ", ") + text;
}

template <class Options>
std::vector<OptionFact> option_facts(const Options& options) {
  std::vector<OptionFact> facts;
  const auto append = [&]<class S, class M>(const Option<S, M>& f) {
    facts.push_back({std::string(f.name), std::string(f.about), attr_text(options.*f.member),
                     range_text<M>(f.range)});
  };
  std::apply([&](const auto&... f) { (append(f), ...); }, Options::fields());
  return facts;
}

// Throws Error{kUsage}, beginning with the option's name, if a number is out of its range, or is
// none of float32, in which networks compute: too large, or so small that it would be 0.
void check_range(std::string_view name, const Range& range, double value, const std::string& text);

template <class Options>
void check_ranges(const Options& options) {
  const auto check_one = [&]<class S, class M>(const Option<S, M>& f) {
    const M& value = options.*f.member;
    if constexpr (std::is_same_v<M, double> || std::is_same_v<M, std::int64_t>) {
      check_range(f.name, f.range, double(value), attr_text(value));
    } else if constexpr (requires { value.n; }) {
      check_range(f.name, f.range, double(value.n), attr_text(value));
    }
  };
  std::apply([&](const auto&... f) { (check_one(f), ...); }, Options::fields());
}

}  // namespace keel
