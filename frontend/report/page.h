// One page of HTML that loads nothing from elsewhere: no script, no font, no picture.
#pragma once

#include <string>
#include <string_view>

#include "frontend/report/table.h"

namespace keel::report {

// Texts are escaped; every element is closed, so that the page is also valid XML.
class Page {
 public:
  explicit Page(std::string_view title);

  void heading(std::string_view text);
  void paragraph(std::string_view text);
  // Numbers are aligned to the right. A table of more columns than fit on a page becomes several,
  // which all have the first column. A table that has only a heading is left out.
  void table(const Rows& rows);
  // Adds `svg`, as returned by io::plot_svg.
  void figure(std::string_view svg, std::string_view caption);
  // Adds lines unchanged.
  void code(std::string_view text);

  // Returns the page; nothing can be added after that.
  std::string take();

 private:
  void element(std::string_view name, std::string_view text);
  void narrow_table(const Rows& rows);

  std::string html_;
};

}  // namespace keel::report
