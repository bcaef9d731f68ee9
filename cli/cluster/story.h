// What the cluster shows of one job, gathered for `medley explain JOB`. Values; not synchronised.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/connection.h"
#include "kube/object.h"
#include "operator/records/plan_record.h"

namespace medley::cli {

struct Story {
  kube::Object job;
  std::vector<kube::Object> pools;
  std::vector<kube::Object> pods;         // of the job
  std::vector<kube::Object> events;       // of the job and of its pods, oldest first
  std::optional<ops::PlanRecord> record;  // ConfigMap JOB-plan
  std::vector<std::string> unseen;        // what this user may not read, or what could not be read, in words
};

// Reads only. Errors: of the job itself (GetJob); what else cannot be read is told in `unseen`.
absl::StatusOr<Story> ReadStory(const Cluster& cluster, const std::string& job);

}  // namespace medley::cli
