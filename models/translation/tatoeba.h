// Tatoeba's sentences in English and German.
#pragma once

#include <filesystem>

#include "models/translation/corpus_layout.h"

namespace keel::models {

// Reads "tatoeba" as files.h describes it.
ParallelCorpus read_tatoeba(const std::filesystem::path& folder, const CorpusLayout& layout,
                            const CorpusOptions& options);

}  // namespace keel::models
