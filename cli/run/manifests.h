// The manifests that `medley run FILE` applies.
//
// The same file works with `kubectl apply -f`, except that a hostPath which begins with "./" is taken relative to the
// file's folder, so that an example can bring its data along.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <vector>

#include "kube/object.h"

namespace medley::cli {

struct Manifests {
  std::vector<kube::Object> pools;  // ResourcePools, in order
  kube::Object job;                 // the one TrainingJob
  std::vector<kube::Object> others;
  std::filesystem::path scenario;  // absolute; empty: none
};

// Errors: NotFound (no such file), InvalidArgument (broken YAML, no TrainingJob, more than one, no pool).
absl::StatusOr<Manifests> LoadManifests(const std::filesystem::path& file);

}  // namespace medley::cli
