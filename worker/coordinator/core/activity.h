// For how long the units of the job were in force, and what they did meanwhile: the coordinator's side of the bill
// (common/goodput). Not thread-safe; owned by the core, which passes in the time.
//
// A unit that is not in force is not counted: for the operator, which knows what is paid, it starts, waits or is idle.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "common/base/clock.h"
#include "common/goodput/category.h"
#include "medley/job/v1/coordinator.pb.h"
#include "worker/coordinator/core/generation.h"

namespace medley::worker {

struct CoreState;

// What the job does, and how many units do it.
struct Activity {
  goodput::Category category = goodput::Category::kTraining;
  std::map<std::string, int> units;     // by pool
  std::map<std::string, int> standbys;  // connected and not needed
  bool operator==(const Activity&) const = default;
};

// The last line of steps.jsonl; step 0: there is none, or it does not say when the step was committed.
struct CommittedStep {
  int64_t step = 0;
  base::WallTime at{};
};

// nullopt: no generation was in force yet, the job has been resumed and trains nothing yet, or it is over.
std::optional<Activity> ActivityNow(const CoreState& view);

class ActivityMeter {
 public:
  // The account of the journal goes on. What a member of the generation in force did since then is not known until it
  // returns (Returned). `line`: of steps.jsonl, which is newer than the journal.
  void Restore(const job::v1::UnitAccount& account, bool suspended, const CommittedStep& line, base::WallTime now);
  // The time since the last call was spent with `activity`. Returns a line for the log when it differs from the one
  // before.
  std::optional<std::string> Hold(Instant now, const std::optional<Activity>& activity, int64_t step);
  // A generation is in force from `step`. `samples` are committed.
  void Begin(base::WallTime now, int64_t step, int64_t samples);
  // A member that was in force, or waited to be, when the journal was written has come back: meanwhile it stood still.
  // Counts once for each. Not `knew`: whether it was connected then is not known, so it counts since this coordinator
  // leads.
  void Returned(const std::string& member, const std::string& pool, goodput::Category category, base::WallTime now,
                bool knew = true);
  // A trainer spent some of its training seconds otherwise.
  void Waited(const std::string& pool, const job::v1::Progress& progress);
  // `saves`: the steps to which the job may have to return. What is lost then is known exactly.
  // Whether members that connect now were most likely connected before this coordinator led: it has just been restored.
  bool JustRestored(base::WallTime now) const;
  void Committed(base::SteadyTime now, int64_t step, std::span<const int64_t> saves = {});
  // The state is that of `step`: training since then is lost. A later step than was known: it was trained while this
  // coordinator did not run.
  void SetBack(int64_t step);

  bool resumes() const { return resumes_; }  // it was suspended, and no generation was in force since
  const goodput::Account& account() const { return account_; }
  // `durable`: for the journal.
  void Fill(base::WallTime now, bool durable, job::v1::UnitAccount& out) const;

 private:
  using Seconds = std::map<std::string, double>;
  struct Away {
    double seconds = 0;  // that Returned has counted
    int members = 0;
  };
  struct Mark {  // training up to a step
    int64_t step = 0;
    Seconds seconds;
  };

  Seconds Trained() const;
  Seconds TrainedAt(int64_t step) const;
  void Move(const std::string& pool, goodput::Category from, goodput::Category to, double seconds);
  void Thin(std::span<const int64_t> saves);
  void TrainedMeanwhile(int64_t step);

  goodput::Account account_;
  std::deque<Mark> marks_;  // by step, at most kMarks; the first is where the account began
  Mark last_;               // of the last commit
  base::SteadyTime marked_at_{};
  base::nanoseconds mark_interval_ = base::seconds(1);
  bool started_ = false;
  base::SteadyTime held_until_{};
  base::WallTime held_until_wall_{};
  std::optional<Activity> before_;
  bool resumes_ = false;
  std::optional<base::WallTime> journal_at_;  // restored, and no generation was in force since
  base::WallTime restored_at_{};
  CommittedStep line_;                // restored
  std::map<std::string, Away> away_;  // members that came back, by pool
  std::set<std::string> returned_;    // their names
};

}  // namespace medley::worker
