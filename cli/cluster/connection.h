// Connects a command to a cluster, and turns errors of the API into sentences for users.
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
  std::shared_ptr<kube::HttpClient> client;
  std::string ns;
};

// Chooses the cluster by kubectl's rules (kube::FindCluster). Sends no request yet. Errors are sentences for users.
absl::StatusOr<Cluster> Connect(const ClusterFlags& flags, base::Clock& clock);

// Turns three kinds of API errors into sentences that say what to do: no answer, refused credentials, forbidden.
// Returns other errors unchanged.
absl::Status ExplainApiError(const absl::Status& error, const Cluster& cluster);

// Reads the TrainingJob `name` ("adult" or "mtj/adult"). Errors: as above; NotFound with the names of the existing
// jobs, or saying that Medley is not installed.
absl::StatusOr<kube::Object> GetJob(const Cluster& cluster, const std::string& name);

// Lists all objects of a resource. Errors: as above; NotFound for a medley.dev resource when Medley is not installed.
absl::StatusOr<std::vector<kube::Object>> ListAll(const Cluster& cluster, const kube::Resource& resource,
                                                  const kube::ListOptions& options);

// "mtj/adult" and "trainingjobs.medley.dev/adult" -> "adult".
std::string JobName(const std::string& argument);

}  // namespace medley::cli
