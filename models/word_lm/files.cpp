#include "models/word_lm/files.h"

#include <algorithm>

#include "frontend/io/near_miss.h"
#include "frontend/io/packed_file.h"
#include "frontend/text/line_reader.h"
#include "src/core/choice.h"
#include "src/core/error.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kParts = {"train", "valid", "test"};

std::string file_of(WordFiles form, std::string_view part) {
  switch (form) {
    case WordFiles::kPtb:
      return fmt::format("ptb.{}.txt", part);
    case WordFiles::kWikitext:
      return fmt::format("wiki.{}.tokens", part);
    case WordFiles::kFiles:
      break;
  }
  return fmt::format("{}.txt", part);
}

// The folder, or its folder lm if the files are there.
fs::path place_of(const fs::path& folder, WordFiles form, std::string_view part = kParts[0]) {
  const bool is_there = io::find_packed(folder / "lm" / file_of(form, part)).has_value();
  return is_there ? folder / "lm" : folder;
}

LineSource lines_of(const fs::path& path) {
  return {path.string(), [path](const TakeLine& take) {
            text::LineReader reader(path);
            while (const std::optional<text::Line> line = reader.next()) take(*line);
          }};
}

}  // namespace

WordCorpus read_word_files(const fs::path& source, WordFiles form,
                           std::optional<task::Split> only) {
  WordCorpus corpus;
  corpus.name = choice_text(form);
  if (fs::is_regular_file(source)) {
    corpus.name = source.filename().string();
    corpus.parts.fill(lines_of(source));
    return corpus;
  }
  const fs::path folder = place_of(source, form, kParts[only ? std::size_t(*only) : 0]);
  for (std::size_t part = 0; part < kParts.size(); ++part) {
    if (only && part != std::size_t(*only)) continue;
    corpus.parts[part] =
        lines_of(io::require_packed("word_lm", folder, file_of(form, kParts[part]),
                                    io::near_misses(folder, {".txt", ".tokens", "val", "dev"})));
  }
  return corpus;
}

std::vector<WordFiles> forms_in(const fs::path& folder) {
  std::vector<WordFiles> forms{WordFiles::kPtb, WordFiles::kWikitext, WordFiles::kFiles};
  std::ranges::stable_partition(forms, [&](WordFiles form) {
    return io::find_packed(place_of(folder, form) / file_of(form, kParts[0])).has_value();
  });
  return forms;
}

}  // namespace keel::models
