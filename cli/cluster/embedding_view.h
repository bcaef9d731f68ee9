// Says which rows of embedding tables are in memory. Pure.
#pragma once

#include <string>

#include "operator/api/job_status.h"

namespace medley::cli {

// "81.0 % of the rows that steps used were in memory; 4,096 rows are in memory, 12,288 only on the disk".
std::string EmbeddingSentence(const ops::EmbeddingStatus& rows);
std::string TablesSentence(const ops::TablesStatus& tables);
// "(in the GPU's memory)", of PlanStatus::Stage::tables.
std::string TablesText(const std::string& place);

}  // namespace medley::cli
