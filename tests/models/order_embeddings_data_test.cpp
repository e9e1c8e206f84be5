// The data of order embeddings: shapes, files, what stands in for features, and batches.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "frontend/io/npy.h"
#include "frontend/io/safetensors.h"
#include "frontend/text/lines.h"
#include "models/order_embeddings/builtin.h"
#include "models/order_embeddings/model.h"
#include "models/order_embeddings/synthetic.h"
#include "tests/support/input_checks.h"

namespace keel::models {
namespace {

using test::refuses;
using test::TempDir;
using test::write_bytes;

double length_of_row(const Tensor& x, std::int64_t row) {
  double squares = 0;
  for (std::int64_t k = 0; k < x.shape()[1]; ++k) {
    squares += x.at(row * x.shape()[1] + k) * x.at(row * x.shape()[1] + k);
  }
  return std::sqrt(squares);
}

TEST_CASE("shapes: always the same images, of length 1, with captions of the patterns" *
          doctest::test_suite("slow")) {
  const CaptionCorpus corpus = make_shapes();
  CHECK(corpus.train.images() == 4000);
  CHECK(corpus.valid.images() == 500);
  const DescribedImages test = corpus.test();
  CHECK(test.images() == 500);
  CHECK(test.features.shape() == Shape{500, 256});
  std::set<std::string> words, captions(test.captions.begin(), test.captions.end());
  for (const std::string& caption : test.captions) {
    for (const auto word : text::words_of(caption)) words.insert(std::string(word));
  }
  CHECK(words.size() == 20 + 8 + 4 + 9);  // and: a and there is next to one after with
  CHECK(captions.size() > 2000);
  for (const std::int64_t image : {0, 7, 499}) {
    CHECK(length_of_row(test.features, image) == doctest::Approx(1).epsilon(1e-6));
  }
  CHECK(std::ranges::min(test.features.as<float>()) == 0);
  CHECK(test::fnv(fmt::format("{}", fmt::join(make_shapes().test().captions, "\n"))) ==
        test::fnv(fmt::format("{}", fmt::join(test.captions, "\n"))));
  CHECK(test.captions != corpus.valid.captions);
}

// Images whose captions have 2 + i % 23 words, `i` being the caption.
std::shared_ptr<const CaptionRows> some_captions(std::int64_t images, std::int64_t fold) {
  Tensor features(DType::kF32, {images, 3});
  for (std::int64_t e = 0; e < images * 3; ++e) features.as<float>()[std::size_t(e)] = float(e);
  auto rows = std::make_shared<CaptionRows>(data::SplitNotes{"some"}, std::move(features),
                                            CaptionRows::Options{.fold = fold});
  const text::Vocabulary words({{"word", 1}}, {});
  for (std::int64_t i = 0; i < images * 5; ++i) {
    std::string caption;
    for (std::int64_t k = 0; k < 2 + i % 23; ++k) caption += "word ";
    rows->add(caption, words, "some");
  }
  return rows;
}

data::DataLoader stream_of_some(std::int64_t images, const task::StreamOptions& options,
                                std::int64_t fold = 1000) {
  return {some_captions(images, fold), options};
}

// The caption that stands in a place, known by its length, and the image's first feature.
std::int64_t words_at(const task::Batch& batch, std::int64_t place) {
  std::int64_t words = 0;
  for (std::int64_t t = 0; t < batch.sizes[1]; ++t) {
    words += batch.values[1].as<std::uint8_t>()[std::size_t(t * batch.sizes[0] + place)];
  }
  return words;
}

TEST_CASE("caption rows: an epoch has every image with one of its captions, batches of a length") {
  data::DataLoader stream = stream_of_some(203, {.batch = 16, .shuffle = 4});
  CHECK(stream.rows() == 203);
  REQUIRE(stream.skipped().size() == 1);
  CHECK(stream.skipped()[0].rows == 203 % 16);
  std::set<std::vector<std::int64_t>> skipped;
  std::map<std::int64_t, std::set<std::int64_t>> lengths;
  for (std::uint32_t epoch = 0; epoch < 12; ++epoch) {
    CHECK(stream.steps(epoch) == 12);
    std::set<std::int64_t> seen;
    std::int64_t positions = 0, words = 0;
    for (std::int64_t step = 0; step < 12; ++step) {
      const task::Batch& batch = stream.at(epoch, step);
      CHECK(batch.sizes[0] == 16);
      CHECK(batch.items == 16);
      positions += 16 * batch.sizes[1];
      for (std::int64_t place = 0; place < 16; ++place) {
        const std::int64_t image = batch.rows[std::size_t(place)];
        CHECK(seen.insert(image).second);
        CHECK(batch.values[2].at(place) == double(image));
        CHECK(batch.values[3].at(3 * place + 1) == double(3 * image + 1));
        lengths[image].insert(words_at(batch, place));
        words += words_at(batch, place);
      }
    }
    CHECK(double(positions) < 1.25 * double(words));
    std::vector<std::int64_t> missing;
    for (std::int64_t image = 0; image < 203; ++image) {
      if (!seen.contains(image)) missing.push_back(image);
    }
    skipped.insert(missing);
  }
  CHECK(skipped.size() > 10);
  std::set<std::int64_t> own;
  for (std::int64_t k = 0; k < 5; ++k) own.insert(3 + (7 * 5 + k) % 23);
  CHECK(std::ranges::includes(own, lengths[7]));
  CHECK(lengths[7].size() >= 3);
  CHECK(refuses(ErrorKind::kUsage, "batch: expected at most the 3 rows",
                [] { stream_of_some(3, {.batch = 4, .shuffle = 1}); }));
}

TEST_CASE("caption rows: in evaluation every caption comes once, a fold after the other") {
  data::DataLoader stream = stream_of_some(13, {.batch = 8}, 5);
  CHECK(stream.rows() == 65);
  CHECK(stream.skipped().empty());
  std::set<std::int64_t> seen;
  std::int64_t fold = 0;
  for (std::int64_t step = 0; step < stream.steps(3); ++step) {
    const task::Batch& batch = stream.at(3, step);
    for (std::int64_t place = 0; place < 8; ++place) {
      const std::int64_t caption = batch.rows[std::size_t(place)];
      if (caption < 0) {
        CHECK(words_at(batch, place) == 0);
        CHECK(batch.values[2].at(place) == -1);
        continue;
      }
      CHECK(seen.insert(caption).second);
      CHECK(words_at(batch, place) == 3 + caption % 23);
      CHECK(caption / 25 >= fold);
      fold = caption / 25;
    }
  }
  CHECK(seen.size() == 65);
}

TEST_CASE(
    "caption rows: a caption is words and the end, unknown words have a number, and a limit") {
  const text::Vocabulary vocabulary({{"cat", 2}, {"dog", 1}}, {});
  const auto rows = std::make_shared<CaptionRows>(
      data::SplitNotes{"here"}, Tensor(DType::kF32, {0, 1}), CaptionRows::Options{.each = 1});
  rows->add("dog  bird cat", vocabulary, "here");
  rows->add("", vocabulary, "here");
  data::DataLoader stream(rows, {.batch = 2});
  const task::Batch& batch = stream.pick(std::vector<std::int64_t>{0, 1});
  const auto words = batch.values[0].as<std::int32_t>();
  CHECK(std::vector(words.begin(), words.end()) ==
        std::vector<std::int32_t>{3, 0, 1, 0, 2, 0, 0, 0});
  CHECK(words_at(batch, 0) == 4);
  CHECK(words_at(batch, 1) == 1);
  std::string many;
  for (int i = 0; i < 201; ++i) many += "cat ";
  CHECK(refuses(ErrorKind::kBadInput, "file: line 3: expected at most 200 words, got 201",
                [&] { rows->add(many, vocabulary, "file: line 3"); }));
}

TEST_CASE("synthetic features: they do not depend on what one caption alone says") {
  const std::vector<std::string> captions{"a red cat",   "the red cat", "cat asleep", "sofa",
                                          "red thing",   "two dogs",    "dogs run",   "two run",
                                          "grass there", "dogs"};
  const Tensor features = synthetic_features(captions);
  CHECK(features.shape() == Shape{2, kSyntheticWidth});
  CHECK(length_of_row(features, 1) == doctest::Approx(1).epsilon(1e-6));
  std::vector<std::string> other = captions;
  other[3] = "couch";
  other[2] = "cat sleeping";
  const Tensor same = synthetic_features(other);
  CHECK(std::ranges::equal(features.as<float>(), same.as<float>()));
  other[1] = "the red dog";
  other[2] = "dog sleeping";
  CHECK_FALSE(std::ranges::equal(features.as<float>(), synthetic_features(other).as<float>()));
}

std::string five_lines(int images, const std::string& word) {
  std::string lines;
  for (int i = 0; i < images * 5; ++i) lines += fmt::format("A {} {}\n", word, i);
  return lines;
}

void write_features(const std::filesystem::path& path, std::int64_t images,
                    std::int64_t width = 4) {
  Tensor features(DType::kF32, {images, width});
  for (float& x : features.as<float>()) x = 3;
  io::TensorFile file;
  file.tensors.emplace("features", std::move(features));
  io::write_safetensors(path, file);
}

// A folder with two images for training, one for each of the others.
void write_folder(const TempDir& folder, const std::string& prefix = "") {
  for (const auto& [split, images] : {std::pair{"train", 2}, {"dev", 1}, {"test", 1}}) {
    write_bytes(folder / fmt::format("{}{}_caps.txt", prefix, split), five_lines(images, split));
    write_features(folder / fmt::format("{}{}_ims.safetensors", prefix, split), images);
  }
}

struct CaptionData {
  std::shared_ptr<const OrderEmbeddingsNetwork> network;
  std::shared_ptr<const task::Splits> splits;

  explicit CaptionData(const TempDir& folder, const std::string& features = "files",
                       const std::string& valid_images = "1000") {
    OrderEmbeddings task;
    task.set_option("features", features);
    task.set_option("valid_images", valid_images);
    const task::Prepared prepared = task.prepare({.source = folder.path().string()}, nullptr);
    network = std::dynamic_pointer_cast<const OrderEmbeddingsNetwork>(prepared.network);
    splits = prepared.splits;
  }
  std::unique_ptr<task::Stream> stream(task::Split split,
                                       const task::StreamOptions& options) const {
    return splits->stream(split, options);
  }
};

CaptionData load_from(const TempDir& folder) { return CaptionData(folder); }

TEST_CASE("caption files: captions with features, under either name, words of training and dev") {
  for (const std::string prefix : {"", "coco_"}) {
    const TempDir folder;
    write_folder(folder, prefix);
    const CaptionData data = load_from(folder);
    CHECK(data.network->feature_width() == 4);
    CHECK(data.network->vocabulary().id("train") > 1);
    CHECK(data.network->vocabulary().id("dev") > 1);
    CHECK(data.network->vocabulary().id("test") == 1);
    CHECK(data.network->vocabulary().id("A") == 1);
    CHECK(data.network->vocabulary().id("a") == 2);  // the most frequent
    const auto stream = data.stream(task::Split::kTrain, {.batch = 2, .shuffle = 1});
    CHECK(stream->rows() == 2);
    CHECK(stream->at(0, 0).values[3].at(0) == 0.5);  // of length 1
    CHECK(data.stream(task::Split::kTest, {})->rows() == 5);
  }
  const TempDir folder;
  write_folder(folder);
  const Tensor array = Tensor::of<float>({2, 4}, {1, 0, 0, 0, 0, 2, 0, 0});
  write_bytes(folder / "train_ims.npy", io::npy_bytes(array));
  std::filesystem::remove(folder / "train_ims.safetensors");
  CHECK(load_from(folder)
            .stream(task::Split::kTrain, {})
            ->pick(std::vector<std::int64_t>{7})
            .values[3]
            .at(1) == 1);
}

TEST_CASE("caption files: images beyond those of the validation give words, too") {
  const TempDir folder;
  write_folder(folder);
  write_bytes(folder / "dev_caps.txt", five_lines(1, "first") + five_lines(1, "second"));
  write_features(folder / "dev_ims.safetensors", 2);
  const CaptionData data(folder, "files", "1");
  CHECK(data.stream(task::Split::kValid, {})->rows() == 5);
  CHECK(data.network->vocabulary().id("first") > 1);
  CHECK(data.network->vocabulary().id("second") > 1);
}

TEST_CASE("caption files: what is missing or broken is said with file and line") {
  const TempDir folder;
  const auto says = [&](ErrorKind kind, std::string_view part) {
    CHECK(refuses(kind, part, [&] { load_from(folder); }));
  };
  says(ErrorKind::kIo, "expected train_caps.txt, plain, .gz or .xz");
  write_folder(folder);
  std::filesystem::remove(folder / "dev_ims.safetensors");
  says(ErrorKind::kIo, "expected the features of the images in dev_ims.safetensors or .npy");
  test::write_bytes(folder / "vgg_feats.mat", "MATLAB");
  says(ErrorKind::kIo, "train_ims.safetensors, vgg_feats.mat: an f32 array of NumPy");
  says(ErrorKind::kIo, "model.features=synthetic does without");
  write_folder(folder);
  write_bytes(folder / "train_caps.txt", five_lines(2, "x") + "one more\n");
  says(ErrorKind::kBadInput, "train_caps.txt: line 11: expected 5 lines for each image");
  write_bytes(folder / "train_caps.txt", five_lines(3, "x"));
  says(ErrorKind::kBadInput,
       "train_caps.txt: line 15: expected the captions of 2 images, which have features, got those "
       "of 3");
  write_bytes(folder / "train_caps.txt", five_lines(2, "x\xFF"));
  says(ErrorKind::kBadInput, "train_caps.txt: line 1: expected UTF-8, got ff at byte 4");
  write_folder(folder);
  write_features(folder / "dev_ims.safetensors", 1, 5);
  says(ErrorKind::kBadInput, "features of one width, got 4 for train and 5 for dev");
  write_folder(folder);
  io::TensorFile file;
  file.tensors.emplace("a", Tensor::of<float>({2, 2}, {1, 2, 3, INFINITY}));
  io::write_safetensors(folder / "train_ims.safetensors", file);
  says(ErrorKind::kBadInput, "train_ims.safetensors: row 1: expected finite numbers, got inf");
  file.tensors.emplace("b", Tensor::of<float>({1}, {1}));
  io::write_safetensors(folder / "train_ims.safetensors", file);
  says(ErrorKind::kBadInput, "train_ims.safetensors: expected one tensor, got 2");
  file.tensors.erase("a");
  io::write_safetensors(folder / "train_ims.safetensors", file);
  says(ErrorKind::kBadInput, "expected f32(images, width), got f32(1)");
  write_folder(folder);
  const CaptionData data = load_from(folder);
  write_features(folder / "test_ims.safetensors", 1, 6);
  CHECK(refuses(ErrorKind::kBadInput, "features of width 4, as those of training, got 6",
                [&] { data.stream(task::Split::kTest, {}); }));
}

TEST_CASE(
    "caption files: captions alone are taken with synthetic features, which their name says") {
  const TempDir folder;
  for (int k = 0; k < 5; ++k) {
    write_bytes(folder / fmt::format("coco_dev_reference{}", k),
                "A cat .\nA dog .\nBirds .\n"
                "A cat .\nTwo dogs .\n");
    write_bytes(folder / fmt::format("coco_reference{}", k), "A dog .\n");
  }
  CHECK(refuses(ErrorKind::kIo, "model.features=synthetic takes captions without features",
                [&] { load_from(folder); }));
  const CaptionData data(folder, "synthetic");
  const auto train = data.stream(task::Split::kTrain, {.batch = 2, .shuffle = 1});
  CHECK(train->rows() == 4);
  CHECK(train->source().find("SYNTHETIC features") != std::string::npos);
  CHECK(train->source().find("no pixels") != std::string::npos);
  CHECK(data.stream(task::Split::kValid, {})->rows() == 5);
  CHECK(data.stream(task::Split::kTest, {})->rows() == 5);
  write_bytes(folder / "coco_dev_reference3", "A cat .\nA dog .\n");
  CHECK(refuses(ErrorKind::kBadInput, "coco_dev_reference3: line 2: expected 5 lines",
                [&] { CaptionData(folder, "synthetic"); }));
}

}  // namespace
}  // namespace keel::models
