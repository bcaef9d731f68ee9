// One pod on this node, from its binding to its last byte: what a kubelet's pod worker does.
//
// Level-triggered: Sync looks at the API's pod and at the processes, does what is due, and writes the
// status. Not thread-safe: the node calls Sync of one pod from one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "localcluster/node/container.h"
#include "localcluster/node/node_context.h"

namespace medley::kube {

class PodWorker {
 public:
  // `pod` is bound to a node of ours. What its status says of containers is taken over; those that ran
  // are no more (a node ends its leftovers before it takes pods).
  PodWorker(NodeContext& node, const Object& pod);

  struct Outcome {
    std::optional<base::SteadyTime> again;  // when to look again; changes wake anyway
    bool gone = false;                      // nothing is left of the pod: drop the worker
  };
  // `pod` null: the API has it no more. Errors: the API's; Sync is to be called again, with a backoff.
  absl::StatusOr<Outcome> Sync(const ObjectPtr& pod);

  // The node stops: ends the processes as for a deletion, but leaves the pod in the API.
  void Shutdown(int signal);
  bool running() const;
  void NoteEnds();
  // Notes ends, and writes the status they lead to.
  absl::Status Report(const ObjectPtr& pod);

  const std::string& uid() const { return uid_; }

 private:
  absl::StatusOr<Outcome> Vanish();
  std::optional<base::SteadyTime> CheckDeadline(const Object& pod);
  void BeginEnd(const std::string& reason, const std::string& message);
  absl::StatusOr<Outcome> ContinueEnd(const ObjectPtr& pod);
  absl::Status DeletePod(const Object& pod);
  absl::StatusOr<Outcome> Run(const ObjectPtr& pod);
  absl::Status Prepare(const Object& pod, const DataSource& source);
  std::optional<base::SteadyTime> AdvanceAll(const Object& pod, const DataSource& source);
  DataSource Source() const;
  PodView View() const;
  absl::Status WriteStatus(ObjectPtr pod);
  void SignalAll(int number);
  base::nanoseconds Grace(const Object& pod) const;

  NodeContext& node_;
  const Key key_;
  const std::string uid_;
  const std::filesystem::path folder_;
  const RestartPolicy policy_;
  std::vector<Container> containers_;
  std::vector<Container> init_containers_;
  PodFacts facts_;
  std::optional<base::WallTime> start_time_;
  base::SteadyTime steady_start_;
  std::map<std::string, std::string> volumes_;
  bool prepared_ = false;
  base::SteadyTime prepare_at_;
  // The end: of the whole pod, for good.
  bool ending_ = false;
  bool ended_ = false;
  std::string reason_;
  std::string message_;
  base::SteadyTime term_at_;
  bool killed_ = false;
};

}  // namespace medley::kube
