#include "tests/support/small_run.h"

#include "backends/backends.h"
#include "frontend/data/digits.h"
#include "frontend/data/textures.h"
#include "frontend/io/idx.h"
#include "frontend/io/safetensors.h"
#include "models/attentive_reader/builtin.h"
#include "models/char_lm/builtin.h"
#include "models/dependency_parser/builtin.h"
#include "models/order_embeddings/builtin.h"
#include "models/registry.h"
#include "models/skip_thoughts/stories.h"
#include "models/translation/builtin.h"
#include "tests/support/temp_dir.h"

namespace keel::test {
namespace {

Settings language_settings(std::string_view model) {
  if (model == "word_lm") {
    return {"train.batch=4",  "model.layers=1",        "model.width=32",    "model.rank=8",
            "model.length=6", "model.feed_forward=32", "model.dropout=0.05"};
  }
  return {"train.batch=8",
          "model.layers=2",
          "model.width=32",
          "model.heads=2",
          "model.feed_forward=32",
          "model.init_deviation=0.1",
          "model.dropout=0.05",
          "model.segment=8",
          "model.memory=8",
          "model.evaluation_lanes=3",
          "model.evaluation_segment=8",
          "model.evaluation_memory=8"};
}

Settings picture_settings(std::string_view model) {
  const Settings common{"train.batch=16"};
  if (model == "cifar_vgg") {
    return common + Settings{"model.divisor=16", "model.norm=groupnorm{groups=2}"};
  }
  return common +
         Settings{"model.depth=8", "model.width=4", "model.norm=layernorm{per_pixel=true}"};
}

Settings common_settings(std::string_view model) {
  if (model == "text_classifier") {
    return {"train.batch=256", "data.train_rows=200", "model.layers=1",
            "model.width=16",  "model.heads=2",       "model.feed_forward=16"};
  }
  if (model == "dependency_parser") {
    return {"train.batch=32", "model.hidden=16", "model.embedding=4"};
  }
  if (model == "handwriting") {
    return {"train.batch=8",      "data.train_rows=60", "model.layers=2",
            "model.width=16",     "model.bumps=2",      "model.points=6",
            "model.components=2", "model.multiple=4",   "model.init_deviation=0.2"};
  }
  if (model == "translation") {
    return {"train.batch=128",
            "model.layers=1",
            "model.width=32",
            "model.heads=2",
            "model.feed_forward=32",
            "model.dropout=0.05",
            "model.attention_dropout=0.05",
            "model.relu_dropout=0.05",
            "model.label_smoothing=0",
            "model.beam=2",
            "model.longest=3"};
  }
  if (model == "order_embeddings") {
    return {"train.batch=8", "model.width=16", "model.word_width=8", "model.fold=5"};
  }
  if (model == "attentive_reader") {
    return {"train.batch=8", "model.width=24", "model.dropout=0.05"};
  }
  if (model == "char_lm" || model == "word_lm") return language_settings(model);
  if (model == "skip_thoughts") {
    return {"train.batch=8", "model.width=48", "model.word_width=8", "model.symbols=12",
            "model.most_words=9"};
  }
  if (model == "cifar_resnet20" || model == "cifar_vgg") return picture_settings(model);
  if (model == "deep_linear") {
    return {"train.batch=20", "model.layers=4", "model.samples=80", "model.norm=layernorm"};
  }
  Settings settings{"train.batch=32", "data.train_rows=0"};
  if (model == "draw") {
    settings.insert(settings.end(), {"model.glimpses=2", "model.width=12", "model.latent=4",
                                     "model.write=3", "model.init_deviation=0.1"});
  }
  if (model == "mnist_mlp") settings.push_back("model.hidden=16");
  return settings;
}

// The data of a model where a test names none; empty: built-in data.
std::filesystem::path source_of(std::string_view model) {
  if (model == "text_classifier" || model == "handwriting" || model == "deep_linear") return {};
  if (model == "dependency_parser") return small_treebank();
  if (model == "translation") return small_pairs();
  if (model == "order_embeddings") return small_captions();
  if (model == "attentive_reader") return small_questions();
  if (model == "skip_thoughts") return small_stories();
  if (model == "char_lm") return small_text();
  if (model == "word_lm") return small_words();
  if (model == "cifar_resnet20" || model == "cifar_vgg") return small_pictures();
  return small_digits();
}

// The settings of a small run, then these. Data that they replace are not made.
Settings all_settings(std::string_view model, const Settings& settings) {
  const bool has_source = std::ranges::any_of(
      settings, [](const std::string& setting) { return setting.starts_with("data.source="); });
  const std::filesystem::path source = has_source ? "" : source_of(model);
  const Settings data = source.empty() ? Settings{} : Settings{"data.source=" + source.string()};
  return common_settings(model) + data + settings;
}

}  // namespace

Settings operator+(Settings a, const Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const std::filesystem::path& small_digits() {
  static const TempDir folder;
  static const bool written = [] {
    const data::TrainTest digits = data::builtin_digits(300, 60, 1);
    const auto write = [&](const data::TensorDataset& part, const std::string& prefix) {
      io::write_idx_images(folder / (prefix + "-images-idx3-ubyte"), part.column("image"));
      io::write_idx_labels(folder / (prefix + "-labels-idx1-ubyte"), part.column("label"));
    };
    write(digits.train, "train");
    write(digits.test, "t10k");
    return true;
  }();
  check(written, ErrorKind::kIo, "[small_run] no digits");
  return folder.path();
}

const std::filesystem::path& small_treebank() {
  static const TempDir folder;
  static const bool written = [] {
    // "A hearing is scheduled on the issue today ." in short: the phrase of 1 crosses the arc to 2.
    const std::string crossing =
        "1\tnoun1\t_\tNN\tNN\t_\t2\tnsubj\t_\t_\n2\tverb1\t_\tVB\tVB\t_\t0\troot\t_\t_\n"
        "3\tprep1\t_\tIN\tIN\t_\t1\tprep\t_\t_\n4\t.\t_\t.\t.\t_\t2\tpunct\t_\t_\n\n";
    const auto write = [&](task::Split split, const char* name, std::size_t sentences) {
      std::string text = "# made up\n" + crossing;
      const models::Treebank treebank = models::make_cfg_dep(1, split);
      for (std::size_t i = 0; i < sentences; ++i) text += treebank.sentences[i].block;
      write_bytes(folder / name, text);
    };
    write(task::Split::kTrain, "train.conllu", 60);
    write(task::Split::kValid, "dev.conllu", 20);
    write(task::Split::kTest, "test.conllu", 20);
    return true;
  }();
  check(written, ErrorKind::kIo, "[small_run] no treebank");
  return folder.path();
}

const std::filesystem::path& small_pairs() {
  static const TempDir folder;
  static const bool written = [] {
    const models::ParallelCorpus lex = models::make_lex200();
    const auto write = [&](const char* name, const std::vector<std::string>& sentences,
                           std::size_t n) {
      std::string text;
      for (std::size_t i = 0; i < n; ++i) text += sentences[i] + "\n";
      write_bytes(folder / name, text);
    };
    write("train.de", lex.train.source, 60);
    write("train.en", lex.train.target, 60);
    write("val.de", lex.valid.source, 12);
    write("val.en", lex.valid.target, 12);
    write("test_2016_flickr.de", lex.train.source, 12);
    write("test_2016_flickr.en", lex.train.target, 12);
    return true;
  }();
  check(written, ErrorKind::kIo, "[small_run] no pairs");
  return folder.path();
}

const std::filesystem::path& small_captions() {
  static const TempDir folder;
  static const bool written = [] {
    const auto write = [&](const std::string& split, models::DescribedImages images,
                           std::int64_t count) {
      models::keep_first_images(images, count);
      std::string text;
      for (const std::string& caption : images.captions) text += caption + "\n";
      write_bytes(folder / (split + "_caps.txt"), text);
      io::TensorFile file;
      file.tensors.emplace("features", std::move(images.features));
      io::write_safetensors(folder / (split + "_ims.safetensors"), file);
    };
    models::CaptionCorpus shapes = models::make_shapes();
    write("train", std::move(shapes.train), 40);
    write("dev", std::move(shapes.valid), 12);
    write("test", shapes.test(), 12);
    return true;
  }();
  check(written, ErrorKind::kIo, "[small_run] no captions");
  return folder.path();
}

const std::filesystem::path& small_questions() {
  static const TempDir folder;
  static const bool written = [] {
    const auto write = [&](const char* name, task::Split split, std::size_t count) {
      const std::vector<models::Question> questions = models::make_who_did_part(split);
      std::string text;
      for (std::size_t i = 0; i < count; ++i) {
        text += models::text_of_question(questions[i], "synthetic");
      }
      write_bytes(folder / name, text);
    };
    write("training.question", task::Split::kTrain, 64);
    write("validation.question", task::Split::kValid, 20);
    write("test.question", task::Split::kTest, 20);
    return true;
  }();
  check(written, ErrorKind::kIo, "[small_run] no questions");
  return folder.path();
}

const std::filesystem::path& small_stories() {
  static const TempDir folder;
  static const bool written = [] {
    const auto write = [&](const char* name, const models::Passage& story, std::size_t count) {
      std::string text;
      for (std::size_t i = 0; i < count; ++i) text += story.sentences[i] + "\n";
      write_bytes(folder / name, text);
    };
    const models::OrderedText stories = models::make_stories();
    write("train.txt", stories.train[0], 40);
    write("valid.txt", stories.valid[0], 15);
    write("test.txt", stories.test()[0], 20);
    return true;
  }();
  check(written, ErrorKind::kIo, "[small_run] no stories");
  return folder.path();
}

const std::filesystem::path& small_text() {
  static const TempDir folder;
  static const std::filesystem::path path = [] {
    write_bytes(folder / "text", models::make_titled_text(task::Split::kValid, 1).substr(0, 3000));
    return folder / "text";
  }();
  return path;
}

const std::filesystem::path& small_words() {
  static const TempDir folder;
  static const bool written = [] {
    const auto write = [&](const std::string& part, int lines) {
      std::string text;
      for (int i = 0; i < lines; ++i) {
        text += fmt::format("w{} w{} <unk> w{} w{}\n", i * 7 % 23, i * 5 % 23, i * 3 % 23, i % 23);
      }
      write_bytes(folder / ("ptb." + part + ".txt"), text);
    };
    write("train", 60);
    write("valid", 11);
    write("test", 13);
    return true;
  }();
  check(written, ErrorKind::kIo, "[small_run] no text");
  return folder.path();
}

std::string cifar10_bytes(const data::Pictures& pictures) {
  const std::span<const std::uint8_t> pixels = pictures.image.as<std::uint8_t>();
  std::string bytes;
  for (std::int64_t row = 0; row < pictures.rows(); ++row) {
    bytes += char(pictures.label.at(row));
    for (const std::uint8_t pixel : pixels.subspan(std::size_t(row) * 3072, 3072)) {
      bytes += char(pixel);
    }
  }
  return bytes;
}

const std::filesystem::path& small_pictures() {
  static const TempDir folder;
  static const bool written = [] {
    write_bytes(folder / "data_batch_1.bin", cifar10_bytes(data::make_textures(80, 1, "train")));
    write_bytes(folder / "test_batch.bin", cifar10_bytes(data::make_textures(20, 1, "test")));
    return true;
  }();
  check(written, ErrorKind::kIo, "[small_run] no pictures");
  return folder.path();
}

void apply_settings(train::Config& config, const Settings& settings) {
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    config.set(setting.substr(0, equals), setting.substr(equals + 1));
  }
  config.validate();
}

train::Job job_of(std::unique_ptr<task::Task> task, const Settings& settings) {
  train::Config config(std::move(task));
  apply_settings(config, settings);
  return train::Job(std::move(config));
}

train::Config small_config(const Settings& settings, std::string_view model) {
  train::Config config(models::find_model(model).make());
  apply_settings(config, all_settings(model, settings));
  return config;
}

SmallFacts small_facts(std::string_view model) {
  if (model == "order_embeddings") return {.compares_rows = true};
  if (model == "char_lm") return {.draws_orders = false};
  if (model == "word_lm") return {.draws_orders = false};
  // DRAW's bound begins at the 784 ln 2 nats of pixels that nothing is known of, and is never 0.
  if (model == "draw") return {.learned_loss = 784 * 0.6931 / 2};
  return {};
}

train::Job small_job(const Settings& settings, std::string_view model) {
  return train::Job(small_config(settings, model));
}

std::vector<std::string> small_train(const std::filesystem::path& folder, const Settings& settings,
                                     std::string_view model) {
  std::vector<std::string> arguments{"train", std::string(model), "--quiet", "--out",
                                     folder.string()};
  for (const std::string& setting : all_settings(model, settings)) {
    arguments.push_back("--set");
    arguments.push_back(setting);
  }
  return arguments;
}

train::Summary train_in(const std::filesystem::path& folder, const train::Job& job, bool resume) {
  const auto backend = make_backend(default_backend());
  const train::RunOptions options{.folder = folder, .resume = resume, .quiet = true, .facts = {}};
  return train::Trainer(*backend, job, options).run();
}

Rows::Rows(const train::Job& job, task::Split split)
    : stream_(job.splits().stream(split, {})), feeder_(job.network()) {}

void Rows::feed(Program& program, std::span<const std::int64_t> rows) {
  const task::Batch& batch = stream_->pick(rows);
  feeder_.feed(program, batch);
  program.feed("weight", Tensor::scalar(float(1 / batch.items)));
}

std::filesystem::path step_file(const std::filesystem::path& folder, std::int64_t step) {
  return folder / "checkpoints" / fmt::format("step-{:08}.safetensors", step);
}

}  // namespace keel::test
