// The generation in force and the one that is being prepared: preparing, switching, halting.
//
// Data in: what members report about a generation. Data out: orders to its members.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "worker/coordinator/core/effects.h"
#include "worker/coordinator/core/generation.h"

namespace medley::worker {

struct CoreState;

enum class Mode {
  kIdle,      // no member holds the state
  kTraining,  // the active generation trains
  kHalting,   // the survivors of the active generation are asked to halt
  kHalted     // the survivors have halted; their state is at GenerationsState::halted_step
};

struct GenerationsState {
  std::optional<GenerationInfo> active;  // its members hold the state
  std::optional<GenerationInfo> next;    // the generation being prepared
  Mode mode = Mode::kIdle;
  int64_t last = 0;  // the highest number that was given
  int64_t from = 0;  // the last generation that was in force; 0: none yet
  base::SteadyTime halt_deadline{};
  int64_t halted_step = 0;  // the survivors' step in Mode::kHalted
};

namespace generations {

int64_t ActiveOf(const GenerationsState& state);  // number of the generation in force; 0: none
// The generation that the newest plan has or will get.
int64_t NumberOfPlan(const CoreState& view);
bool AllWarmed(const GenerationInfo& next);
bool AllReady(const GenerationInfo& next);
bool HasMember(const std::optional<GenerationInfo>& generation, const std::string& name);
bool HasProcess(const std::optional<GenerationInfo>& generation, const std::string& name, const std::string& instance);
bool HoldsNothing(const GenerationInfo& active);  // whether a member said so when it halted
// Whether the members that are left together hold the whole state.
bool StateIsWhole(const GenerationInfo& active);
int64_t StateStep(const CoreState& view);  // of the state that the members in force hold between two steps
// Members that have not prepared or switched in time.
Request CheckDeadline(const CoreState& view, base::SteadyTime now);

// What follows from a member's fault, by the generation to which it belongs. A fault of a generation that has ended is
// ignored.
Request OnFault(const GenerationsState& state, const std::string& member, const job::v1::Fault& fault);
Request OnPermanentFault(const GenerationsState& state, const std::string& member, const job::v1::Fault& fault,
                         Effects& out);

// Preparing and switching. After Begin, the new number is to be journaled, and then announced.
void Begin(GenerationsState& own, const CoreState& view, PrepareRequest request, base::SteadyTime now);
void Announce(const CoreState& view, Effects& out);
bool OnWarmed(GenerationsState& own, const std::string& member, const job::v1::Warmed& warmed);  // whether it counts
struct SwitchPoint {
  int64_t step = 0;
  bool sets_ledger = false;  // the ledger has to be set to it first
};
std::optional<SwitchPoint> NextSwitch(const CoreState& view);  // nullopt: not yet
void SendSwitch(GenerationsState& own, const CoreState& view, int64_t step, base::SteadyTime now, Effects& out);
Request OnReady(GenerationsState& own, const CoreState& view, const std::string& member, const job::v1::Ready& ready);
// Returns the members that the new generation has no place for.
std::vector<job::v1::Peer> PutInForce(GenerationsState& own, const CoreState& view);
void Abandon(GenerationsState& own, const CoreState& view, Effects& out);

// Halting.
void BeginHalt(GenerationsState& own, const CoreState& view, base::SteadyTime now, Effects& out);
void Halt(GenerationsState& own, const std::string& member, Effects& out);
void HaltArrived(GenerationsState& own, Effects& out);  // those that have come to this coordinator
bool OnHalted(GenerationsState& own, const std::string& member, const job::v1::Halted& halted);  // whether it counts
// The survivors that have not halted in time; nullopt: their answers are awaited.
std::optional<std::vector<std::string>> LateMembers(const CoreState& view, base::SteadyTime now);
// The step from which the survivors can continue, or why they cannot.
std::variant<int64_t, Cause> MeetingStep(const CoreState& view);
void Halted(GenerationsState& own, int64_t step);
void LoseState(GenerationsState& own);
void Lose(GenerationsState& own, const std::string& holder);
// A holder of the state has a session again. False: it came back without its state.
bool OnReturn(GenerationsState& own, const job::v1::Hello& hello);
// Every member has come to this coordinator with the state of the last committed step.
void TrainOn(GenerationsState& own);
void End(GenerationsState& own);

void AdoptNumber(GenerationsState& own, int64_t generation);  // that wrote the checkpoint
void Restore(GenerationsState& own, const job::v1::CoordinatorState& journal);
// The generation that was in force, whose members may reconnect until `deadline`.
void RestoreActive(GenerationsState& own, const job::v1::CoordinatorState& journal, base::SteadyTime deadline);

}  // namespace generations
}  // namespace medley::worker
