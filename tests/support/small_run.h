// A training run that takes milliseconds: a few hundred digits and 16 hidden units.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/data/picture_rows.h"
#include "frontend/train/trainer.h"

namespace keel::test {

// A folder of MNIST's four files with 300 training and 60 test digits, made once; 275 are left to
// train on.
const std::filesystem::path& small_digits();

// A folder with a treebank: train.conllu with 61 sentences, dev.conllu and test.conllu with 21
// each, of which the first is not projective; made once.
const std::filesystem::path& small_treebank();

// A folder with some pairs of lex200 in the layout of multi30k; the test set is part of the
// training set. It is written once in each process.
const std::filesystem::path& small_pairs();

// A folder with captions and features of 40 images of shapes for training, 12 for validation and 12
// for testing; made once.
const std::filesystem::path& small_captions();

// A folder with 64 questions of who-did for training, 20 for validation and 20 for testing; made
// once.
const std::filesystem::path& small_questions();

// A folder with a few built-in stories for skip_thoughts, written once in each process.
const std::filesystem::path& small_stories();

// A file with 3,000 bytes of "markov2+title", written once in each process.
const std::filesystem::path& small_text();
// A folder with synthetic text in the files of PTB: 60, 11 and 13 lines of 23 words and <unk>.
const std::filesystem::path& small_words();
// Pictures as the bytes of a file of CIFAR-10.
std::string cifar10_bytes(const data::Pictures& pictures);
// A folder with files of CIFAR-10's form: 80 textures, of which 8 are held out, and 20 to test;
// made once.
const std::filesystem::path& small_pictures();

// "section.key=value"
using Settings = std::vector<std::string>;
// The settings of both; later ones win.
Settings operator+(Settings a, const Settings& b);

// Applies settings to a config, and validates the result.
void apply_settings(train::Config& config, const Settings& settings);

// A task with defaults, then the settings, with its network and data.
train::Job job_of(std::unique_ptr<task::Task> task, const Settings& settings);

// The named model with defaults, but small, then the settings: on small_digits() with batch 32 and,
// for mnist_mlp, hidden 16; text_classifier on 200 built-in sentences, one narrow layer;
// dependency_parser on small_treebank(), hidden 16; translation on small_pairs(), one narrow layer
// in either stack, without label smoothing, translations of at most three symbols;
// order_embeddings on small_captions() with folds of 5 images, width 16; attentive_reader on
// small_questions(), width 24; handwriting on 60 built-in lines, two narrow layers, 6 points of a
// line; draw on small_digits(), two glimpses, width 12; skip_thoughts on small_stories(), width 48;
// char_lm on small_text(), two narrow layers, segments of 8; word_lm on small_words(), one layer,
// segments of 6 words;
// cifar_resnet20, depth 8 and width 4, and cifar_vgg, a sixteenth of the channels, on
// small_pictures(); deep_linear with 4 layers and 80 rows.
train::Config small_config(const Settings& settings = {}, std::string_view model = "mnist_mlp");
// The same, with its network and data.
train::Job small_job(const Settings& settings = {}, std::string_view model = "mnist_mlp");

// The facts that tests of all models have to know of one.
struct SmallFacts {
  // Whether the loss compares the samples of a batch, so that it depends on which come together.
  bool compares_rows = false;
  // Whether an epoch's order is sampled; a contiguous text has its own.
  bool draws_orders = true;
  // The loss is below this once eight samples are learned by heart: a cross entropy is almost 0,
  // and the negative logarithm of a density is below that of noise.
  double learned_loss = 0.3;
};
SmallFacts small_facts(std::string_view model);

// The same as arguments of the program: "train mnist_mlp --quiet --out folder ...".
std::vector<std::string> small_train(const std::filesystem::path& folder,
                                     const Settings& settings = {},
                                     std::string_view model = "mnist_mlp");

// Trains in `folder`, quietly, on the default backend.
train::Summary train_in(const std::filesystem::path& folder, const train::Job& job,
                        bool resume = false);

// checkpoints/step-0000000N.safetensors of a run's folder.
std::filesystem::path step_file(const std::filesystem::path& folder, std::int64_t step);

// Rows of a split by number, for the programs of a job.
class Rows {
 public:
  explicit Rows(const train::Job& job, task::Split split = task::Split::kTrain);

  std::int64_t count() const { return stream_->rows(); }
  // Feeds these rows, and the weight that makes their loss a mean.
  void feed(Program& program, std::span<const std::int64_t> rows);

 private:
  std::unique_ptr<task::Stream> stream_;
  train::Feeder feeder_;
};

}  // namespace keel::test
