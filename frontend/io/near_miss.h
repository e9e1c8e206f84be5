// What a folder holds in place of what was looked for.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace keel::io {

// " (found x.conllu, y.conllu: none ends in train)", for the end of a message on a file that is not
// there: names of the folder in their order, up to five, that hold one of `parts`, be their letters
// large or small, and then ": WHY" unless that is empty. "" where there are none.
std::string near_misses(const std::filesystem::path& folder,
                        std::initializer_list<std::string_view> parts, std::string_view why = {});

}  // namespace keel::io
