#include "frontend/train/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "frontend/io/message.h"
#include "src/core/shown.h"

namespace keel::train {
namespace {

using Clock = std::chrono::steady_clock;

std::string bar(double part) {
  constexpr int kWidth = 20;
  const int filled = static_cast<int>(part * kWidth);
  return std::string(std::size_t(filled), '#') + std::string(std::size_t(kWidth - filled), '.');
}

}  // namespace

Progress::Progress(bool quiet)
    : quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1), next_(Clock::now()) {
  const char* term = std::getenv("TERM");
  if (term != nullptr && std::string(term) == "dumb") terminal_ = false;
}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (shown_) io::show("\r\x1b[K");
  shown_ = false;
}

bool Progress::is_due() {
  const auto now = Clock::now();
  if (quiet_ || now < next_) return false;
  next_ = now + (terminal_ ? std::chrono::milliseconds(100) : std::chrono::seconds(10));
  return true;
}

void Progress::update(const Point& p) {
  if (!is_due()) return;
  show(double(p.step) / double(p.total),
       fmt::format("epoch {} step {}/{} loss {:.4f} {:.0f} {}/s, {}", p.epoch, p.step, p.total,
                   p.loss, p.items_per_second, p.item_unit, left_text(p.spent, p.to_do)));
}

void Progress::update(double part, const std::string& text) {
  if (is_due()) show(part, text);
}

void Progress::evaluation(std::string_view what, std::int64_t done, std::int64_t of) {
  if (of == 0) return update(1, fmt::format("{}: searching, batch {}", what, done));
  update(double(done) / double(of), fmt::format("{}: evaluating, batch {} of {}", what, done, of));
}

void Progress::show(double part, const std::string& text) {
  if (!terminal_) {
    io::say(text);
    return;
  }
  clear();
  io::show(fmt::format("[{}] {}", bar(part), keel::shown(text)));
  shown_ = true;
}

void Progress::line(const std::string& text) {
  if (quiet_) return;
  clear();
  io::say(text);
}

void Progress::warning(const std::string& text) {
  clear();
  io::warn(text);
}

std::string duration_text(double seconds) {
  if (seconds >= 0.05 && seconds < 0.95) return fmt::format("{:.1f} s", seconds);
  const auto s = static_cast<std::int64_t>(std::lround(seconds));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace keel::train
