// One pod on this node, from its binding to its end, as a kubelet's pod worker handles it.
//
// Level-triggered: Sync compares the pod of the API with the processes, does what is due, and writes the status. Not
// thread-safe: the node calls Sync of one pod from one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "localcluster/node/container.h"
#include "localcluster/node/emulation.h"
#include "localcluster/node/node_context.h"

namespace medley::localcluster {

class PodWorker {
 public:
  // `pod` is bound to one of our nodes. Takes over its containers' states from its status; containers that ran have
  // ended, because a node kills leftover processes before it takes pods.
  PodWorker(NodeContext& node, const kube::Object& pod);

  struct Outcome {
    std::optional<base::SteadyTime> requeue_at;  // when to call Sync again, even without a change
    bool finished = false;                       // nothing is left of the pod: delete this worker
  };
  // `pod` is null if the API no longer has it. Errors: those of the API; call Sync again, with a backoff.
  absl::StatusOr<Outcome> Sync(const kube::ObjectPtr& pod);

  // The node stops: ends the processes as on a deletion, but leaves the pod in the API.
  void Shutdown(int signal);
  bool running() const;
  void NoteEnds();
  // Notes which processes have ended, and writes the resulting status.
  absl::Status Report(const kube::ObjectPtr& pod);

  const std::string& uid() const { return uid_; }

 private:
  absl::StatusOr<Outcome> HandleDeletedPod();
  std::optional<base::SteadyTime> CheckDeadline(const kube::Object& pod);
  void BeginTermination(const std::string& reason, const std::string& message);
  absl::StatusOr<Outcome> ContinueTermination(const kube::ObjectPtr& pod);
  absl::Status DeletePod(const kube::Object& pod);
  absl::StatusOr<Outcome> Run(const kube::ObjectPtr& pod);
  absl::Status Prepare(const kube::Object& pod, const DataSource& source);
  absl::Status Emulate(const kube::Object& pod);
  absl::StatusOr<std::string> TakeAddress();
  void Release();
  std::optional<base::SteadyTime> AdvanceAll(const kube::Object& pod, const DataSource& source);
  DataSource Source() const;
  PodView View() const;
  absl::Status WriteStatus(kube::ObjectPtr pod);
  void SignalAll(int number);
  base::nanoseconds Grace(const kube::Object& pod) const;

  NodeContext& node_;
  const kube::Key key_;
  const std::string uid_;
  const std::filesystem::path folder_;
  const RestartPolicy policy_;
  std::vector<Container> containers_;
  std::vector<Container> init_containers_;
  PodFacts facts_;
  std::optional<base::WallTime> start_time_;
  base::SteadyTime steady_start_;
  std::map<std::string, std::string> volumes_;
  Emulation emulation_;                   // in force
  std::string not_emulated_;              // the error that was logged last
  std::optional<int> network_namespace_;  // of the emulated network
  bool prepared_ = false;
  base::SteadyTime prepare_at_;
  // For the end of the whole pod, after which nothing is restarted.
  bool ending_ = false;
  bool ended_ = false;
  std::string reason_;
  std::string message_;
  base::SteadyTime term_at_;
  bool killed_ = false;
};

}  // namespace medley::localcluster
