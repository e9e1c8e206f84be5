#include "models/pictures.h"

#include <algorithm>

#include "frontend/data/cifar10.h"
#include "frontend/data/picture_folder.h"
#include "frontend/data/picture_scale.h"
#include "frontend/data/textures.h"
#include "frontend/text/lines.h"
#include "models/class_decoder.h"

namespace keel::models {
namespace {

constexpr std::int64_t kTexturesToTrain = 4500, kTexturesToValidate = 500, kTexturesToTest = 1000;
constexpr std::int64_t kMostHeldOut = 5000;

// Cuts the last tenth off for validation.
void hold_out_last(PictureCorpus& corpus, data::Pictures all) {
  const std::int64_t rows = all.rows(), held_out = std::min(kMostHeldOut, rows / 10);
  check(held_out >= 1, ErrorKind::kBadInput,
        "[pictures] {}: expected at least 10 training pictures, got {}", corpus.origin, rows);
  corpus.valid = all.slice(rows - held_out, held_out);
  corpus.train = all.slice(0, rows - held_out);
}

void note_beyond(PictureCorpus& corpus, std::int64_t beyond, std::int64_t count) {
  if (beyond > 0) corpus.skipped.push_back({beyond, fmt::format("beyond the first {}", count)});
}

// `count` training pictures, which take half a millisecond each; 0: all.
PictureCorpus textures(std::uint64_t seed, std::int64_t count) {
  PictureCorpus corpus;
  corpus.name = "tex10";
  corpus.origin = fmt::format("built-in textures, seed {}", seed);
  corpus.classes = data::texture_classes();
  const std::int64_t kept = count == 0 ? kTexturesToTrain : std::min(count, kTexturesToTrain);
  corpus.train = data::make_textures(kept, seed, "train");
  corpus.valid = data::make_textures(kTexturesToValidate, seed, "train", kTexturesToTrain);
  corpus.test = [seed] { return data::make_textures(kTexturesToTest, seed, "test"); };
  note_beyond(corpus, kTexturesToTrain - kept, count);
  return corpus;
}

// Where CIFAR-10's files are, of which the part that is evaluated is enough; "" if there are none.
std::filesystem::path place_of_cifar10(const task::DataRequest& request) {
  if (request.source == "builtin") return {};
  if (request.is_whole_file()) return request.source;
  const bool tests = request.only == task::Split::kTest;
  return data::find_cifar10(request.source, tests ? data::Part::kTest : data::Part::kTrain);
}

PictureCorpus cifar10(const std::filesystem::path& folder, const task::DataRequest& request) {
  PictureCorpus corpus;
  corpus.name = "CIFAR-10";
  corpus.origin = folder.string();
  corpus.classes = data::cifar10_classes();
  if (request.is_whole_file() || request.only == task::Split::kTest) {
    corpus.put(*request.only, data::load_cifar10(folder, data::Part::kTest));
    return corpus;
  }
  hold_out_last(corpus, data::load_cifar10(folder, data::Part::kTrain));
  corpus.test = [folder] { return data::load_cifar10(folder, data::Part::kTest); };
  return corpus;
}

PictureCorpus own_pictures(const task::DataRequest& request,
                           const std::vector<std::string>& classes) {
  data::PictureFolder own =
      data::read_picture_folder(request.source, {.seed = request.seed,
                                                 .train_rows = request.train_rows,
                                                 .classes = classes,
                                                 .only = request.only});
  PictureCorpus corpus;
  corpus.name = "pictures";
  corpus.origin = request.source + own.skipped.note();
  corpus.classes = std::move(own.classes);
  corpus.train = std::move(own.train);
  corpus.valid = std::move(own.valid);
  corpus.test = std::move(own.test);
  corpus.valid_source = own.valid_source;
  corpus.test_source = own.test_source;
  corpus.numbers = std::move(own.numbers);
  if (own.not_drawn > 0) {
    corpus.skipped.push_back({own.not_drawn, fmt::format("not among the {} drawn with data.seed={}",
                                                         request.train_rows, request.seed)});
  }
  return corpus;
}

void keep_first_pictures(PictureCorpus& corpus, std::int64_t count) {
  const std::int64_t beyond = corpus.train.rows() - count;
  if (count == 0 || beyond <= 0) return;
  corpus.train = corpus.train.slice(0, count);
  note_beyond(corpus, beyond, count);
}

}  // namespace

data::SplitNotes PictureCorpus::notes(task::Split split) const {
  data::SplitNotes notes = data::Corpus<data::Pictures>::notes(split);
  if (split == task::Split::kValid && !valid_source.empty()) notes.source = valid_source;
  if (split == task::Split::kTest && !test_source.empty()) notes.source = test_source;
  notes.numbers = numbers[std::size_t(split)];
  return notes;
}

PictureCorpus load_pictures(const task::DataRequest& request,
                            const std::vector<std::string>& classes) {
  const std::filesystem::path cifar = place_of_cifar10(request);
  PictureCorpus corpus = request.source == "builtin" ? textures(request.seed, request.train_rows)
                         : cifar.empty()             ? own_pictures(request, classes)
                                                     : cifar10(cifar, request);
  check(classes.empty() || classes == corpus.classes, ErrorKind::kBadInput,
        "[pictures] {}: expected data of the classes {}, got {}", corpus.origin,
        fmt::join(classes, ", "), fmt::join(corpus.classes, ", "));
  keep_first_pictures(corpus, request.train_rows);
  return corpus;
}

task::Prepared prepare_pictures(const task::DataRequest& request, const task::Assets* known,
                                bool augments, const MakePictureNetwork& make) {
  PictureCorpus corpus =
      load_pictures(request, known ? classes_of(*known) : std::vector<std::string>{});
  std::shared_ptr<const task::Network> network = make(corpus.classes);
  const auto rows_of = [augments](task::Split, data::Pictures part, data::SplitNotes notes) {
    return std::make_shared<data::PictureRows>(std::move(notes), std::move(part), augments);
  };
  return {std::move(network), data::splits_of(std::move(corpus), rows_of)};
}

task::Assets class_assets(const std::vector<std::string>& classes) {
  return {{"classes", fmt::format("{}\n", fmt::join(classes, "\n"))}};
}

std::vector<std::string> classes_of(const task::Assets& assets) {
  std::vector<std::string> classes;
  text::Lines lines(task::find_asset(assets, "classes"));
  while (const std::optional<text::Line> line = lines.next()) {
    check(!line->text.empty(), ErrorKind::kBadInput, "classes: line {}: expected a name, got none",
          line->number);
    classes.emplace_back(line->text);
  }
  check(classes.size() >= 2, ErrorKind::kBadInput, "classes: expected two or more, got {}",
        classes.size());
  return classes;
}

std::unique_ptr<task::Decoder> picture_decoder(std::span<const std::string> files,
                                               const std::vector<std::string>& classes) {
  data::Pictures pictures = data::Pictures::of_size(std::ssize(files));
  for (std::int64_t row = 0; row < std::ssize(files); ++row) {
    const io::Picture picture = io::read_picture(files[std::size_t(row)]);
    std::ranges::copy(data::planes_of(picture, data::kPictureSide), pictures.picture(row));
  }
  auto rows =
      std::make_shared<data::PictureRows>(data::SplitNotes{"pictures"}, std::move(pictures), false);
  return std::make_unique<ClassDecoder>(UnlabelledRows{std::move(rows), std::ssize(files)},
                                        classes);
}

}  // namespace keel::models
