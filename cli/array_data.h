// The data of `medley predict` and `medley evaluate`, which are a table, or for some models from PyTorch arrays.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/model_data.h"
#include "common/base/status.h"
#include "worker/data/source.h"
#include "worker/predict/arrays.h"
#include "worker/predict/predict.h"

namespace medley::cli {

// The files of a table: those of a pattern, or "-".
inline absl::StatusOr<std::vector<std::string>> FilesOf(const std::vector<std::string>& data) {
  if (data.size() != 1) {
    return base::InvalidArgument("DATA: there are {} files; give one, or a pattern in quotes", data.size());
  }
  if (data.front() == "-") return data;
  return worker::FindFiles(data.front());
}

inline absl::StatusOr<worker::Quality> EvaluateData(const worker::LoadedModel& model,
                                                    const std::vector<std::string>& data, const std::string& labels,
                                                    worker::RowOptions options) {
  DataProgress progress(data.front());
  options.progress = &progress.progress();
  if (!model.model.array_format.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const model::SourceSpec source, worker::ArraySourceOf(model.model, data, labels));
    return worker::EvaluateArrays(model, source, options);
  }
  if (!labels.empty()) return base::InvalidArgument("--labels: the labels of a table are one of its columns");
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FilesOf(data));
  ExpectFiles(paths, *options.progress);
  std::vector<DataFile> files;
  files.reserve(paths.size());  // the readers refer to them
  std::vector<worker::RowSource> sources;
  for (const std::string& path : paths) {
    MEDLEY_ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path, model.model));
    files.push_back(std::move(file));
    sources.push_back({files.back().name(), files.back().Reader(options.progress)});
  }
  return worker::EvaluateQuality(model, sources, options);
}

}  // namespace medley::cli
