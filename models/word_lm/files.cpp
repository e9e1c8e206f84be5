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
constexpr std::int64_t kFewestLines = 10;

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

// The lines from one tenth of a file to another.
LineSource tenths_of(const fs::path& path, std::string_view which, std::int64_t from,
                     std::int64_t to) {
  const auto read = [path, from, to](const TakeLine& take) {
    const LineSource file = lines_of(path);
    std::int64_t n = 0;
    file.read([&](const text::Line&) { ++n; });
    check(n >= kFewestLines, ErrorKind::kBadInput,
          "[word_lm] {}: expected at least {} lines, of which some are held out, got {}",
          path.string(), kFewestLines, n);
    file.read([&](const text::Line& line) {
      if (line.number > n * from / 10 && line.number <= n * to / 10) take(line);
    });
  };
  return {fmt::format("{} of {}", which, path.string()), read};
}

// A training file and what is held out of it for the parts that have no file.
void hold_lines_out(WordCorpus& corpus, const fs::path& train, bool valid, bool test) {
  const std::int64_t kept = 10 - (valid ? 1 : 0) - (test ? 1 : 0);
  if (kept == 10) {
    corpus.parts[0] = lines_of(train);
    return;
  }
  corpus.parts[0] =
      tenths_of(train, fmt::format("the first {} % of the lines", 10 * kept), 0, kept);
  if (valid) {
    const char* which = test ? "the last tenth but one" : "the last tenth";
    corpus.parts[1] = tenths_of(train, which, kept, kept + 1);
  }
  if (test) corpus.parts[2] = tenths_of(train, "the last tenth", 9, 10);
}

fs::path require_word_part(const fs::path& folder, const std::string& file) {
  return io::require_packed("word_lm", folder, file,
                            io::near_misses(folder, {".txt", ".tokens", "val", "dev"}));
}

// The file of each part that has one.
std::array<std::optional<fs::path>, 3> find_own_parts(const fs::path& folder) {
  const auto first_of = [&](std::initializer_list<const char*> names) -> std::optional<fs::path> {
    for (const char* name : names) {
      if (auto found = io::find_packed(folder / name)) return found;
    }
    return std::nullopt;
  };
  return {first_of({"train.txt"}), first_of({"valid.txt", "val.txt", "dev.txt"}),
          first_of({"test.txt"})};
}

WordCorpus own_word_files(WordCorpus corpus, const fs::path& folder,
                          std::optional<task::Split> only) {
  const auto own = find_own_parts(folder);
  const bool has_only = only && own[std::size_t(*only)];
  if (!has_only) hold_lines_out(corpus, require_word_part(folder, "train.txt"), !own[1], !own[2]);
  for (std::size_t part = has_only ? 0 : 1; part < own.size(); ++part) {
    if (own[part]) corpus.parts[part] = lines_of(*own[part]);
  }
  return corpus;
}

}  // namespace

WordCorpus read_word_files(const fs::path& source, WordFiles form,
                           std::optional<task::Split> only) {
  WordCorpus corpus;
  corpus.name = choice_text(form);
  if (fs::is_regular_file(source)) {
    corpus.name = source.filename().string();
    if (only) {
      corpus.parts.fill(lines_of(source));
    } else {
      hold_lines_out(corpus, source, true, true);
    }
    return corpus;
  }
  fs::path folder = place_of(source, form);
  if (only && folder == source) folder = place_of(source, form, kParts[std::size_t(*only)]);
  if (form == WordFiles::kFiles) return own_word_files(std::move(corpus), folder, only);
  for (std::size_t part = 0; part < kParts.size(); ++part) {
    if (only && part != std::size_t(*only)) continue;
    corpus.parts[part] = lines_of(require_word_part(folder, file_of(form, kParts[part])));
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
