// The observer of the singular values of a table of embeddings. A line has "epoch", "table",
// "area", "effective_rank" (SpectrumSummary of singular_values.h) and the singular "values" after
// an update, the largest first.
#pragma once

#include "studies/observers.h"

namespace keel::study {

// A table that a network looks symbols up in, and which of its rows no sentence uses.
struct EmbeddingTable {
  std::string name;
  std::int64_t padding_id = -1;
};
// The table that is asked for; empty: the first. Throws Error{kUsage}, which begins with `who`.
EmbeddingTable chosen_table(const train::Job& job, const std::string& asked,
                            const std::string& who);
// Padding is left out, and so are the fillers of a dictionary, which no text has.
std::vector<bool> kept_rows_of(const train::Job& job, const EmbeddingTable& table,
                               std::int64_t rows);

// Throws Error{kUsage} for a network without embeddings, and for a site that is none of its tables.
std::unique_ptr<train::Observer> singular_values_observer(const train::Job& job,
                                                          const ObserverOptions& options);

}  // namespace keel::study
