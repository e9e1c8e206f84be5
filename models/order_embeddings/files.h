// Captions and features of images in files.
#pragma once

#include <filesystem>

#include "frontend/task/batch.h"
#include "models/order_embeddings/corpus.h"

namespace keel::models {

struct CaptionFileOptions {
  bool lower_case = true;  // captions, A to Z and the capitals of Windows-1252
  // Take captions without features, and make the features up (synthetic.h).
  bool synthetic = false;
  std::optional<task::Split> only = std::nullopt;  // as task::DataRequest::only
};

// Reads the features of images from a file NAME.npy or NAME.safetensors: one tensor f32 (images,
// width) of one image or more, whose rows it scales to length 1. Throws Error{kIo} for a file that
// cannot be read, and Error{kBadInput} for features of another form or that are not finite.
Tensor read_features(const std::filesystem::path& file);

// Reads a folder that has, for each SPLIT of train, dev and test, in it or in its folder `captions`
// or `coco`, all with the prefix `coco_`, `f30k_` or `f8k_` or all without:
//   SPLIT_caps.txt           UTF-8, plain, .gz or .xz, five consecutive lines for an image, tokens
//                            separated by blanks
//   SPLIT_ims.safetensors    one tensor f32 (images, width), or SPLIT_ims.npy, such as the features
//                            of VGG-19 of COCO (Vendrov et al. 2016); rows are scaled to length 1
// With synthetic the folder has coco_dev_reference0 to 4 and coco_reference0 to 4, each with a
// caption of every image. Four fifths of the images of the first five files are for training, the
// others of these for validation; those of the other five files are for testing.
//
// If `only` asks for one split, its files are enough. A file in place of a folder holds all
// captions of that split, with the features, or the other files of captions, beside it.
//
// Throws Error{kIo} that names the files and folders looked for, and Error{kBadInput} with file and
// line if the lines are not five an image or not as many as the features need, for bytes that are
// not UTF-8, and for features that are of another type or not finite.
CaptionCorpus read_captions(const std::filesystem::path& folder, const CaptionFileOptions& options);

}  // namespace keel::models
