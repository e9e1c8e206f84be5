#include "frontend/io/message.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "src/core/shown.h"

namespace keel::io {
namespace {

// Collects the parts of a message, so that a usual line is one call of the system and lines of
// several processes do not mix. Allocates nothing: a message may be about memory that is used up.
class Message {
 public:
  void add(std::string_view text) {
    while (!text.empty()) {
      if (size_ == bytes_.size()) flush();
      const std::size_t count = std::min(text.size(), bytes_.size() - size_);
      std::memcpy(bytes_.data() + size_, text.data(), count);
      size_ += count;
      text.remove_prefix(count);
    }
  }
  void add_shown(std::string_view text) {
    while (!text.empty()) {
      const ShownCharacter first = first_shown(text);
      add(first.text);
      text.remove_prefix(first.bytes);
    }
  }
  void flush() {
    std::string_view rest(bytes_.data(), size_);
    size_ = 0;
    while (!rest.empty()) {
      const ssize_t written = write(STDERR_FILENO, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      rest.remove_prefix(std::size_t(written));
    }
  }

 private:
  std::array<char, 4096> bytes_;
  std::size_t size_ = 0;
};

void write_line(std::string_view before, std::string_view text) {
  Message message;
  message.add(before);
  message.add_shown(text);
  message.add("\n");
  message.flush();
}

}  // namespace

void say(std::string_view line) noexcept { write_line("", line); }
void warn(std::string_view text) noexcept { write_line("warning: ", text); }
void show(std::string_view text) noexcept {
  Message message;
  message.add(text);
  message.flush();
}

}  // namespace keel::io
