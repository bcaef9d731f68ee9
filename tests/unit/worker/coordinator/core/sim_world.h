// Simulates a whole job under a seeded random scheduler: the coordinator core with its journal, members, an operator
// that replaces pods, kills, restarts, hand-overs, broken sessions, new plans, drains and suspensions. Messages of one
// member keep their order; everything else happens in random order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "common/model/synchronisation.h"
#include "tests/unit/worker/coordinator/core/sim_member.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker::sim {

struct WorldOptions {
  uint64_t seed = 1;
  int disturbances = 8;
  bool checkpoints = true;
  int64_t rows = 61;
  int epochs = 2;
  int batch = 4;
  int max_events = 400000;
  int evaluate_every = 0;        // steps; 0: only at the end
  bool only_hand_overs = false;  // no other disturbance
  int lag = 1;                   // of the members' schedule
  bool without_undo = false;
  plan::v1::SyncMode mode = plan::v1::SYNC_MODE_FULL;
  bool keep_best = false;         // by ScoreOf; the best model is exported
  bool validation = false;        // with keep_best: the test data are evaluated once, at the end
  bool slow_members = false;      // trainers become slow and fast again; plans detect it
  bool rows_in_trainers = false;  // in half of the plans, in shards that die with their trainers
  bool whole_tables = false;      // in half of the plans, at the only trainer of the first stage; needs checkpoints
  int max_fruitless = 1000;
  size_t kept_pushes = 0;  // steps whose pushes a trainer keeps at most
  // Changes what a member says, before it is sent; null: nothing.
  std::function<void(const job::v1::MemberSlot&, job::v1::SessionRequest&)> speak = nullptr;
  // The way of every message between processes, and of the journal; null: they arrive as they are.
  std::function<void(google::protobuf::Message&)> transmit = nullptr;
};

// Makes a plan with one stage on servers and one dense stage.
job::v1::ApplyPlanRequest MakePlan(int64_t generation, int stage0, int stage1, int servers, const std::string& pool);

// The same with the shards in the trainers of the first stage.
job::v1::ApplyPlanRequest MakePlanWithRows(int64_t generation, int stage0, int stage1, const std::string& pool);

// The same with the tables at the only trainer of the first stage.
job::v1::ApplyPlanRequest MakePlanWithTables(int64_t generation, int stage1, const std::string& pool);

// One stage of replicas that average their parameters, in a third of the steps with PERCENTAGE.
job::v1::ApplyPlanRequest MakeReplicas(int64_t generation, int units, const std::string& pool, plan::v1::SyncMode mode);

class World {
 public:
  explicit World(const WorldOptions& options);
  // Runs until the job is complete. Returns "", or what went wrong.
  std::string Run();
  const job::v1::Observation& last() const { return last_; }
  int64_t newest_generation() const { return newest_generation_; }
  int kills() const { return kills_; }
  int hand_overs() const { return hand_overs_; }  // that were completed
  int64_t lines() const { return lines_; }
  int rebuilt() const { return shared_.rebuilt; }  // servers whose rows were rebuilt
  const std::set<int64_t>& tested() const { return shared_.tested; }
  std::optional<int64_t> exported() const { return exported_; }  // step of the finished model
  int64_t most_kept() const { return most_kept_; }               // checkpoints at once

 private:
  void Event();
  void Disturb();
  void StartCoordinator();
  void KillCoordinator();
  void AskForHandOver();
  void HandOver();
  void ReplacePods();
  void Kill(Member& member);
  void KillAlone(Member& member);
  void Deliver(Member& member);
  void Execute();
  void Execute(const Command& command);
  template <typename Message>
  Message Transmit(Message message) const {
    if (options_.transmit) options_.transmit(message);
    return message;
  }
  void CompleteCheckpoint(const WriteManifestCommand& command);
  void Prune(const std::string& best);
  void Export();
  Instant Now() const;
  std::vector<std::shared_ptr<Member>> Living() const;
  std::shared_ptr<Member> LivingPod(const std::string& name) const;
  void NewPlan();
  void DetectSlowMembers();
  void ChangeSpeed();
  void Violation(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }

  const WorldOptions options_;
  base::Rng rng_;
  Shared shared_;
  std::unique_ptr<CoordinatorCore> core_;
  std::optional<job::v1::CoordinatorState> journal_;
  job::v1::ApplyPlanRequest plan_;
  int64_t plan_generation_ = 0;
  base::nanoseconds time_{0};
  int64_t instances_ = 0;
  int64_t newest_generation_ = 0;  // highest generation of any Prepare
  int disturbances_left_;
  int kills_ = 0;
  int64_t term_ = 1;  // of the newest coordinator that asked for the job
  int hand_overs_ = 0;
  bool finding_ = false;
  std::vector<WriteManifestCommand> manifests_;
  std::optional<ExportCommand> export_;
  std::optional<int64_t> exported_;
  int64_t most_kept_ = 0;
  int64_t lines_ = 0;  // number of lines of steps.jsonl that were not rolled back
  std::optional<int> finished_;
  bool complete_ = false;
  job::v1::Observation last_;
  std::string violation_;
};

}  // namespace medley::worker::sim
