// Reads the tagged files of IWSLT and of WMT.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace keel::text {

// The lines of a training file, train.tags.DE-EN.de, but none with <url>, <talkid> or <keywords>,
// and only the text of <title> and <description>. Blanks at a line's ends are removed.
std::vector<std::string> lines_of_tags(std::string_view content);

// The sentences of a file for validation or testing, such as newstest2013-src.en.sgm: the text
// between <seg ...> and </seg>, of which a line may hold several, and which may reach over several
// lines, joined by blanks. Capitals of a tag do not matter, nor whether its attributes are quoted;
// comments and all other tags outside of sentences are skipped. `file` is for messages. Throws
// Error{kBadInput} with file and line for a <seg> that is not closed before the next one or the
// end, and for a file without any.
//
// In WMT's files &amp; &lt; &gt; &quot; &apos; and numbers such as &#233; stand for characters, and
// every other & for itself. Throws Error{kBadInput} for a number that is no character's.
std::vector<std::string> sentences_of_sgm(std::string_view content, const std::string& file);
// In IWSLT's files, such as IWSLT14.TED.tst2010.de-en.de.xml, all characters stay, except that the
// apostrophe U+2019 becomes ', as in fairseq's script.
std::vector<std::string> sentences_of_xml(std::string_view content, const std::string& file);

}  // namespace keel::text
