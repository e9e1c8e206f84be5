// A simple look at XML, for the SVG and HTML that keel writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace keel::test {

// Elements open and close in order, quotes of attributes pair up, text holds no bare markup and no
// entity but &amp; &lt; &gt; &quot;. A <!DOCTYPE html> may come first.
bool well_formed(std::string_view xml);

// The texts of all elements of a name, one after the other, as they are written.
std::vector<std::string> texts_of(std::string_view xml, std::string_view element);

}  // namespace keel::test
