// Signs that are written in many ways, in one: what Moses does to the texts of WMT.
#pragma once

#include <string>
#include <string_view>

namespace keel::text {

// Moses' normalize-punctuation.perl, its rules in its order:
//   blanks     one before ( and after ), none within, none between ) and . ! : ? ; , nor before
//              % after a digit, : and ;
//   quotes     ` becomes ', '' and all curly, low and angle quotes become "; an apostrophe between
//              letters becomes ', U+2019 elsewhere " and other single quotes '
//   dashes     the short one becomes -, the long one - with blanks round it; the ellipsis ...
//   no-break   blanks of that kind go at quotes, and before % : ? ! ;
//   quotes at the end of a phrase   English has , and . before ", German, Spanish and French after
//              it, but . only where no < follows
//   numbers    a no-break blank between digits becomes a comma in German, Spanish, Czech and
//              French, and a point in other languages
// `language` is "en", "de", ... Throws Error{kBadInput} unless the line is UTF-8.
std::string normalized_punctuation(std::string_view line, std::string_view language);

// A blank for each character of Unicode's category C: control characters, formats, private ones and
// those that are not assigned (Moses' remove-non-printing-char.perl).
std::string with_printable_characters(std::string_view line);

}  // namespace keel::text
