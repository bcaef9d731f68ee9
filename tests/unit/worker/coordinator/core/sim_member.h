// A simulated member. It follows docs/design/runtime.md ("Rules for a member"); its state is just the samples that it
// was trained on. With an asynchronous schedule of `lag` > 1, a trainer of the first stage needs the leases of lag - 1
// further steps, or a Drain, to complete a step. A member may be `lag` steps ahead of others, and can undo as many. The
// world calls its methods at random moments. Replicas that average their parameters wait for one another only in steps
// that agree, and can return only to the last two of these.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker::sim {

// The number of times that each sample of each data epoch was trained.
struct State {
  int64_t step = 0;
  std::vector<int> counts;
  int64_t Samples() const;
  bool operator==(const State&) const = default;
};

// A state that belongs to a generation.
struct Held {
  int64_t generation = 0;
  State state;
  std::deque<State> undo;    // the states before, oldest first; at most `lag`
  std::deque<State> agreed;  // the last states that were equal on all members, oldest first; at most two
};

// What a trainer of the first stage has pushed in a step.
struct Pushed {
  job::v1::StepLease lease;
  int trainer = 0;
  int trainers = 0;
  int shards = 0;
};

struct SavedPart {
  int64_t generation = 0;
  State state;
};

struct Checkpoint {
  std::string folder;
  int64_t generation = 0;
  int64_t step = 0;
  State state;
};

class Member;

// The members' common environment: the other members, and the disk.
struct Shared {
  int64_t rows = 0;
  int epochs = 0;
  int lag = 1;
  bool averages = false;
  bool without_undo = false;
  size_t kept_pushes = 0;                                      // steps that a trainer keeps at most
  int64_t steps = 0;                                           // of the whole training
  std::map<std::string, std::shared_ptr<Member>> by_instance;  // including dead members
  std::map<std::string, SavedPart> parts;                      // by folder/file
  std::map<std::string, Checkpoint> checkpoints;               // complete checkpoints, by folder
  int64_t applied = 0;                                         // total number of updates
  int rebuilt = 0;                                             // servers whose rows were rebuilt
  bool separate_test = false;                                  // the test data choose no model
  std::set<int64_t> tested;                                    // steps whose state was evaluated on the test data
};

// What the model of a step reaches on the data that choose the best one: more is better, and the last is not the best.
inline double ScoreOf(int64_t step) { return 100.0 - static_cast<double>(step > 15 ? step - 15 : 15 - step); }

class Member {
 public:
  Member(Shared& shared, job::v1::MemberSlot slot, std::string instance);

  bool alive = true;
  bool connected = false;  // to the current coordinator process
  std::deque<job::v1::SessionResponse> inbox;
  std::deque<job::v1::SessionRequest> outbox;
  const job::v1::MemberSlot slot;
  const std::string instance;
  double slowness = 1;  // times the usual computation

  void Connect();              // sends Hello with the state that it holds
  void Disconnect();           // drops messages in transit
  void Die(bool contributed);  // `contributed`: it had already sent its part of the next step
  bool Receive();              // handles one message; returns false when there is none
  bool Work();                 // takes one action of its own; returns false when there is none
  const std::optional<Held>& held() const { return held_; }
  const std::map<int64_t, Pushed>& pushes() const { return pushes_; }
  std::string violation;  // the first rule that the coordinator broke

 private:
  void Halt(int64_t generation);
  bool FinishSwitch();
  bool IsRebuilt() const;  // it takes the place of a server that was lost, and the others go on
  bool IsPeer() const;     // of the generation that it prepares
  bool Rebuild(State& out);
  bool CopyFromSources(State& out);
  void RebuildRows(State& out);
  void KeepPush(const job::v1::StepLease& lease);
  bool Apply();
  bool MayApply(int64_t step) const;
  bool MayComplete(int64_t step) const;
  bool WriteCheckpoint();
  void Say(job::v1::SessionRequest message) {
    if (connected) outbox.push_back(std::move(message));
  }

  Shared& shared_;
  std::optional<Held> held_;
  std::optional<Held> old_;  // until the first lease of held_->generation
  std::optional<job::v1::Prepare> prepare_;
  bool warmed_ = false;
  bool other_session_ = false;  // the Prepare came in an earlier session
  std::optional<job::v1::Switch> switch_;
  std::vector<job::v1::Peer> peers_;  // of held_->generation
  std::vector<job::v1::Peer> old_peers_;
  std::deque<job::v1::StepLease> leases_;
  std::deque<job::v1::Checkpoint> checkpoints_;
  std::optional<job::v1::Evaluate> evaluate_;
  int64_t drain_ = 0;  // the step up to which open steps are completed without further leases
  bool contributed_ = false;
  std::map<int64_t, Pushed> pushes_;
};

}  // namespace medley::worker::sim
