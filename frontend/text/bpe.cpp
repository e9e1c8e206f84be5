#include "frontend/text/bpe.h"

#include <functional>
#include <queue>
#include <tuple>

#include "frontend/text/lines.h"
#include "frontend/text/unicode.h"
#include "frontend/text/utf8.h"
#include "src/core/error.h"

namespace keel::text {
namespace {

constexpr std::size_t kMostCached = 1 << 20, kLongestCached = 256;  // words, bytes of one
constexpr std::int32_t kNoSymbol = -1;  // of a character that no merge knows, and of what is gone
constexpr std::uint32_t kNoPart = UINT32_MAX;

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

// Bytes of the character that a well-formed text begins with.
std::size_t first_character(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) {
    ++length;
  }
  return length;
}

}  // namespace

// A sub-word: where it begins, and those beside it. Numbers are small, for a word may be as long as
// a line.
struct Bpe::Part {
  std::uint32_t begin = 0, previous = kNoPart, next = kNoPart;
  std::int32_t symbol = kNoSymbol;
};

// Two parts that may be joined, the earliest merge first, then from left to right.
struct Bpe::Candidate {
  std::int32_t rank;
  std::uint32_t part;
  std::int32_t left, right;
  friend bool operator>(const Candidate& a, const Candidate& b) {
    return std::tie(a.rank, a.part) > std::tie(b.rank, b.part);
  }
};

Bpe::Bpe(const BpeCodes& codes) : separate_end_(codes.separate_end) {
  for (std::size_t rank = 0; rank < codes.merges.size(); ++rank) {
    const BpeMerge& merge = codes.merges[rank];
    const std::int32_t left = add_symbol(merge.left), right = add_symbol(merge.right);
    joins_.try_emplace(pair_key(left, right),
                       Join{static_cast<std::int32_t>(rank), add_symbol(merge.left + merge.right)});
  }
}

std::int32_t Bpe::add_symbol(const std::string& text) {
  return symbols_.try_emplace(text, static_cast<std::int32_t>(symbols_.size())).first->second;
}

std::int32_t Bpe::symbol(std::string_view text) const {
  const auto found = symbols_.find(text);
  return found == symbols_.end() ? kNoSymbol : found->second;
}

const Bpe::Join* Bpe::find(std::int32_t left, std::int32_t right) const {
  if (left == kNoSymbol || right == kNoSymbol) return nullptr;
  const auto found = joins_.find(pair_key(left, right));
  return found == joins_.end() ? nullptr : &found->second;
}

std::string Bpe::apply(std::string_view line, std::string_view where) {
  std::string out;
  each_word(line, [&](std::string_view word) {
    check(!word.ends_with(kContinues), ErrorKind::kBadInput,
          "[bpe] {}: expected words that do not end in {}, got '{}'", where, kContinues,
          clipped(word, 60));
    if (!out.empty()) out += ' ';
    if (const auto found = cache_.find(word); found != cache_.end()) {
      out += found->second;
    } else if (word.size() > kLongestCached) {
      out += cut(word);
    } else {
      if (cache_.size() >= kMostCached) cache_.clear();
      out += cache_.emplace(word, cut(word)).first->second;
    }
  });
  return out;
}

// The characters of a word with their neighbours. In version 0.1 the end marker is the last part.
std::vector<Bpe::Part> Bpe::parts_of(std::string_view word) const {
  check(word.size() < kNoPart, ErrorKind::kBadInput,
        "[bpe] expected words of fewer than {} bytes, got one of {}", kNoPart, word.size());
  std::vector<Part> parts;
  parts.reserve(word.size() + 1);
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = first_character(word.substr(at));
    std::string character(word.substr(at, length));
    if (!separate_end_ && at + length == word.size()) character += kEndOfWord;
    parts.push_back({.begin = std::uint32_t(at), .symbol = symbol(character)});
    at += length;
  }
  if (separate_end_) {
    parts.push_back({.begin = std::uint32_t(word.size()), .symbol = symbol(kEndOfWord)});
  }
  for (std::uint32_t i = 0; i + 1 < parts.size(); ++i) {
    parts[i].next = i + 1;
    parts[i + 1].previous = i;
  }
  return parts;
}

void Bpe::join_all(std::vector<Part>& parts) const {
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](std::uint32_t i) {
    if (i == kNoPart || parts[i].next == kNoPart) return;
    const std::int32_t left = parts[i].symbol, right = parts[parts[i].next].symbol;
    if (const Join* join = find(left, right)) queue.push({join->rank, i, left, right});
  };
  for (std::uint32_t i = 0; i + 1 < parts.size(); ++i) offer(i);
  std::vector<std::uint32_t> joined;
  while (!queue.empty()) {
    joined.clear();
    // All places of one merge before any that it makes possible.
    for (const std::int32_t rank = queue.top().rank; !queue.empty() && queue.top().rank == rank;) {
      const Candidate c = queue.top();
      queue.pop();
      Part& part = parts[c.part];
      if (part.symbol != c.left || part.next == kNoPart) continue;
      Part& gone = parts[part.next];
      if (gone.symbol != c.right) continue;
      part.symbol = find(c.left, c.right)->symbol;
      part.next = gone.next;
      gone.symbol = kNoSymbol;
      if (part.next != kNoPart) parts[part.next].previous = c.part;
      joined.push_back(c.part);
    }
    for (std::uint32_t i : joined) {
      offer(parts[i].previous);
      offer(i);
    }
  }
}

std::string Bpe::cut(std::string_view word) const {
  std::vector<Part> parts = parts_of(word);
  join_all(parts);
  std::string out;
  for (std::uint32_t i = 0; i != kNoPart; i = parts[i].next) {
    const bool last = parts[i].next == kNoPart;
    const std::size_t end = last ? word.size() : parts[parts[i].next].begin;
    if (end == parts[i].begin) break;  // a marker by itself
    out += word.substr(parts[i].begin, end - parts[i].begin);
    if (end < word.size()) (out += kContinues) += ' ';
  }
  return out;
}

std::string bpe_undone(std::string_view line) {
  std::string out;
  while (true) {
    const std::size_t at = line.find(kContinues);
    if (at == std::string_view::npos) break;
    const std::size_t behind = at + kContinues.size();
    if (behind == line.size() || line[behind] == ' ') {
      out += line.substr(0, at);
      line.remove_prefix(std::min(behind + 1, line.size()));
    } else {
      out += line.substr(0, at + 1);
      line.remove_prefix(at + 1);
    }
  }
  return out += line;
}

}  // namespace keel::text
