// The data of `medley predict` and `medley evaluate`, which are a table, or for some models from PyTorch arrays.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/model_data.h"
#include "common/base/status.h"
#include "worker/predict/arrays.h"
#include "worker/predict/predict.h"

namespace medley::cli {

// The only one of the files of a table.
inline absl::StatusOr<std::string> OnlyFile(const std::vector<std::string>& data) {
  if (data.size() == 1) return data.front();
  return base::InvalidArgument("DATA: there are {} files; give one, or a pattern in quotes", data.size());
}

inline absl::StatusOr<worker::Quality> EvaluateData(const worker::LoadedModel& model,
                                                    const std::vector<std::string>& data, const std::string& labels,
                                                    std::optional<int64_t> max_bad_rows) {
  if (!model.model.array_format.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const model::SourceSpec source, worker::ArraySourceOf(model.model, data, labels));
    return worker::EvaluateArrays(model, source);
  }
  if (!labels.empty()) return base::InvalidArgument("--labels: the labels of a table are one of its columns");
  MEDLEY_ASSIGN_OR_RETURN(const std::string path, OnlyFile(data));
  MEDLEY_ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
  return worker::EvaluateQuality(model, file.name(), file.Reader(), max_bad_rows);
}

}  // namespace medley::cli
