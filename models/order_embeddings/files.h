// Captions and features of images in files.
#pragma once

#include <filesystem>

#include "models/order_embeddings/corpus.h"

namespace keel::models {

struct CaptionFileOptions {
  bool lower_case = true;  // captions, A to Z and the capitals of Windows-1252
  // Take captions that have no features, and make these up (made_up.h).
  bool made_up = false;
};

// A folder with, for each SPLIT of train, dev and test, in the folder or in its folder `captions`
// or `coco`, all with `coco_`, `f30k_` or `f8k_` before their names or without:
//   SPLIT_caps.txt           UTF-8, plain, .gz or .xz, five lines in a row an image, tokens with
//                            blanks between
//   SPLIT_ims.safetensors    one tensor f32 (images, width), or SPLIT_ims.npy, such as the features
//                            of VGG-19 of COCO (Vendrov et al. 2016); rows are scaled to length 1
// With made_up a folder with coco_dev_reference0 to 4 and coco_reference0 to 4, a caption of every
// image in each: four fifths of the images of the first five files are for training, the rest of
// them for validation, those of the other five for testing.
//
// Throws Error{kIo} that says where which files were looked for, and Error{kBadInput} with file and
// line for lines that are not five an image or not as many as the features need, for bytes that are
// not UTF-8, for tensors of another type and features that are not finite.
CaptionCorpus read_captions(const std::filesystem::path& folder, const CaptionFileOptions& options);

}  // namespace keel::models
