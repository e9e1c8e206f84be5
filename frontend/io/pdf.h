// Pictures as PDF, made of their SVG files by the program rsvg-convert, of librsvg: its text stays
// text, in fonts that are embedded.
#pragma once

#include <filesystem>

namespace keel::io {

// Throws Error{kIo}, with the name of Debian's package, where the program is not installed.
void expect_pdf_converter();

// Writes NAME.pdf beside a file NAME.svg, whole or not at all, and returns its path. The same SVG
// gives the same bytes. Throws Error{kIo}.
std::filesystem::path write_pdf_of(const std::filesystem::path& svg);

}  // namespace keel::io
