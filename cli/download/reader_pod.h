// The pod through which `medley download` reads the checkpoint volume of a job. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "kube/object.h"

namespace medley::cli {

inline constexpr int kReaderPort = 7080;

struct ReaderPodInput {
  kube::Object job;
  std::optional<kube::Object> coordinator;  // pod of the job's coordinator; nullopt: it was deleted
  std::string image;                        // of medley-worker; empty: the coordinator's
  std::string name;                         // of the new pod
  std::string secret;                       // first part of the paths that it serves
};

// It belongs to the job, so that it goes with it; runs at most an hour; cannot write; has no service account; and takes
// image, security settings, pull secrets and tolerations from the coordinator's pod. The operator does not count it as
// a pod of the job. Errors: FailedPrecondition (the job has no checkpoint volume; no image is known), InvalidArgument
// (the job's spec cannot be read).
absl::StatusOr<kube::Object> MakeReaderPod(const ReaderPodInput& input);

}  // namespace medley::cli
