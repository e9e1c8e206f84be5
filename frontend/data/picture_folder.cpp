#include "frontend/data/picture_folder.h"

#include <algorithm>
#include <map>
#include <optional>
#include <system_error>

#include "frontend/data/permutation.h"
#include "frontend/data/picture_scale.h"
#include "frontend/io/near_miss.h"
#include "frontend/io/visible_files.h"
#include "frontend/text/utf8.h"

namespace keel::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFewestPictures = 10;  // to hold some out of
constexpr std::uint32_t kHeldOutPictures = stream_of("pictures.held_out");

// The entries of a folder; hidden ones are counted.
std::vector<fs::path> entries_of(const fs::path& folder, io::SkippedFiles& skipped) {
  std::error_code error;
  std::vector<fs::path> entries = io::visible_entries(folder, error, &skipped);
  check(!error, ErrorKind::kIo, "[pictures] {}: {}", folder.string(), error.message());
  return entries;
}

using FilesByClass = std::map<std::string, std::vector<fs::path>>;

void expect_name(const std::string& name, const fs::path& folder) {
  const bool is_line = !text::first_invalid_utf8(name) &&
                       std::ranges::none_of(name, [](unsigned char c) { return c < ' '; });
  check(is_line, ErrorKind::kBadInput,
        "[pictures] {}: expected names of classes that are lines of UTF-8, got {:?}",
        folder.string(), name);
}

// The pictures in the folder of a class.
std::vector<fs::path> pictures_of(const fs::path& of_class, io::SkippedFiles& skipped) {
  std::vector<fs::path> files;
  for (const fs::path& file : entries_of(of_class, skipped)) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) {
      skipped.add(fs::is_directory(file, ignored) ? "folders" : "no regular files");
    } else if (!io::is_picture(file)) {
      skipped.add_ending(file);
    } else {
      files.push_back(file);
    }
  }
  return files;
}

// The pictures of each class; folders without any are none.
FilesByClass find_classes(const fs::path& folder, io::SkippedFiles& skipped) {
  FilesByClass classes;
  for (const fs::path& of_class : entries_of(folder, skipped)) {
    std::error_code ignored;
    if (!fs::is_directory(of_class, ignored)) {
      skipped.add_ending(of_class);
      continue;
    }
    std::vector<fs::path> files = pictures_of(of_class, skipped);
    if (files.empty()) continue;
    expect_name(of_class.filename().string(), folder);
    classes[of_class.filename().string()] = std::move(files);
  }
  return classes;
}

FilesByClass classes_in(const fs::path& folder, io::SkippedFiles& skipped) {
  FilesByClass classes = find_classes(folder, skipped);
  check(!classes.empty(), ErrorKind::kIo,
        "[pictures] {}: expected folders of pictures, CLASS/*{}, got none{}{}", folder.string(),
        io::picture_endings(),
        io::near_misses(folder, {".bin", ".png", ".jpg", ".jpeg", ".pgm", ".ppm"},
                        "a class has a folder, and files of CIFAR-10 are called data_batch*.bin"),
        skipped.note());
  return classes;
}

std::optional<fs::path> split_folder(const fs::path& folder,
                                     std::initializer_list<const char*> names) {
  for (const char* name : names) {
    std::error_code ignored;
    if (fs::is_directory(folder / name, ignored)) return folder / name;
  }
  return {};
}

// DIR/train is the split unless it holds the pictures of a class that is called train.
std::optional<fs::path> train_folder(const fs::path& folder) {
  const std::optional<fs::path> train = split_folder(folder, {"train"});
  io::SkippedFiles ignored;
  return train && !find_classes(*train, ignored).empty() ? train : std::nullopt;
}

struct PictureFile {
  fs::path path;
  std::int32_t label = 0;
};

// The pictures of a folder in the order of their classes and names.
std::vector<PictureFile> list_files(const fs::path& folder, const std::vector<std::string>& classes,
                                    io::SkippedFiles& skipped) {
  std::vector<PictureFile> files;
  for (const auto& [name, of_class] : classes_in(folder, skipped)) {
    const auto known = std::ranges::find(classes, name);
    check(known != classes.end(), ErrorKind::kBadInput,
          "[pictures] {}: expected folders of the classes {}, got {}", folder.string(),
          fmt::join(classes, ", "), name);
    for (const fs::path& file : of_class) {
      files.push_back({file, std::int32_t(known - classes.begin())});
    }
  }
  return files;
}

Pictures read_pictures(const std::vector<PictureFile>& files) {
  Pictures pictures = Pictures::of_size(std::ssize(files));
  for (std::int64_t row = 0; row < std::ssize(files); ++row) {
    const PictureFile& file = files[std::size_t(row)];
    std::ranges::copy(planes_of(io::read_picture(file.path), kPictureSide), pictures.picture(row));
    pictures.label.as<std::int32_t>()[std::size_t(row)] = file.label;
  }
  return pictures;
}

std::vector<std::string> names_of(const FilesByClass& files) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : files) names.push_back(name);
  return names;
}

struct HeldOutRows {
  std::vector<std::int64_t> train, valid, test;
};

// A tenth of the rows for either split that needs it; the other tenths, and no more rows than are
// wanted, are left to training. Whether one split needs a tenth changes nothing for the other.
HeldOutRows held_out(std::int64_t rows, const PictureFolderOptions& options, bool valid,
                     bool test) {
  const std::vector<std::int64_t> order = permutation(rows, Philox(options.seed, kHeldOutPictures));
  const std::int64_t tenth = rows / 10;
  HeldOutRows held;
  for (std::int64_t i = 0; i < rows; ++i) {
    const bool validates = valid && i < tenth, tests = test && i >= tenth && i < 2 * tenth;
    auto& part = validates ? held.valid : tests ? held.test : held.train;
    part.push_back(order[std::size_t(i)]);
  }
  const std::int64_t wanted = options.train_rows;
  if (wanted > 0 && wanted < std::ssize(held.train)) held.train.resize(std::size_t(wanted));
  for (auto* part : {&held.train, &held.valid, &held.test}) std::ranges::sort(*part);
  return held;
}

std::optional<fs::path> folder_of_part(const fs::path& folder, Split split) {
  if (split == Split::kTrain) return train_folder(folder);
  return split == Split::kTest ? split_folder(folder, {"test"})
                               : split_folder(folder, {"valid", "validation", "val", "dev"});
}

// The folder of the one part that is wanted: its own, or all of a folder that is not in parts.
std::optional<fs::path> folder_of_only(const fs::path& folder, Split split) {
  const std::optional<fs::path> own = folder_of_part(folder, split);
  io::SkippedFiles ignored;
  if (own && !find_classes(*own, ignored).empty()) return own;
  return train_folder(folder) ? std::nullopt : std::optional(folder);
}

PictureFolder read_one_part(const fs::path& folder, const PictureFolderOptions& options) {
  PictureFolder all;
  io::SkippedFiles skipped;
  const FilesByClass found = classes_in(folder, skipped);
  all.classes = options.classes.empty() ? names_of(found) : options.classes;
  all.valid_source = all.test_source = folder.string() + skipped.note();
  const auto read = [folder, classes = all.classes] {
    io::SkippedFiles listed_before;
    return read_pictures(list_files(folder, classes, listed_before));
  };
  if (options.only == Split::kTrain) all.train = read();
  if (options.only == Split::kValid) all.valid = read();
  if (options.only == Split::kTest) all.test = read;
  return all;
}

// A folder of training, and the parts that some of its pictures are held out for.
struct Source {
  fs::path folder;
  bool valid, test;
};

// Reads those of the source's files that are trained on, and those that are held out. Files that
// are not drawn are not read.
void hold_out_pictures(PictureFolder& all, const Source& source,
                       const PictureFolderOptions& options) {
  const std::vector<PictureFile> files = list_files(source.folder, all.classes, all.skipped);
  const std::int64_t rows = std::ssize(files);
  const std::string place = source.folder.string();
  const std::string tenth =
      fmt::format("a tenth of {}, drawn by data.seed={}", place, options.seed);
  check(rows >= kFewestPictures || (!source.valid && !source.test), ErrorKind::kBadInput,
        "[pictures] {}: expected at least {} pictures, of which some are held out, got {}", place,
        kFewestPictures, rows);
  const HeldOutRows held = held_out(rows, options, source.valid, source.test);
  all.not_drawn = rows - std::ssize(held.train) - std::ssize(held.valid) - std::ssize(held.test);
  const auto pick = [&](const std::vector<std::int64_t>& chosen) {
    std::vector<PictureFile> picked;
    for (const std::int64_t row : chosen) picked.push_back(files[std::size_t(row)]);
    return picked;
  };
  all.train = read_pictures(pick(held.train));
  all.numbers[0] = held.train;
  if (source.valid) {
    all.valid = read_pictures(pick(held.valid));
    all.valid_source = tenth;
    all.numbers[1] = held.valid;
  }
  if (source.test) {
    all.numbers[2] = held.test;
    all.test = [picked = pick(held.test)] { return read_pictures(picked); };
    all.test_source = tenth;
  }
}

}  // namespace

PictureFolder read_picture_folder(const fs::path& folder, const PictureFolderOptions& options) {
  if (options.only) {
    const auto own = folder_of_only(folder, *options.only);
    if (own) return read_one_part(*own, options);
  }
  const fs::path train = train_folder(folder).value_or(folder);
  const bool has_parts = train != folder;
  const auto valid = has_parts ? folder_of_part(folder, Split::kValid) : std::nullopt;
  const auto test = has_parts ? folder_of_part(folder, Split::kTest) : std::nullopt;
  PictureFolder all;
  io::SkippedFiles ignored;  // the files are listed once more
  all.classes = options.classes.empty() ? names_of(classes_in(train, ignored)) : options.classes;
  check(all.classes.size() >= 2, ErrorKind::kBadInput,
        "[pictures] {}: expected two classes or more, got only {}", train.string(),
        all.classes.front());
  hold_out_pictures(all, {train, !valid, !test}, options);
  if (valid) {
    io::SkippedFiles skipped;
    all.valid = read_pictures(list_files(*valid, all.classes, skipped));
    all.valid_source = valid->string() + skipped.note();
  }
  if (test) {
    all.test = [path = *test, classes = all.classes] {
      io::SkippedFiles listed_before;
      return read_pictures(list_files(path, classes, listed_before));
    };
    io::SkippedFiles skipped;
    find_classes(*test, skipped);
    all.test_source = test->string() + skipped.note();
  }
  return all;
}

}  // namespace keel::data
