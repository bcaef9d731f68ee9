#include "cli/cluster/connection.h"

#include <CLI/CLI.hpp>

#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/resources.h"

namespace medley::cli {
namespace {

constexpr int kPage = 500;

absl::Status NotInstalled(const Cluster& cluster) {
  return base::NotFound(
      "Medley is not installed in the cluster at {}: it has no CustomResourceDefinition trainingjobs.medley.dev; "
      "install the chart charts/medley, or choose another cluster with --context",
      cluster.client->config().server);
}

absl::Status NoSuchJob(const Cluster& cluster, const std::string& name) {
  const auto jobs = cluster.client->List(ops::TrainingJobs(), {.ns = cluster.ns, .limit = kPage});
  if (kube::IsNotFound(jobs.status())) return NotInstalled(cluster);
  std::string names;
  for (const kube::Object& job : jobs.ok() ? jobs->items : std::vector<kube::Object>()) {
    names += (names.empty() ? "" : ", ") + job.key().name;
  }
  return base::NotFound("TrainingJob '{}' does not exist in namespace '{}'; {}", name, cluster.ns,
                        names.empty() ? "the namespace has no TrainingJobs, choose another one with -n"
                                      : "TrainingJobs in this namespace: " + names);
}

}  // namespace

void AddClusterFlags(CLI::App& command, ClusterFlags& flags) {
  constexpr char kGroup[] = "Cluster";
  command
      .add_option("--kubeconfig", flags.kubeconfig.kubeconfig,
                  "kubeconfig to use instead of $KUBECONFIG and ~/.kube/config")
      ->group(kGroup);
  command
      .add_option("--context", flags.kubeconfig.context, "context of the kubeconfig to use instead of the current one")
      ->group(kGroup);
  command.add_option("-n,--namespace", flags.kubeconfig.ns, "namespace to use instead of the context's")->group(kGroup);
}

absl::StatusOr<Cluster> Connect(const ClusterFlags& flags, base::Clock& clock) {
  base::log::Configure("medley", base::log::Level::kWarn);
  MEDLEY_ASSIGN_OR_RETURN(kube::ClientConfig config, kube::FindCluster(flags.kubeconfig, kube::ProcessEnvironment()));
  config.user_agent = "medley-cli";
  config.max_retries = 2;
  Cluster cluster;
  cluster.ns = config.ns;
  cluster.client = std::make_unique<kube::HttpClient>(std::move(config), clock, base::SystemSeed());
  return cluster;
}

absl::Status ExplainApiError(const absl::Status& error, const Cluster& cluster) {
  const std::string& server = cluster.client->config().server;
  const std::string why = base::Message(error);
  switch (error.code()) {
    case absl::StatusCode::kUnauthenticated:
      return base::Unauthenticated("the API server at {} does not accept the kubeconfig's credentials: {}", server,
                                   why);
    case absl::StatusCode::kPermissionDenied:
      return base::PermissionDenied(
          "the API server forbids this request: {}; it is allowed with the ClusterRoles view (in the namespace) and "
          "medley-pool-viewer (for pools)",
          why);
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      if (kube::HttpCode(error) != 0) return error;
      return base::Unavailable(
          "no answer from the API server at {}: {}; check that it is running and that --context is right", server, why);
    default:
      return error;
  }
}

std::string JobName(const std::string& argument) {
  for (const char* prefix :
       {"mtj/", "trainingjob/", "trainingjobs/", "trainingjob.medley.dev/", "trainingjobs.medley.dev/"}) {
    if (argument.starts_with(prefix)) return argument.substr(std::string_view(prefix).size());
  }
  return argument;
}

absl::StatusOr<kube::Object> GetJob(const Cluster& cluster, const std::string& argument) {
  const std::string name = JobName(argument);
  auto job = cluster.client->Get(ops::TrainingJobs(), {cluster.ns, name});
  if (kube::IsNotFound(job.status())) return NoSuchJob(cluster, name);
  if (!job.ok()) return ExplainApiError(job.status(), cluster);
  return job;
}

absl::StatusOr<std::vector<kube::Object>> ListAll(const Cluster& cluster, const kube::Resource& resource,
                                                  const kube::ListOptions& options) {
  kube::ListOptions page = options;
  page.limit = kPage;
  std::vector<kube::Object> all;
  do {
    auto list = cluster.client->List(resource, page);
    if (kube::IsNotFound(list.status()) && resource.group == ops::kGroup) return NotInstalled(cluster);
    if (!list.ok()) return ExplainApiError(list.status(), cluster);
    for (kube::Object& item : list->items) all.push_back(std::move(item));
    page.continue_token = list->continue_token;
  } while (!page.continue_token.empty());
  return all;
}

}  // namespace medley::cli
