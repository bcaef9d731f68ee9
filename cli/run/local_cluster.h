// A cluster of one machine: embedded API server and process node in this process, operator and
// scheduler as programs.
//
//   run folder/  kubeconfig  prices.yaml  crds/  node/ (pods' folders and logs)  operator.log
//   scheduler.log
//
// Start returns when all four answer. Not thread-safe: one owner. Stop is idempotent and ends
// everything that was started.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/child_process.h"
#include "common/base/clock.h"
#include "kube/client/http_client.h"
#include "kube/object.h"
#include "localcluster/apiserver/api_server.h"
#include "localcluster/node/process_node.h"

namespace medley::cli {

struct LocalClusterOptions {
  std::filesystem::path programs;    // folder of medley-operator, medley-scheduler, medley-worker
  std::filesystem::path run_folder;  // exists
  int port = 0;                      // of the API server; 0: any
  std::vector<kube::Object> pools;   // their node selectors become the machine's nodes
  std::filesystem::path prices;      // copied into the run folder; empty: no feed
};

class LocalCluster {
 public:
  LocalCluster(base::Clock& clock, LocalClusterOptions options);
  ~LocalCluster();

  // Errors: NotFound (a program is missing), FailedPrecondition (port in use), and what a program
  // said last before it ended.
  absl::Status Start();
  void Stop();

  kube::Client& client() { return *client_; }
  std::filesystem::path kubeconfig() const { return options_.run_folder / "kubeconfig"; }
  std::string scheduler_rest() const { return scheduler_rest_; }
  const kube::ApiServer& server() const { return *server_; }
  // Replaces the price feed; the scheduler notices.
  absl::Status SetPrices(const std::filesystem::path& file);
  // SIGKILL to the processes of a pod. NotFound when it has none.
  absl::Status KillPod(const kube::Key& pod);
  // "medley-operator ended (exit code 1): last line of its log"; nothing while all run.
  std::optional<std::string> Trouble();
  // Peak resident bytes of the operator and of the scheduler.
  int64_t operator_peak() const { return operator_ ? operator_->PeakMemory() : 0; }
  int64_t scheduler_peak() const { return scheduler_ ? scheduler_->PeakMemory() : 0; }

 private:
  absl::Status StartServer();
  absl::Status StartNode();
  absl::Status StartScheduler();
  absl::Status StartOperator();
  absl::StatusOr<std::string> WaitForFile(const std::filesystem::path& file, ChildProcess& child);

  base::Clock& clock_;
  const LocalClusterOptions options_;
  std::unique_ptr<kube::ApiServer> server_;
  std::unique_ptr<kube::HttpClient> client_;
  std::unique_ptr<kube::ProcessNode> node_;
  std::unique_ptr<ChildProcess> scheduler_;
  std::unique_ptr<ChildProcess> operator_;
  std::string scheduler_grpc_;
  std::string scheduler_rest_;
};

// The machine's nodes: one for each distinct node selector of the pools, large enough for their
// limits.
std::vector<kube::VirtualNode> NodesFor(const std::vector<kube::Object>& pools);

}  // namespace medley::cli
