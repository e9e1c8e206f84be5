// The readers of keel as functions of bytes that anybody may have written: one list for the fuzzer
// (tools/fuzz) and for the test that goes through the corpus.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace keel::fuzz {

struct Target {
  std::string_view name;           // of its folder in tests/fuzz/corpus
  void (*read)(std::string_view);  // gives bytes to the reader
};

// Every reader there is, by file of origin.
std::span<const Target> io_targets();
std::span<const Target> text_targets();
std::span<const Target> task_targets();
std::span<const Target> train_targets();
std::span<const Target> recipe_targets();

std::vector<Target> all_targets();

// Gives bytes to a reader. It may refuse them with an Error that has a message and is of a kind
// that is no bug of keel. Any other exception goes through: it is a finding.
void run_target(const Target& target, std::string_view bytes);

// Bytes as a regular file that is in no folder, for readers that take a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::filesystem::path path() const;

 private:
  int fd_;
};

// Throws std::logic_error unless `holds`: what a reader took has to be consistent.
void expect(bool holds, const char* message);

}  // namespace keel::fuzz
