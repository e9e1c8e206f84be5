// Unifies signs that are written in many ways, as Moses does for the texts of WMT.
#pragma once

#include <string>
#include <string_view>

namespace keel::text {

// Moses' normalize-punctuation.perl, with its rules in its order:
//   blanks     one before ( and after ), none within, none between ) and . ! : ? ; , nor before
//              % after a digit, : and ;
//   quotes     ` becomes ', '' and all curly, low and angle quotes become "; an apostrophe between
//              letters becomes ', U+2019 elsewhere becomes " and other single quotes become '
//   dashes     the short one becomes -, the long one - with blanks around it; the ellipsis ...
//   no-break   blanks of that kind are removed at quotes, and before % : ? ! ;
//   quotes at the end of a phrase   English has , and . before ", all other languages after it, but
//              . only if no < follows; Czech leaves them
//   numbers    a no-break blank between digits becomes a comma in German, Spanish, Czech and
//              French, and a point in other languages
// `language` is "en", "de", ... Throws Error{kBadInput} unless the line is UTF-8.
std::string normalized_punctuation(std::string_view line, std::string_view language);

// Replaces each character of Unicode's category C by a blank: control, format, private and
// unassigned characters (Moses' remove-non-printing-char.perl).
std::string with_printable_characters(std::string_view line);

}  // namespace keel::text
