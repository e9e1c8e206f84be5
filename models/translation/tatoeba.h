// Tatoeba's sentences in English and German.
#pragma once

#include <filesystem>

#include "models/translation/corpus_layout.h"

namespace keel::models {

// As files.h says of "tatoeba".
ParallelCorpus read_tatoeba(const std::filesystem::path& folder, const CorpusLayout& layout,
                            const CorpusOptions& options);

}  // namespace keel::models
