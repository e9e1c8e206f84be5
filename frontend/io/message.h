// Messages to people while the program works: text on standard error. Data go to standard output.
#pragma once

#include <string_view>

namespace keel::io {

// Writes a line; the end of line is added. Text from outside is safe: it is written as
// keel::shown() gives it, with a '?' for every character that a terminal would obey. A message that
// cannot be written (the reader is gone, the disk of a log is full, standard error is closed) is
// dropped, since no work may be lost over it. This function and those below are the only ones that
// write to standard error.
void say(std::string_view line) noexcept;
// The line "warning: TEXT".
void warn(std::string_view text) noexcept;
// Writes text unchanged, without an end of line: a part of a line that changes on a terminal. It
// may contain control sequences; text from outside has to go through keel::shown() first.
void show(std::string_view text) noexcept;

}  // namespace keel::io
