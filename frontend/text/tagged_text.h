// Reads the tagged files of IWSLT.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace keel::text {

// The lines of a training file, train.tags.DE-EN.de, but none with <url>, <talkid> or <keywords>,
// and only the text of <title> and <description>. Blanks at a line's ends are removed.
std::vector<std::string> lines_of_tags(std::string_view content);

// The sentences of a file for validation or testing, IWSLT14.TED.tst2010.de-en.de.xml: the text
// between <seg ...> and </seg>, one line each. The apostrophe U+2019 becomes '. `file` is for
// messages. Throws Error{kBadInput} with file and line for a <seg> that is not closed in its line,
// and for a file without any.
std::vector<std::string> sentences_of_xml(std::string_view content, const std::string& file);

}  // namespace keel::text
