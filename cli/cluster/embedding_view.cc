#include "cli/cluster/embedding_view.h"

#include <fmt/core.h>

#include "cli/format.h"

namespace medley::cli {

std::string EmbeddingSentence(const ops::EmbeddingStatus& rows) {
  return fmt::format("{:.1f} % of the rows that steps used were in memory; {} rows are in memory, {} only on the disk",
                     100 * rows.hit_rate, Thousands(static_cast<double>(rows.rows_in_memory)),
                     Thousands(static_cast<double>(rows.rows_on_disk)));
}

}  // namespace medley::cli
