// Similar files in a folder, for messages about a file that does not exist.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace keel::io {

// " (found x.conllu, y.conllu: none ends in train)", for the end of a message about a missing file:
// up to five names in the folder, in their order, that contain one of `parts`, in upper or lower
// case, followed by ": WHY" unless that is empty. "" if there are none.
std::string near_misses(const std::filesystem::path& folder,
                        std::initializer_list<std::string_view> parts, std::string_view why = {});

}  // namespace keel::io
