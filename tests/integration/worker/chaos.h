// Kills and stops the processes of a job at random moments, changes its plan, lets other coordinators take over and
// damages its checkpoints. Everything follows from the seed, except what depends on time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "tests/integration/worker/job_harness.h"

namespace medley::worker {

struct ChaosLength {
  int rows = 1600;
  int epochs = 30;
  int batch_size = 16;
  int actions = 20;

  size_t steps() const { return static_cast<size_t>(rows / batch_size * epochs); }
};

struct ChaosCounts {
  int kills = 0, stops = 0, coordinators = 0, plans = 0, hand_overs = 0;
  int damages = 0;  // of the newest checkpoint
  int losses = 0;   // of all checkpoints that were complete
};

class Chaos {
 public:
  // `damage`: one of three actions damages the newest checkpoint, or all of them.
  Chaos(uint64_t seed, ChaosLength length, bool damage, std::vector<JobShape> shapes, JobHarness& job)
      : random_(seed), length_(length), damage_(damage), shapes_(std::move(shapes)), job_(job) {}

  void Begin();
  // Something happens, and then nothing for a random time: often less than a recovery or a switch takes.
  void Act();
  const ChaosCounts& counts() const { return counts_; }
  int actions() const { return actions_; }
  bool over() const { return over_; }                  // the job has failed: nothing more may happen
  bool may_fail() const { return may_fail_; }          // at some time no checkpoint was whole
  const std::string& story() const { return story_; }  // which checkpoints were damaged and how

 private:
  // Each action has its share of the steps: a fast machine waits for less long, or the job would end before the chaos.
  void Wait(uint64_t milliseconds, bool poll);
  std::string AnyMember();
  void KillMember();
  void KillCoordinator();
  void HandOver();
  void Stop(const std::string& name);
  void Apply(const char* reason);
  void Damage();
  void LoseEveryProcess();
  std::vector<std::filesystem::path> Complete() const;  // newest first
  void DamageOne(const std::filesystem::path& folder);

  base::SystemClock clock_;
  base::Rng random_;
  const ChaosLength length_;
  const bool damage_;
  const std::vector<JobShape> shapes_;
  JobHarness& job_;
  ChaosCounts counts_;
  int actions_ = 0;
  int term_ = 1;
  bool over_ = false;
  bool may_fail_ = false;
  std::string story_;
  std::set<std::filesystem::path> damaged_;
};

// First and last seed. MEDLEY_CHAOS_SEEDS is "50" (1 to 50), "7-9" or absent (1 to `otherwise`);
// MEDLEY_CHAOS_FIRST_SEED replaces the first.
std::pair<uint64_t, uint64_t> ChaosSeeds(uint64_t otherwise);

}  // namespace medley::worker
