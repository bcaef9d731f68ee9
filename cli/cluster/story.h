// The objects of one job that `medley explain JOB` reports on. Plain values.
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
  std::vector<kube::Object> pods;         // the job's pods
  std::vector<kube::Object> events;       // events of the job and its pods, oldest first
  std::optional<ops::PlanRecord> record;  // from ConfigMap JOB-plan
  std::vector<std::string> unread;        // sentences about objects that could not be read
};

// Reads the objects. Errors: those of GetJob; other objects that cannot be read are named in `unread`.
absl::StatusOr<Story> ReadStory(const Cluster& cluster, const std::string& job);

}  // namespace medley::cli
