// Attributes of an op: a plain struct that lists its fields once, held type-erased by a node.
//
//   struct ScaleAttrs {
//     double factor = 1;
//     static constexpr auto fields() { return std::tuple{field("factor", &ScaleAttrs::factor)}; }
//   };
//
// The list gives printing, comparison and reading from text without a second description.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "src/core/choice.h"
#include "src/core/dtype.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace keel {

template <class Struct, class Member>
struct Field {
  std::string_view name;
  Member Struct::*member;
};

template <class Struct, class Member>
constexpr Field<Struct, Member> field(std::string_view name, Member Struct::*member) {
  return {name, member};
}

struct NoAttrs {
  static constexpr auto fields() { return std::tuple{}; }
};

std::string attr_text(bool value);
std::string attr_text(double value);
std::string attr_text(std::int64_t value);
std::string attr_text(DType value);
std::string attr_text(const std::string& value);
std::string attr_text(const Shape& value);
std::string attr_text(const std::vector<std::int64_t>& value);
std::string attr_text(Choice auto value) { return std::string(choice_text(value)); }

// Parse a value from exactly the text that attr_text prints for it. Error{kUsage} says what was
// expected and what was found.
void attr_parse(std::string_view text, bool& value);
void attr_parse(std::string_view text, double& value);
void attr_parse(std::string_view text, std::int64_t& value);
void attr_parse(std::string_view text, DType& value);
void attr_parse(std::string_view text, std::string& value);
void attr_parse(std::string_view text, Shape& value);
void attr_parse(std::string_view text, std::vector<std::int64_t>& value);
template <Choice E>
void attr_parse(std::string_view text, E& value) {
  value = parse_choice<E>(text);
}

// Every field of an attribute struct as text: "factor=2 offset=1".
template <class T>
std::string fields_text(const T& attrs) {
  std::string text;
  auto append = [&](const auto& f) {
    if (!text.empty()) text += ' ';
    text += std::string(f.name) + '=' + attr_text(attrs.*f.member);
  };
  std::apply([&](const auto&... f) { (append(f), ...); }, T::fields());
  return text;
}

// The value of the field called `name` if that is a number, or 1 for true and 0 for false; else
// nothing.
template <class T>
std::optional<double> number_of(const T& attrs, std::string_view name) {
  std::optional<double> number;
  auto take = [&](const auto& f) {
    using Value = std::decay_t<decltype(attrs.*f.member)>;
    if constexpr (std::is_arithmetic_v<Value>) {
      if (f.name == name) number = double(attrs.*f.member);
    }
  };
  std::apply([&](const auto&... f) { (take(f), ...); }, T::fields());
  return number;
}

// Sets the field called `name` from text. Returns false when there is no such field.
template <class T>
bool set_field(T& attrs, std::string_view name, std::string_view text) {
  auto set = [&](const auto& f) {
    if (f.name != name) return false;
    attr_parse(text, attrs.*f.member);
    return true;
  };
  return std::apply([&](const auto&... f) { return (set(f) || ...); }, T::fields());
}

// Sets fields one by one from text as fields_text prints it, in any order. Throws Error{kUsage},
// "eps: expected a number, got 'x'"; also for a name that is not in `names`, for one given twice,
// and for one without a value.
using SetField = std::function<bool(std::string_view name, std::string_view text)>;
void set_fields(std::string_view text, std::span<const std::string_view> names,
                const SetField& set);

template <class T>
void set_fields(T& attrs, std::string_view text) {
  constexpr auto kNames = std::apply(
      [](const auto&... f) { return std::array<std::string_view, sizeof...(f)>{f.name...}; },
      T::fields());
  set_fields(text, kNames, [&](std::string_view name, std::string_view value) {
    return set_field(attrs, name, value);
  });
}

// Any attribute struct. Copies share one immutable value.
class Attrs {
 public:
  Attrs() : Attrs(none()) {}
  template <class T>
  requires requires { T::fields(); }
  Attrs(T value) : holder_(std::make_shared<Holder<T>>(std::move(value))) {}  // NOLINT: implicit

  // The struct itself. If the node carries another struct, throws Error{kUsage} that
  // shows the fields of both.
  template <class T>
  const T& as() const {
    const T* value = find<T>();
    if (value == nullptr) {
      fail(ErrorKind::kUsage, "attributes: expected '{}', got '{}'", fields_text(T{}), text());
    }
    return *value;
  }
  // The struct itself, or null when it is another one.
  template <class T>
  const T* find() const {
    const auto* holder = dynamic_cast<const Holder<T>*>(holder_.get());
    return holder == nullptr ? nullptr : &holder->value;
  }
  // "eps=1e-05 axes=1"
  std::string text() const { return holder_->text(); }
  // number_of the struct.
  std::optional<double> number(std::string_view name) const { return holder_->number(name); }
  // Returns a copy in which the fields named by the text are set from it; see set_fields.
  Attrs with(std::string_view text) const { return Attrs(holder_->with(text)); }
  friend bool operator==(const Attrs& a, const Attrs& b) {
    return a.holder_ == b.holder_ || a.text() == b.text();
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual std::string text() const = 0;
    virtual std::optional<double> number(std::string_view name) const = 0;
    virtual std::shared_ptr<const Base> with(std::string_view text) const = 0;
  };
  template <class T>
  struct Holder : Base {
    explicit Holder(T v) : value(std::move(v)) {}
    std::string text() const override { return fields_text(value); }
    std::optional<double> number(std::string_view name) const override {
      return number_of(value, name);
    }
    std::shared_ptr<const Base> with(std::string_view text) const override {
      T changed = value;
      set_fields(changed, text);
      return std::make_shared<Holder>(std::move(changed));
    }
    T value;
  };
  explicit Attrs(std::shared_ptr<const Base> holder) : holder_(std::move(holder)) {}
  // The struct without fields, shared by the many nodes without attributes.
  static const Attrs& none() {
    static const Attrs kNone{NoAttrs{}};
    return kNone;
  }
  std::shared_ptr<const Base> holder_;
};

}  // namespace keel
