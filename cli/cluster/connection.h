// The cluster that a command talks to, and what went wrong with it in words.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "kube/client/http_client.h"

namespace CLI {
class App;
}

namespace medley::cli {

struct ClusterFlags {
  kube::KubeconfigFlags kubeconfig;
};

// --kubeconfig, --context, -n/--namespace.
void AddClusterFlags(CLI::App& command, ClusterFlags& flags);

struct Cluster {
  std::unique_ptr<kube::HttpClient> client;
  std::string ns;
};

// By kubectl's rules (kube::FindCluster). Asks nothing of the cluster yet. Errors: a sentence.
absl::StatusOr<Cluster> Connect(const ClusterFlags& flags, base::Clock& clock);

// An error of the API as a sentence that says what to do: no answer, credentials refused,
// forbidden. Others stay.
absl::Status ExplainApiError(const absl::Status& error, const Cluster& cluster);

// TrainingJob `name` ("adult", "mtj/adult"). Errors: as above; NotFound with the jobs that there
// are, or that Medley is not installed.
absl::StatusOr<kube::Object> GetJob(const Cluster& cluster, const std::string& name);

// Objects of medley.dev. Errors: as above; NotFound when Medley is not installed.
absl::StatusOr<std::vector<kube::Object>> ListAll(const Cluster& cluster, const kube::Resource& resource,
                                                  const kube::ListOptions& options);

// "mtj/adult" and "trainingjobs.medley.dev/adult" -> "adult".
std::string JobName(const std::string& argument);

}  // namespace medley::cli
