// Zip archives as far as NumPy writes them; sizes and places come from the directory at the end.
#include "frontend/io/npz.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <vector>

#include "frontend/io/atomic_file.h"
#include "frontend/io/npy.h"
#include "frontend/io/packed_file.h"

namespace keel::io {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr std::int64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kMaxComment = 0xFFFF;
constexpr std::uint32_t kMax32 = 0xFFFFFFFF;  // "see the zip64 field"
constexpr std::uint16_t kZip64 = 1, kEncrypted = 0x2041, kSizesFollow = 8, kStored = 0,
                        kDeflated = 8;
constexpr std::uint32_t kDate = 0x00210000;  // 1980-01-01 00:00, the first there is
constexpr std::int64_t kMaxDeflateRatio = 1032;
constexpr std::size_t kMaxShownName = 80;  // characters of a name in a message

// The facts about an entry that both the directory and the local header state.
struct Entry {
  std::string name;
  std::uint16_t flags = 0, method = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed = 0, size = 0, offset = 0;
};

// Without the ".npy" that it ends in.
std::string_view array_name(const Entry& entry) {
  return std::string_view(entry.name).substr(0, entry.name.size() - 4);
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return c >= ' ' && c <= '~' && c != '/' && c != '\\';
  });
}

class Archive {
 public:
  Archive(std::string_view bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  // Every entry, checked against the file's size and against each other.
  std::vector<Entry> entries() const {
    const std::int64_t end = find_end();
    const auto count = number<std::uint16_t>(end + 10);
    const std::int64_t start = number<std::uint32_t>(end + 16);
    const std::int64_t stop = start + number<std::uint32_t>(end + 12);
    expect(number<std::uint32_t>(end + 4) == 0 && number<std::uint16_t>(end + 8) == count,
           "an archive of one part");
    // Otherwise a false end record could hide the directory, and all arrays with it.
    expect(stop == end, "a directory inside of the file, below 4 GiB, up to its end record");
    std::vector<Entry> entries;
    std::int64_t at = start;
    for (int i = 0; i < count; ++i) entries.push_back(central_entry(at, stop));
    expect(at == stop, "a directory that ends after its last entry");
    check_apart(entries, start);
    return entries;
  }

  // The content, expanded and verified. `scratch` holds it when it was packed.
  std::string_view content(const Entry& entry, std::string& scratch) const {
    const std::string_view packed = bytes_.substr(data_of(entry), entry.packed);
    const std::string_view data =
        entry.method == kStored ? packed : inflate(packed, entry, scratch);
    const auto* begin = reinterpret_cast<const Bytef*>(data.data());
    expect_of(entry, crc32_z(0, begin, data.size()) == entry.crc, "content with its checksum");
    return data;
  }

 private:
  void expect(bool holds, std::string_view what) const {
    check(holds, ErrorKind::kBadInput, "[npz] {}: expected {}", path_, what);
  }
  void expect_of(const Entry& entry, bool holds, std::string_view what) const {
    check(holds, ErrorKind::kBadInput, "[npz] {}: entry {:?}: expected {}", path_,
          std::string_view(entry.name).substr(0, kMaxShownName), what);
  }
  void expect_inside(std::int64_t at, std::int64_t length, std::int64_t stop) const {
    expect(at >= 0 && length >= 0 && at <= stop && length <= stop - at,
           "headers inside of the file, got a damaged or cut archive");
  }
  // Little-endian; the place is known to be inside.
  template <class T>
  T number(std::int64_t at) const {
    T value{};
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }

  std::int64_t find_end() const {
    const std::int64_t last = std::ssize(bytes_) - kEndBytes;
    for (std::int64_t at = last; at >= std::max<std::int64_t>(0, last - kMaxComment); --at) {
      const bool fits = number<std::uint16_t>(at + 20) == last - at;
      if (fits && number<std::uint32_t>(at) == kEnd) return at;
    }
    fail(ErrorKind::kBadInput, "[npz] {}: expected a whole zip archive, got other or cut content",
         path_);
  }

  // Reads the entry at `at` and moves on to the next.
  Entry central_entry(std::int64_t& at, std::int64_t stop) const {
    expect_inside(at, kCentralBytes, stop);
    expect(number<std::uint32_t>(at) == kCentral, "a directory of entries");
    Entry entry = common_fields(at + 8, at + kCentralBytes, stop);
    entry.offset = number<std::uint32_t>(at + 42);
    const std::int64_t name = std::ssize(entry.name), extra = number<std::uint16_t>(at + 30);
    read_zip64(at + kCentralBytes + name, extra, {&entry.size, &entry.packed, &entry.offset});
    at += kCentralBytes + name + extra + number<std::uint16_t>(at + 32);
    expect_inside(at, 0, stop);
    check_entry(entry);
    return entry;
  }

  // The fields that both kinds of header have in the same order, from the flags on.
  Entry common_fields(std::int64_t at, std::int64_t name, std::int64_t stop) const {
    const std::int64_t name_bytes = number<std::uint16_t>(at + 20),
                       extra_bytes = number<std::uint16_t>(at + 22);
    expect_inside(name, name_bytes + extra_bytes, stop);
    return {.name = std::string(bytes_.substr(std::size_t(name), std::size_t(name_bytes))),
            .flags = number<std::uint16_t>(at),
            .method = number<std::uint16_t>(at + 2),
            .crc = number<std::uint32_t>(at + 8),
            .packed = number<std::uint32_t>(at + 12),
            .size = number<std::uint32_t>(at + 16)};
  }

  // Fields of the value kMax32 stand, in this order, in the zip64 record of the extra bytes.
  void read_zip64(std::int64_t at, std::int64_t bytes,
                  std::initializer_list<std::uint64_t*> fields) const {
    const std::int64_t stop = at + bytes;
    while (stop - at >= 4) {
      const auto id = number<std::uint16_t>(at);
      const std::int64_t end = at + 4 + number<std::uint16_t>(at + 2);
      expect(end <= stop, "extra fields inside of their header");
      at += 4;
      for (std::uint64_t* field : fields) {
        if (id != kZip64 || *field != kMax32 || end - at < 8) continue;
        *field = number<std::uint64_t>(at);
        at += 8;
      }
      at = end;
    }
  }

  void check_entry(const Entry& entry) const {
    expect_of(entry, entry.name.ends_with(".npy") && is_plain_name(array_name(entry)),
              "a plain name that ends in .npy");
    expect_of(entry, (entry.flags & kEncrypted) == 0, "no encryption");
    expect_of(entry, entry.method == kStored || entry.method == kDeflated,
              "stored or deflated content");
    expect_of(entry, entry.method != kStored || entry.packed == entry.size,
              "equal sizes of stored content");
    expect_of(entry, entry.packed <= bytes_.size() && entry.offset <= bytes_.size(),
              "content inside of the file");
    expect_of(entry, entry.size / kMaxDeflateRatio <= entry.packed,
              "a size that deflate can reach");
  }

  // Entries may neither share bytes nor names, nor reach into the directory.
  void check_apart(std::vector<Entry> entries, std::int64_t directory) const {
    std::ranges::sort(entries, {}, &Entry::offset);
    std::uint64_t free = 0, total = 0;
    for (const Entry& entry : entries) {
      expect_of(entry, entry.offset >= free, "content of its own, got an overlap");
      expect_inside(std::int64_t(entry.offset), kLocalBytes, directory);
      free = data_of(entry) + entry.packed;
      expect_of(entry, free <= std::uint64_t(directory), "content before the directory");
      total += std::min<std::uint64_t>(entry.size, kMaxNpzBytes + 1);
      check(total <= kMaxNpzBytes, ErrorKind::kBadInput,
            "[npz] {}: expected arrays of at most {} bytes, got more", path_, kMaxNpzBytes);
    }
    std::ranges::sort(entries, {}, &Entry::name);
    const auto twice = std::ranges::adjacent_find(entries, {}, &Entry::name);
    if (twice != entries.end()) expect_of(*twice, false, "one entry of this name");
  }

  // Where the entry's content begins, after a local header that agrees with the directory.
  std::uint64_t data_of(const Entry& entry) const {
    const auto at = std::int64_t(entry.offset);
    expect_of(entry, number<std::uint32_t>(at) == kLocal, "a local header at its place");
    Entry local = common_fields(at + 6, at + kLocalBytes, std::ssize(bytes_));
    const std::int64_t extra = at + kLocalBytes + std::ssize(local.name);
    const std::int64_t extra_bytes = number<std::uint16_t>(at + 28);
    read_zip64(extra, extra_bytes, {&local.size, &local.packed});
    const bool same_sizes =
        local.size == entry.size && local.packed == entry.packed && local.crc == entry.crc;
    expect_of(entry,
              local.name == entry.name && local.method == entry.method &&
                  local.flags == entry.flags && (same_sizes || (entry.flags & kSizesFollow) != 0),
              "a local header that agrees with the directory");
    return std::uint64_t(extra + extra_bytes);
  }

  std::string_view inflate(std::string_view packed, const Entry& entry,
                           std::string& scratch) const {
    scratch.resize(entry.size);
    z_stream stream{};
    check(inflateInit2(&stream, -MAX_WBITS) == Z_OK, ErrorKind::kMemory, "[npz] {}: out of memory",
          path_);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(scratch.data());
    stream.avail_out = static_cast<uInt>(scratch.size());
    const int result = ::inflate(&stream, Z_FINISH);
    const bool whole = result == Z_STREAM_END && stream.avail_in == 0 && stream.avail_out == 0;
    inflateEnd(&stream);
    expect_of(entry, whole, "deflated content of the given sizes");
    return scratch;
  }

  std::string_view bytes_;
  const std::string& path_;
};

template <class... Numbers>
void append(std::string& bytes, Numbers... numbers) {
  (bytes.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
}

// From the version needed to the lengths of name and extra bytes, as both kinds of header have it.
void append_common(std::string& bytes, const Entry& entry) {
  const auto size = static_cast<std::uint32_t>(entry.size);
  append(bytes, std::uint16_t(20), entry.flags, entry.method, kDate, entry.crc, size, size,
         static_cast<std::uint16_t>(entry.name.size()), std::uint16_t(0));
}

std::uint32_t crc_of(std::uint32_t crc, std::string_view bytes) {
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  return static_cast<std::uint32_t>(crc32_z(crc, data, bytes.size()));
}

// An entry of the directory; `at` is where its local header lies.
void append_central(std::string& directory, const Entry& entry, std::size_t at) {
  append(directory, kCentral, std::uint16_t(20));
  append_common(directory, entry);
  // No comment, part 0, no attributes.
  append(directory, std::uint32_t(0), std::uint16_t(0), std::uint32_t(0),
         static_cast<std::uint32_t>(at));
  directory += entry.name;
}

// Gives the archive to `take` piece by piece, the arrays' own bytes from where they lie.
void write_archive(const Arrays& arrays, const std::function<void(std::string_view)>& take) {
  check(arrays.size() < 0xFFFF, ErrorKind::kUsage, "[npz] expected less than 65535 arrays, got {}",
        arrays.size());
  std::string directory;
  std::size_t at = 0;
  for (const auto& [name, array] : arrays) {
    check(is_plain_name(name) && name.size() < 1000, ErrorKind::kUsage,
          "[npz] array {:?}: expected a name of printable ASCII without slashes", name);
    const std::string header = npy_header(array);
    const std::string_view data(reinterpret_cast<const char*>(array.data()),
                                std::size_t(array.bytes()));
    const Entry entry{.name = name + ".npy",
                      .crc = crc_of(crc_of(0, header), data),
                      .size = header.size() + data.size()};
    check(std::int64_t(at + entry.size) < kMaxNpzBytes, ErrorKind::kUsage,
          "[npz] array {}: expected at most {} bytes in all", name, kMaxNpzBytes);
    append_central(directory, entry, at);
    std::string start;
    append(start, kLocal);
    append_common(start, entry);
    start += entry.name + header;
    take(start);
    take(data);
    at += start.size() + data.size();
  }
  const auto count = static_cast<std::uint16_t>(arrays.size());
  const auto directory_bytes = static_cast<std::uint32_t>(directory.size());
  append(directory, kEnd, std::uint32_t(0), count, count, directory_bytes,
         static_cast<std::uint32_t>(at), std::uint16_t(0));
  take(directory);
}

}  // namespace

Arrays read_npz(const std::filesystem::path& path) {
  return parse_npz(read_file(path, kMaxNpzBytes), path.string());
}

Arrays parse_npz(std::string_view bytes, const std::string& path) {
  const Archive archive(bytes, path);
  Arrays arrays;
  for (const Entry& entry : archive.entries()) {
    std::string scratch;
    const std::string name(array_name(entry));
    const std::string who = fmt::format("[npz] {}: array {}", path, name);
    arrays.emplace(name, parse_npy(archive.content(entry, scratch), who));
  }
  return arrays;
}

std::string npz_bytes(const Arrays& arrays) {
  std::string bytes;
  write_archive(arrays, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

void write_npz(const std::filesystem::path& path, const Arrays& arrays) {
  AtomicFile file(path);
  write_archive(arrays, [&](std::string_view piece) { file.write(piece); });
  file.commit();
}

}  // namespace keel::io
