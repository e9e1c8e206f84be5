#include "tests/models/key_files.h"

#include <fmt/format.h>

#include <cctype>
#include <functional>
#include <string>

#include "frontend/io/safetensors.h"
#include "tests/support/temp_dir.h"

namespace keel::models {
namespace {

namespace fs = std::filesystem;
using test::write_bytes;

std::string lines_of(int first, int count, const std::function<std::string(int)>& line) {
  std::string text;
  for (int i = first; i < first + count; ++i) text += line(i) + "\n";
  return text;
}

// "Wort3 wort6 wort9.": words with and without a capital, and a full stop, which show whether text
// is prepared.
std::string sentence(const std::string& word, int i) {
  std::string text = fmt::format("{}{}", word, 7 * i % 11);
  for (int w = 1; w < 2 + i % 6; ++w) {
    text +=
        fmt::format(" {}{}{}", char(std::tolower(word[0])), word.substr(1), (7 * i + 3 * w) % 11);
  }
  return text + ".";
}

void write_translation(const fs::path& folder) {
  const auto write = [&](const std::string& split, int first, int count) {
    for (const auto& [ending, word] : {std::pair{".de", "Wort"}, std::pair{".en", "Word"}}) {
      write_bytes(folder / (split + ending),
                  lines_of(first, count, [&, is_target = ending == std::string(".en")](int i) {
                    // A fifth of the pairs have a side that is much longer than the other.
                    return (is_target && i % 5 == 0 ? "and so on " : "") + sentence(word, i);
                  }));
    }
  };
  write("train", 0, 24);
  write("val", 30, 6);
  write("test", 40, 6);
  write("test_2016_flickr", 50, 6);
  write_bytes(folder / "deu.txt", lines_of(0, 100, [](int i) {
                return fmt::format("{}{}\t{}", i, sentence("Word", i), sentence("Wort", i));
              }));
}

// No validation and no test: they are drawn from the training rows.
void write_text_classifier(const fs::path& folder) {
  write_bytes(folder / "train.tsv", lines_of(0, 40, [](int i) {
                return fmt::format("{}\tA Film {}", i % 2 == 0 ? "good" : "bad",
                                   sentence(i % 2 == 0 ? "Fine" : "Poor", i));
              }));
}

void write_features(const fs::path& file, std::int64_t images) {
  Tensor features(DType::kF32, {images, 4});
  for (std::int64_t e = 0; e < features.elements(); ++e) {
    features.as<float>()[std::size_t(e)] = float(1 + (5 * e) % 13);
  }
  io::TensorFile content;
  content.tensors.emplace("features", std::move(features));
  io::write_safetensors(file, content);
}

void write_order_embeddings(const fs::path& folder) {
  const auto caption = [](int i) { return sentence("Dog", i); };
  for (const auto& [split, images] : {std::pair{"train", 12}, {"dev", 6}, {"test", 6}}) {
    write_bytes(folder / fmt::format("{}_caps.txt", split), lines_of(0, 5 * images, caption));
    write_features(folder / fmt::format("{}_ims.safetensors", split), images);
  }
  for (int k = 0; k < 5; ++k) {
    write_bytes(folder / fmt::format("coco_dev_reference{}", k), lines_of(k, 15, caption));
    write_bytes(folder / fmt::format("coco_reference{}", k), lines_of(k, 6, caption));
  }
  write_features(folder / "images.safetensors", 12);
}

void write_attentive_reader(const fs::path& folder) {
  const auto record = [](int i) {
    return fmt::format(
        "http://x/{0}\n\n@entity0 saw @entity1 {1}\n\n@placeholder saw "
        "@entity1\n\n@entity0\n\n@entity0:Ann\n@entity1:Bob\n",
        i, sentence("Times", i));
  };
  write_bytes(folder / "training.question", lines_of(0, 20, record));
  write_bytes(folder / "validation.question", lines_of(20, 8, record));
  write_bytes(folder / "test.question", lines_of(30, 8, record));
  const auto story = [](int i) {
    return fmt::format("1 Ann went to place{0}.\n2 Bob went home.\n3 Where is Ann?\tplace{0}\t1",
                       i % 5);
  };
  fs::create_directory(folder / "babi-en");
  for (const char* part : {"train", "test"}) {
    write_bytes(folder / fmt::format("babi-en/qa1_a_{}.txt", part), lines_of(0, 20, story));
    write_bytes(folder / fmt::format("babi-en/qa2_b_{}.txt", part), lines_of(2, 20, story));
  }
  write_bytes(folder / "lambada_test.jsonl", lines_of(0, 40, [](int i) {
                return fmt::format(R"({{"text": "Ann met Bob{0} . They saw Bob{0}"}})", i);
              }));
}

void write_skip_thoughts(const fs::path& folder) {
  const auto thought = [](int i) {
    return fmt::format("Word{} word{} Said{}", i % 4, i % 3, i % 8 == 0 ? " a a a a a a a" : "");
  };
  write_bytes(folder / "train.txt", lines_of(0, 40, thought));
  write_bytes(folder / "valid.txt", lines_of(1, 15, thought));
  write_bytes(folder / "test.txt", lines_of(2, 20, thought));
  write_bytes(folder / "vectors.txt",
              "word0 1 2\nword1 2 1\nword2 3 5\nword3 1 4\nsaid 2 2\nunseen 4 1\n");
}

void write_handwriting(const fs::path& folder) {
  write_bytes(folder / "iamondb-lines.tsv", lines_of(0, 40, [](int i) {
                std::string row = fmt::format("a{0:02}-{0:03}u-00\tHallo {0}\t110\t500 700 0", i);
                for (int k = 1; k < 110; ++k) {
                  row += fmt::format(",{} {} {}", 3 * ((i + k) % 7) - 9, k % 5 - 2,
                                     k % 30 == 0 ? 1 : 0);
                }
                return row;
              }));
}

void write_char_lm(const fs::path& folder) {
  for (const char* name : {"enwik8", "other"}) {
    write_bytes(folder / name, lines_of(0, 200, [&](int i) { return sentence(name, i); }));
  }
}

void write_word_lm(const fs::path& folder) {
  for (const auto& [part, count] : {std::pair{"train", 60}, {"valid", 12}, {"test", 12}}) {
    const auto text = [&](int first) {
      return lines_of(first, count, [&](int i) { return "<unk> " + sentence("word", i); });
    };
    write_bytes(folder / fmt::format("ptb.{}.txt", part), text(0));
    write_bytes(folder / fmt::format("wiki.{}.tokens", part), text(1));
  }
}

void write_all(const fs::path& folder) {
  const std::pair<const char*, void (*)(const fs::path&)> tasks[] = {
      {"translation", write_translation},
      {"text_classifier", write_text_classifier},
      {"order_embeddings", write_order_embeddings},
      {"attentive_reader", write_attentive_reader},
      {"skip_thoughts", write_skip_thoughts},
      {"handwriting", write_handwriting},
      {"char_lm", write_char_lm},
      {"word_lm", write_word_lm}};
  for (const auto& [task, write] : tasks) {
    fs::create_directory(folder / task);
    write(folder / task);
  }
}

}  // namespace

const fs::path& key_files() {
  static const test::TempDir folder;
  static const bool written = (write_all(folder.path()), true);
  check(written, ErrorKind::kIo, "[key_files] no files");
  return folder.path();
}

}  // namespace keel::models
