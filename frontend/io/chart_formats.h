// Charts as PDF and PNG, made of their SVG files by the program rsvg-convert, of librsvg. In a PDF
// text stays text, in fonts that are embedded; a PNG has two pixels for each of the SVG.
#pragma once

#include <filesystem>
#include <vector>

namespace keel::io {

// The formats of a chart besides SVG.
struct ChartFormats {
  bool pdf = false, png = false;
};

// Throws Error{kIo}, with the name of Debian's package, if a format is asked for and the program is
// not installed.
void expect_converter(const ChartFormats& formats);

// Writes NAME.pdf and NAME.png beside a file NAME.svg, each whole or not at all, and returns their
// paths. The same SVG gives the same bytes. Throws Error{kIo}.
std::vector<std::filesystem::path> write_formats(const std::filesystem::path& svg,
                                                 const ChartFormats& formats);

}  // namespace keel::io
