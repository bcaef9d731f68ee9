// Reads an export back: its description, and its weights from the safetensors file. Stateless and thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "worker/export/exported_model.h"

namespace medley::worker {

using Weights = std::map<std::string, std::vector<float>>;  // by the tensor's name; row-major

struct LoadedModel {
  ExportedModel model;
  Weights weights;  // every tensor of the model; empty for one from PyTorch, whose are read with its program
  std::filesystem::path folder;
};

// Errors: NotFound (the folder is no export), InvalidArgument naming the file and the field, those of the file system.
absl::StatusOr<LoadedModel> ReadExport(const std::filesystem::path& folder);

// The tensors of a safetensors file. Errors: InvalidArgument for one that is absent or of another type or shape.
absl::StatusOr<Weights> ReadWeights(const std::filesystem::path& path, const std::vector<ExportedTensor>& tensors);

}  // namespace medley::worker
