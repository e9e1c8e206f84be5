// One page of HTML that needs nothing but itself: no script, no font, no picture from elsewhere.
#pragma once

#include <string>
#include <string_view>

#include "frontend/report/table.h"

namespace keel::report {

// Texts are escaped; every element is closed, so that the page can be read as XML, too.
class Page {
 public:
  explicit Page(std::string_view title);

  void heading(std::string_view text);
  void paragraph(std::string_view text);
  // Numbers to the right. A table without rows below its heading is left out.
  void table(const Rows& rows);
  // `svg` as io::plot_svg gives it.
  void figure(std::string_view svg, std::string_view caption);
  // Lines as they are.
  void code(std::string_view text);

  // The page; nothing can be added any more.
  std::string take();

 private:
  void element(std::string_view name, std::string_view text);

  std::string html_;
};

}  // namespace keel::report
