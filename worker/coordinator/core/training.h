// Which samples are leased, applied and committed.
//
// Data in: progress of members. Data out: leases, lines of steps.jsonl.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "common/base/clock.h"
#include "worker/coordinator/core/agreements.h"
#include "worker/coordinator/core/effects.h"
#include "worker/coordinator/core/ledger.h"

namespace medley::worker {

struct CoreState;

struct TrainingState {
  std::optional<Ledger> ledger;
  std::map<std::string, int64_t> reported;  // by member of the generation that trains: the last step that it applied
  Agreements agreements;
  std::set<int64_t> agreed;      // leased steps after which replicas agree, not yet committed; empty unless they differ
  base::SteadyTime agreed_at{};  // when the last of them was leased
  int64_t applied = 0;           // the highest step that every member has applied, >= committed
  int64_t max_applied = 0;       // highest step that any member applied, for lost_steps
  int64_t drain = 0;             // the last step at which the members were asked to drain; or 0
  std::map<int64_t, std::pair<double, int64_t>> losses;  // by uncommitted step: (sum of losses, samples)
  base::SteadyTime committed_at{};  // time of the last commit or, before it, of the generation's start
  double data_seconds = 0;          // StepCommand documents both: not yet in steps.jsonl
  double checkpoint_seconds = 0;
};

namespace training {

bool AllLeased(const CoreState& view);     // no step remains to be leased: all are, or training stops early
bool AllCommitted(const CoreState& view);  // likewise
// Replicas agree after the last leased step, so leases may pause.
bool IsSettled(const CoreState& view);
// Whether no step was committed for too long.
Request CheckDeadline(const CoreState& view, base::SteadyTime now);

void Restore(TrainingState& own, const job::v1::LedgerRecord& record);
// Creates the ledger when the first generation is warm. Asks to refuse a trainer that has read another number of rows
// than the others, or than before.
Request CheckRows(TrainingState& own, const CoreState& view);
// The generation in force begins to train from `step`.
void Begin(TrainingState& own, const CoreState& view, int64_t step, base::SteadyTime now);
// The state is at `step` again, or first: later steps are free.
void SetBack(TrainingState& own, int64_t step, int64_t generation, Effects& out);
void SawApplied(TrainingState& own, int64_t step);  // by a member that has halted
// What lasted until now was no stall, and no pause of a switch.
void ResetPause(TrainingState& own, base::SteadyTime now);

struct Progressed {
  Request request;
  const GenerationMember* trainer = nullptr;  // whose times count; null: none
  std::optional<int64_t> commit_to;           // every member has applied the steps up to this one
};
Progressed OnProgress(TrainingState& own, const CoreState& view, const std::string& member,
                      const job::v1::Progress& progress, base::SteadyTime now);
struct StepResult {
  StepRange range;
  std::optional<std::pair<double, int64_t>> loss;  // (sum, samples)
};
// The next step of those to commit.
StepResult CommitStep(TrainingState& own, const CoreState& view, int64_t step, base::WallTime now, Effects& out);
void Commit(TrainingState& own, int64_t step, base::SteadyTime now);
// Leases the next steps, if they may be. `even_if_none`: members that have just begun get a message in any case.
void LeaseSteps(TrainingState& own, const CoreState& view, bool even_if_none, base::SteadyTime now, Effects& out);

}  // namespace training
}  // namespace medley::worker
