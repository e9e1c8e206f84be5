#include "frontend/io/tar.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "src/core/error.h"

namespace keel::io {
namespace {

constexpr std::size_t kTarBlock = 512;
constexpr std::int64_t kMostExpanded = std::int64_t{1} << 26;  // bytes, of all files with holes
constexpr const char* kLostLinks = "links to no file in it";
constexpr int kMostTarLinks = 40;  // as many as Linux follows

// "./a/../b" and "b" are the same file.
std::string tar_key(const std::filesystem::path& name) { return name.lexically_normal().string(); }

const char* kind_of_member(unsigned type) {
  switch (type) {
    case AE_IFCHR:
    case AE_IFBLK:
      return "devices";
    case AE_IFIFO:
    case AE_IFSOCK:
      return "pipes";
    default:
      return "members of an unknown type";
  }
}

class TarReader {
 public:
  TarReader(std::string_view archive, const std::string& who)
      : bytes_(archive), who_(who), archive_(archive_read_new(), archive_read_free) {
    check(archive_ != nullptr, ErrorKind::kMemory, "{}: out of memory", who_);
    expect(archive_read_support_format_tar(archive_.get()));
    // Without this a reader would stop at the end mark of the first of several archives.
    expect(archive_read_set_options(archive_.get(), "read_concatenated_archives"));
  }

  TarFiles read() {
    // The library takes an archive that ends between two members for a whole one.
    const std::string_view end = bytes_.substr(bytes_.size() - std::min(bytes_.size(), kTarBlock));
    const bool ends = end.size() == kTarBlock && end.find_first_not_of('\0') == end.npos;
    expect(archive_read_open_memory(archive_.get(), bytes_.data(), bytes_.size()));
    archive_entry* member = nullptr;
    while (true) {
      const int result = archive_read_next_header(archive_.get(), &member);
      if (result == ARCHIVE_EOF) break;
      expect(result);
      take(member);
    }
    check(ends, ErrorKind::kBadInput,
          "{}: byte {}: expected the header of a file or the end mark, got the end", who_,
          bytes_.size());
    return finished();
  }

 private:
  // A file or a symbolic link.
  struct Member {
    std::string name, link_to = {};
    std::string_view content = {};
  };

  // The byte at which the member's header begins, or else the number of bytes read.
  std::int64_t place() const {
    const std::int64_t header = archive_read_header_position(archive_.get());
    return header >= 0 ? header : archive_filter_bytes(archive_.get(), 0);
  }

  // A warning is of a name in a character set that the locale lacks; the name comes as its bytes.
  void expect(int result) const {
    if (result == ARCHIVE_OK || result == ARCHIVE_WARN) return;
    const char* reason = archive_error_string(archive_.get());
    fail(ErrorKind::kBadInput, "{}: byte {}: expected a whole tar archive, got: {}", who_, place(),
         reason == nullptr ? "damage" : reason);
  }

  void take(archive_entry* member) {
    const char* name = archive_entry_pathname(member);
    check(name != nullptr, ErrorKind::kBadInput, "{}: byte {}: expected the name of a file", who_,
          place());
    const unsigned type = archive_entry_filetype(member);
    if (const char* target = archive_entry_hardlink(member)) {
      add_hard_link(name, tar_key(target));
    } else if (const char* symlink = archive_entry_symlink(member)) {
      add({name, tar_key(std::filesystem::path(name).parent_path() / symlink)});
    } else if (type == AE_IFREG) {
      add({name, "", content_of(member, name)});
    } else if (type != AE_IFDIR) {
      files_.skipped.add(kind_of_member(type));
    }
  }

  // It leads to a member before it, and to itself where a file was packed twice.
  void add_hard_link(const char* name, const std::string& target) {
    const auto found = places_.find(target);
    if (found == places_.end()) {
      files_.skipped.add(kLostLinks);
    } else if (target != tar_key(name)) {
      const Member& file = members_[found->second];
      add({name, file.link_to, file.content});
    }
  }

  void add(Member member) {
    const auto [known, is_new] = places_.try_emplace(tar_key(member.name), members_.size());
    if (is_new) {
      members_.push_back(std::move(member));
    } else {
      members_[known->second] = std::move(member);
      files_.skipped.add("replaced by later ones");
    }
  }

  // A file without holes is one block, which lies in the archive as it is.
  std::string_view content_of(archive_entry* member, const char* name) {
    const std::int64_t size = archive_entry_size(member);
    const void* block = nullptr;
    std::size_t bytes = 0;
    la_int64_t offset = 0;
    int result = archive_read_data_block(archive_.get(), &block, &bytes, &offset);
    if (result == ARCHIVE_OK && offset == 0 && std::int64_t(bytes) == size) {
      return {static_cast<const char*>(block), bytes};
    }
    if (result == ARCHIVE_EOF && size == 0) return {};
    check(size >= 0 && size <= kMostExpanded - expanded_, ErrorKind::kBadInput,
          "{}: {}: expected files with holes (tar --sparse) of at most {} bytes together, got more",
          who_, name, kMostExpanded);
    expanded_ += size;
    std::string& content = files_.expanded.emplace_back(std::size_t(size), '\0');
    for (; result == ARCHIVE_OK;
         result = archive_read_data_block(archive_.get(), &block, &bytes, &offset)) {
      const bool is_within = offset >= 0 && offset <= size && std::int64_t(bytes) <= size - offset;
      check(is_within, ErrorKind::kBadInput, "{}: {}: expected {} bytes, got more", who_, name,
            size);
      std::copy_n(static_cast<const char*>(block), bytes, content.begin() + offset);
    }
    if (result != ARCHIVE_EOF) expect(result);
    return content;
  }

  std::optional<std::string_view> content_behind(const Member& link) const {
    const Member* at = &link;
    for (int i = 0; i < kMostTarLinks && !at->link_to.empty(); ++i) {
      const auto next = places_.find(at->link_to);
      if (next == places_.end()) return std::nullopt;
      at = &members_[next->second];
    }
    return at->link_to.empty() ? std::optional(at->content) : std::nullopt;
  }

  TarFiles finished() {
    for (const Member& member : members_) {
      if (is_hidden(member.name)) {
        files_.skipped.add_hidden();
      } else if (const std::optional<std::string_view> content = content_behind(member)) {
        files_.files.push_back({member.name, *content});
      } else {
        files_.skipped.add(kLostLinks);
      }
    }
    return std::move(files_);
  }

  std::string_view bytes_;
  const std::string& who_;
  std::unique_ptr<archive, int (*)(archive*)> archive_;
  std::vector<Member> members_;
  std::map<std::string, std::size_t> places_;  // of members, by name
  std::int64_t expanded_ = 0;
  TarFiles files_;
};

}  // namespace

TarFiles read_tar(std::string_view archive, const std::string& who) {
  return TarReader(archive, who).read();
}

}  // namespace keel::io
