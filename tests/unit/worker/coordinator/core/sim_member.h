// A simulated member: the rules of docs/runtime.md ("Rules for a member") with the state replaced by the samples it
// was trained on. Can undo exactly one step. Everything it does is a method that the world calls at random moments.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker::sim {

// How often each sample of each data epoch was trained.
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
  std::optional<State> undo;
};

struct SavedPart {
  int64_t generation = 0;
  State state;
};

struct Checkpoint {
  std::string folder;
  int64_t step = 0;
  State state;
};

class Member;

// What members share: each other, and the disk.
struct Shared {
  int64_t rows = 0;
  int epochs = 0;
  std::map<std::string, std::shared_ptr<Member>> by_instance;  // dead ones too
  std::map<std::string, SavedPart> parts;                      // by folder/file
  std::map<std::string, Checkpoint> checkpoints;               // complete ones, by folder
  int64_t applied = 0;                                         // updates, in all
};

class Member {
 public:
  Member(Shared& shared, job::v1::MemberSlot slot, std::string instance);

  bool alive = true;
  bool connected = false;  // to the coordinator that lives now
  std::deque<job::v1::SessionResponse> inbox;
  std::deque<job::v1::SessionRequest> outbox;
  const job::v1::MemberSlot slot;
  const std::string instance;

  void Connect();              // says Hello with what it holds
  void Disconnect();           // messages on the way are lost
  void Die(bool contributed);  // `contributed`: its part of the next step had left it
  bool Receive();              // handles one message; false: none
  bool Work();                 // one spontaneous action; false: nothing to do
  const std::optional<Held>& held() const { return held_; }
  std::string trouble;  // a rule that the coordinator broke

 private:
  void Halt(int64_t generation);
  bool FinishSwitch();
  bool Rebuild(State& out);
  bool CopyFromSources(State& out);
  bool Apply();
  bool MayApply(int64_t step) const;
  bool WriteCheckpoint();
  void Say(job::v1::SessionRequest message) {
    if (connected) outbox.push_back(std::move(message));
  }

  Shared& shared_;
  std::optional<Held> held_;
  std::optional<Held> old_;  // until the first lease of held_->generation
  std::optional<job::v1::Prepare> prepare_;
  bool warmed_ = false;
  bool other_session_ = false;  // what is being prepared was ordered in an earlier session
  std::optional<job::v1::Switch> switch_;
  std::vector<job::v1::Peer> peers_;  // of held_->generation
  std::vector<job::v1::Peer> old_peers_;
  std::deque<job::v1::StepLease> leases_;
  std::deque<job::v1::Checkpoint> checkpoints_;
  std::optional<job::v1::Evaluate> evaluate_;
  bool contributed_ = false;
};

}  // namespace medley::worker::sim
