#include "cli/cluster/embedding_view.h"

#include <fmt/core.h>

#include "cli/format.h"

namespace medley::cli {

std::string EmbeddingSentence(const ops::EmbeddingStatus& rows) {
  return fmt::format("{:.1f} % of the rows that steps used were in memory; {} rows are in memory, {} only on the disk",
                     100 * rows.hit_rate, Thousands(static_cast<double>(rows.rows_in_memory)),
                     Thousands(static_cast<double>(rows.rows_on_disk)));
}

std::string TablesText(const std::string& place) {
  if (place == "Device") return "(in the GPU's memory)";
  return place == "Cache" ? "(cached in the GPU's memory)" : "(in the memory of hosts)";
}

std::string TablesSentence(const ops::TablesStatus& tables) {
  const std::string hits = fmt::format("{:.1f} % of the rows that steps used were there", 100 * tables.hit_rate);
  const std::string what = tables.place == "Device"  ? "whole tables are in the GPU's memory"
                           : tables.place == "Cache" ? "rows that are used often are in the GPU's memory; " + hits
                                                     : "each step copies its rows to the GPU";
  return tables.message.empty() ? what : what + ". " + tables.message;
}

}  // namespace medley::cli
