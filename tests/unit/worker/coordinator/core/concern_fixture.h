// The state of a small job, for tests of single concerns: a concern's functions get its own part to change, and the
// whole as their view. Tests set the parts of other concerns as they need them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "tests/unit/worker/coordinator/core/sim_world.h"
#include "worker/coordinator/core/state.h"

namespace medley::worker::concern {

inline base::SteadyTime At(double seconds) { return base::SteadyTime(base::FromSeconds(1000 + seconds)); }
inline Instant Now(double seconds) {
  return {At(seconds), base::WallTime(base::seconds(1'700'000'000) + base::FromSeconds(seconds))};
}

// What a function asks for, in one line.
inline std::string Text(const Request& request) {
  if (const auto* halt = std::get_if<HaltRequest>(&request)) return "halt: " + halt->why.text;
  if (const auto* fail = std::get_if<FailRequest>(&request)) {
    return (fail->retryable ? "fail, retryable: " : "fail: ") + fail->why;
  }
  if (const auto* abandon = std::get_if<AbandonRequest>(&request)) {
    const char* weight = !abandon->weight                                     ? "a decision"
                         : *abandon->weight == RecoveryBudget::Weight::kFault ? "a fault"
                                                                              : "a loss";
    return fmt::format("abandon, {}: {}", weight, abandon->why.text);
  }
  if (const auto* refuse = std::get_if<RefuseRequest>(&request)) return refuse->member + " refuses: " + refuse->message;
  if (const auto* prepare = std::get_if<PrepareRequest>(&request)) {
    return fmt::format("prepare plan {} with {} members: {}", prepare->plan.plan().generation(),
                       prepare->fit.peers.size(), prepare->cause.text);
  }
  if (const auto* failed = std::get_if<SaveFailedRequest>(&request)) {
    return fmt::format("not saved, {}: {}", failed->folder, failed->why);
  }
  if (const auto* drop = std::get_if<DropBestRequest>(&request)) return "drop the best: " + drop->why;
  return "";
}

// The logs among the commands.
inline std::vector<std::string> Logs(Effects& out) {
  std::vector<std::string> logs;
  for (const Command& command : out.Take()) {
    if (const auto* log = std::get_if<LogCommand>(&command)) logs.push_back(log->message);
  }
  return logs;
}

inline CoreOptions Options() {
  CoreOptions options;
  options.epochs = 2;
  options.batch_size = 10;
  options.lease_ahead = 4;
  options.checkpoints = true;
  options.retry_wait = base::seconds(1);
  return options;
}

// A job of two stages with one trainer each and one server, all of which are connected and know plan 1.
struct Job {
  explicit Job(const CoreOptions& options = Options()) : state(options, At(0)) {
    plan = sim::MakePlan(1, 1, 1, 1, "a");
    for (const job::v1::MemberSlot& slot : plan.slots()) {
      names.push_back(slot.member());
      members::Connect(state.members, HelloOf(slot), At(0));
    }
    plans::Accept(state.plans, plan);
  }
  static job::v1::Hello HelloOf(const job::v1::MemberSlot& slot) {
    job::v1::Hello hello;
    hello.set_member(slot.member());
    hello.set_role(slot.role());
    hello.set_pool(slot.pool());
    hello.set_instance("i-" + slot.member());
    return hello;
  }
  // Prepares a generation of plan 1 with all members that stay.
  void Prepare(job::v1::StateOrigin origin = job::v1::STATE_ORIGIN_INITIAL) {
    PrepareRequest request{plan, members::Fit(state, plan, members::Use::kStaying), origin, {.text = "a test"}};
    generations::Begin(state.generations, state, std::move(request), At(0));
  }
  void Warm(int64_t rows = 100) {
    job::v1::Warmed warmed;
    warmed.set_generation(state.generations.next->generation);
    warmed.set_rows(rows);
    for (const std::string& name : names) generations::OnWarmed(state.generations, name, warmed);
  }
  // Generation 1 trains from step 0.
  void Train() {
    Prepare();
    Warm();
    ASSERT_EQ(Text(training::CheckRows(state.training, state)), "");
    training::SetBack(state.training, 0, 1, out);
    generations::PutInForce(state.generations, state);
    training::Begin(state.training, state, 0, At(0));
    out.Take();
  }
  // As if `step` had been leased, applied and committed.
  void Commit(int64_t step) {
    training::SetBack(state.training, step, 1, out);
    training::Begin(state.training, state, step, At(0));
    out.Take();
  }

  CoreState state;
  job::v1::ApplyPlanRequest plan;
  std::vector<std::string> names;  // of the trainers of stage 0 and 1, and of the server
  Effects out;
};

}  // namespace medley::worker::concern
