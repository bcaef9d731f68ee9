// The manifests that `medley run FILE` applies.
//
// The same file works with `kubectl apply -f`, with one exception: a hostPath that begins with "./" is relative to the
// file's folder here, so that an example can include its data.
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
  std::filesystem::path scenario;  // absolute path; empty: no scenario
  // Sentences about what this machine does in another way than a cluster: a program has no container here.
  std::vector<std::string> remarks = {};
};

// Errors: NotFound (the file does not exist), InvalidArgument (invalid YAML, unknown fields, not exactly one
// TrainingJob, no pool).
absl::StatusOr<Manifests> LoadManifests(const std::filesystem::path& file);

}  // namespace medley::cli
