// What the functions of the concerns decide. Plain values; not thread-safe.
//
// A concern's function has its own part of the state to change and sees the other parts through a const view. It
//
//   - puts commands for the shell into Effects, in their order, and
//   - returns a Request when something has to happen that concerns others. CoordinatorCore carries it out as soon as
//     the function has returned, and tells every concern that it affects.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "worker/coordinator/core/commands.h"
#include "worker/coordinator/core/generation.h"
#include "worker/coordinator/core/recovery_budget.h"
#include "worker/coordinator/core/roster.h"

namespace medley::worker {

class Effects {
 public:
  void Add(Command command) { commands_.push_back(std::move(command)); }
  void Send(const job::v1::Peer& to, job::v1::SessionResponse message);
  void Log(bool warning, std::string message);
  std::vector<Command> Take() { return std::exchange(commands_, {}); }

 private:
  std::vector<Command> commands_;
};

// The generation in force stops, and its members halt.
struct HaltRequest {
  Cause why;
};
// The job ends with an error; `retryable`: another attempt may succeed.
struct FailRequest {
  std::string why;
  bool retryable = false;
};
// The generation that is being prepared is given up. `weight`: how the interruption counts; nullopt: it is a decision,
// and does not.
struct AbandonRequest {
  Cause why;
  std::optional<RecoveryBudget::Weight> weight;
};
// `member` cannot take part in the generation that is being prepared, and a retry would not help.
struct RefuseRequest {
  std::string member;
  std::string message;
};
// A generation is prepared from this plan, with these members.
struct PrepareRequest {
  job::v1::ApplyPlanRequest plan;
  RosterFit fit;
  job::v1::StateOrigin origin = job::v1::STATE_ORIGIN_UNSPECIFIED;
  Cause cause;
  int64_t restored_step = 0;  // GenerationInfo::restored_step
  std::optional<job::v1::Rebuild> rebuild = std::nullopt;
};
// A checkpoint or the finished model was not written. `folder`: of the checkpoint, whose files are removed; or empty.
struct SaveFailedRequest {
  std::string why;
  std::string folder;
};
// The best model cannot be used, and the last one is exported.
struct DropBestRequest {
  std::string why;
};
// The first: nothing.
using Request = std::variant<std::monostate, HaltRequest, FailRequest, AbandonRequest, RefuseRequest, PrepareRequest,
                             SaveFailedRequest, DropBestRequest>;
inline bool IsNothing(const Request& request) { return std::holds_alternative<std::monostate>(request); }

}  // namespace medley::worker
