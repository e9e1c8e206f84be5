// How the interpreter of PTX says what is wrong: with a program, or with what a program does.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace keel::ptx {

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw Fault(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace keel::ptx
