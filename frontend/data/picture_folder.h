// A user's own pictures, in one folder for each class.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "frontend/data/picture_rows.h"
#include "frontend/io/visible_files.h"

namespace keel::data {

struct PictureFolder {
  std::vector<std::string> classes;
  Pictures train, valid;
  std::int64_t not_drawn = 0;      // pictures of training beyond PictureFolderOptions::train_rows
  io::SkippedFiles skipped;        // of the folder of training: files that are no pictures
  std::function<Pictures()> test;  // reads its files, if the part has a folder of its own
  // "a tenth of DIR/train, drawn by data.seed=1", or the part's folder.
  std::string valid_source, test_source;
  // The numbers of each part's pictures in its source; empty: 0, 1, 2, ...
  std::array<std::vector<std::int64_t>, 3> numbers = {};
};

struct PictureFolderOptions {
  std::uint64_t seed = 0;       // for choosing the pictures that are held out or trained on
  std::int64_t train_rows = 0;  // at most so many are trained on; 0: all that are not held out
  // The classes; empty: the names of the folders of training, in the order of their bytes.
  std::vector<std::string> classes = {};
  std::optional<Split> only = std::nullopt;  // the one part that is wanted; absent: all
};

// Reads DIR/CLASS/*.png, or DIR/train/CLASS/*.png with DIR/valid (or validation, val or dev) and
// DIR/test of the same form; io::kPictureEndings has the other endings. DIR/train is a class where
// it holds no folders of pictures. For a split that has no folder a tenth of the training pictures,
// drawn by the seed, is held out; of the others train_rows, drawn in the same way, are trained on.
// Pictures come in the order of their classes and names and are brought to 32 x 32 pixels
// (picture_scale.h). If one part is wanted, its folder is enough, or a folder of classes that is
// not in parts; that is the part, whole. Hidden folders and files, and files that are no pictures
// by their names, are left out; the names of sources end with what was left out. Throws Error{kIo}
// for a folder without pictures; Error{kBadInput} for fewer than two classes, for a name that is no
// line of UTF-8, for a class that is not among the known ones, for fewer than 10 pictures to hold
// some out of, and as io::read_picture.
PictureFolder read_picture_folder(const std::filesystem::path& folder,
                                  const PictureFolderOptions& options);

}  // namespace keel::data
