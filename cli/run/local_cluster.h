// A cluster on one machine: the embedded API server and the process node in this process, the operator and the
// scheduler as child processes.
//
//   run folder/
//     kubeconfig  scheduler.token   random, for this run; only the owner may read them
//     prices.yaml  scheduler.ports  crds/
//     node/          folders and logs of the pods
//     operator.log  scheduler.log
//
// Start returns when all four are ready. Stop is idempotent and ends everything that Start started. Not thread-safe:
// one owner.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/price_service.h"
#include "cli/run/child_process.h"
#include "common/base/clock.h"
#include "kube/client/http_client.h"
#include "kube/object.h"
#include "localcluster/apiserver/api_server.h"
#include "localcluster/node/process_node.h"

namespace medley::cli {

struct LocalClusterOptions {
  std::filesystem::path programs;    // folder of medley-operator, medley-scheduler, medley-worker
  std::filesystem::path run_folder;  // of MakeRunFolder
  int port = 0;                      // port of the API server; 0: any free one
  std::vector<localcluster::VirtualNode> nodes;
  std::vector<std::string> gpus = {};       // of the machine, for the workers; empty: they compute on CPUs
  std::vector<kube::Object> restored = {};  // objects that exist before the operator starts (ApiServer::Restore)
  std::filesystem::path prices;             // price file, copied into the run folder; empty: no price feed
  // Each pod has a node of it, with the links of its annotations (localcluster/node/emulation.h). Borrowed; null: none.
  localcluster::EmulatedNetwork* network = nullptr;
};

class LocalCluster {
 public:
  LocalCluster(base::Clock& clock, LocalClusterOptions options);
  ~LocalCluster();

  // Errors: NotFound (a program is missing), Unavailable (the port is in use, or the last log line of a program that
  // ended).
  absl::Status Start();
  void Stop();

  kube::Client& client() { return *client_; }
  const std::filesystem::path& run_folder() const { return options_.run_folder; }
  std::filesystem::path kubeconfig() const { return options_.run_folder / "kubeconfig"; }
  PriceService price_service() const { return {.address = scheduler_grpc_, .token = scheduler_token_, .ca = ""}; }
  std::filesystem::path claims() const { return options_.run_folder / "node" / "claims"; }  // of the process node
  // What listens where, in words and as an address: every one that Start has opened, except those of pods.
  std::vector<std::pair<std::string, std::string>> Addresses() const;
  std::filesystem::path scheduler_token_file() const { return options_.run_folder / kSchedulerTokenFile; }
  std::filesystem::path operator_token_file() const { return options_.run_folder / "operator.token"; }
  const localcluster::ApiServer& server() const { return *server_; }
  // Creates an object of an earlier run, with its UID and status.
  absl::Status Restore(const kube::Object& object) { return server_->Restore(object); }
  // Replaces the price file; the scheduler reads it again.
  absl::Status SetPrices(const std::filesystem::path& file);
  // Sends SIGKILL to the processes of a pod. NotFound when it has none.
  absl::Status KillPod(const kube::Key& pod);
  // Returns a sentence such as "medley-operator ended (exit code 1): last line of its log"; nullopt while both run.
  std::optional<std::string> EndedProgram();
  // Peak resident memory in bytes.
  int64_t operator_peak() const { return operator_ ? operator_->PeakMemory() : 0; }
  int64_t scheduler_peak() const { return scheduler_ ? scheduler_->PeakMemory() : 0; }

 private:
  absl::Status StartServer();
  absl::Status StartNode();
  absl::Status StartScheduler();
  absl::Status StartOperator();
  std::string OperatorAddress() const;  // "": the operator has not printed its port yet
  absl::StatusOr<std::string> WaitForFile(const std::filesystem::path& file, ChildProcess& child);

  base::Clock& clock_;
  const LocalClusterOptions options_;
  std::unique_ptr<localcluster::ApiServer> server_;
  std::unique_ptr<kube::HttpClient> client_;
  std::unique_ptr<localcluster::ProcessNode> node_;
  std::unique_ptr<ChildProcess> scheduler_;
  std::unique_ptr<ChildProcess> operator_;
  std::string scheduler_grpc_;
  std::string scheduler_rest_;
  std::string scheduler_token_;
};

}  // namespace medley::cli
