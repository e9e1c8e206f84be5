// The data of the tasks that classify pictures in three colours: CIFAR-10, a user's own pictures,
// or synthetic textures.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/data/corpus.h"
#include "frontend/data/picture_rows.h"
#include "frontend/task/task.h"

namespace keel::models {

struct PictureCorpus : data::Corpus<data::Pictures> {
  std::vector<std::string> classes;
  std::string valid_source = {}, test_source = {};  // where these parts have a source of their own
  // The numbers that each part's pictures have in their source; empty: 0, 1, 2, ...
  std::array<std::vector<std::int64_t>, 3> numbers = {};

  data::SplitNotes notes(task::Split split) const;
};

// "builtin": 4,500 textures of tex10 for training, 500 for validation, 1,000 for testing. A folder
// with CIFAR-10's files (data/cifar10.h): the last tenth of the training rows, at most 5,000, is
// held out for validation, as in He et al. 2016. Any other folder: data/picture_folder.h. Of the
// training pictures the first request.train_rows are kept; a folder's are drawn by the seed.
// `classes` are those that the data have to have; empty: any.
// Throws as these readers, and Error{kBadInput} for data of other classes, or for fewer than 10
// training pictures.
PictureCorpus load_pictures(const task::DataRequest& request,
                            const std::vector<std::string>& classes);

// Reads the pictures and makes the task's network for their classes, or for those of `known`.
using MakePictureNetwork =
    std::function<std::shared_ptr<const task::Network>(std::vector<std::string> classes)>;
task::Prepared prepare_pictures(const task::DataRequest& request, const task::Assets* known,
                                bool augments, const MakePictureNetwork& make);

// The names of classes as a checkpoint keeps them: the asset "classes", one a line.
task::Assets class_assets(const std::vector<std::string>& classes);
// Throws Error{kBadInput} for an asset that is missing, or a name that is empty.
std::vector<std::string> classes_of(const task::Assets& assets);

// A decoder that names the class of each picture.
std::unique_ptr<task::Decoder> picture_decoder(std::span<const std::string> files,
                                               const std::vector<std::string>& classes);

}  // namespace keel::models
