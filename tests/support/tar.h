// Packs files for tests as the tar program does, with members of any type.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keel::test {

struct TarMember {
  std::string_view name, content;
  char type = '0';
  std::string_view link = {};
};

// One member, of a name and a link of at most 100 bytes, without an end mark.
inline std::string tar_member(const TarMember& member) {
  constexpr std::size_t kBlock = 512;
  std::string header(kBlock, '\0');
  const auto put = [&](std::size_t place, std::string_view value) {
    header.replace(place, value.size(), value);
  };
  put(0, member.name.substr(0, 100));
  put(100, "0000644");
  put(124, fmt::format("{:011o}", member.content.size()));
  put(148, "        ");
  header[156] = member.type;
  put(157, member.link.substr(0, 100));
  put(257, std::string_view("ustar\00000", 8));
  std::uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + '\0');
  std::string bytes = header + std::string(member.content);
  bytes.resize((bytes.size() + kBlock - 1) / kBlock * kBlock);
  return bytes;
}

inline const std::string tar_end(1024, '\0');

// An archive of these members.
inline std::string tar(const std::vector<TarMember>& members) {
  std::string bytes;
  for (const TarMember& member : members) bytes += tar_member(member);
  return bytes + tar_end;
}

// A record of a PAX header, such as "path=NAME": its own length comes first.
inline std::string pax_record(std::string_view text) {
  std::size_t size = text.size() + 3;
  while (fmt::format("{} {}\n", size, text).size() != size) ++size;
  return fmt::format("{} {}\n", size, text);
}

}  // namespace keel::test
