// The files of PTB, of WikiText, and a user's own.
#pragma once

#include <filesystem>
#include <optional>

#include "frontend/task/batch.h"
#include "models/word_lm/corpus.h"

namespace keel::models {

// Lines of words with blanks between them, UTF-8, plain, .gz or .xz:
//   ptb       ptb.train.txt, ptb.valid.txt, ptb.test.txt (Mikolov's)
//   wikitext  wiki.train.tokens, wiki.valid.tokens, wiki.test.tokens
//   files     train.txt; valid.txt, val.txt or dev.txt; test.txt
enum class WordFiles { kPtb, kWikitext, kFiles };
constexpr auto choice_words(WordFiles) {
  return std::to_array<std::string_view>({"ptb", "wikitext", "files"});
}

// The corpus in a folder or in its folder lm, or in a single file. A file is cut by its lines:
// eight tenths to train on, one for validation and one for testing. Likewise the last tenth of
// train.txt, or the last two, are held out where valid.txt or test.txt is missing. The names of the
// parts say so. With `only` one split the other parts may be missing, and a file is that split,
// whole. Throws Error{kIo} for a part that is missing; a part is opened when it is read, and then
// throws Error{kBadInput} for fewer than 10 lines to hold some out of, and as text::LineReader.
WordCorpus read_word_files(const std::filesystem::path& source, WordFiles form,
                           std::optional<task::Split> only = std::nullopt);

// The forms whose files the folder has, then the others.
std::vector<WordFiles> forms_in(const std::filesystem::path& folder);

}  // namespace keel::models
