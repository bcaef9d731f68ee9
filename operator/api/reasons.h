// Every reason that a condition of a TrainingJob or of a ResourcePool may have. `medley explain` prints what to do
// about each (cli/cluster/advice.h), and docs/use/troubleshooting.md has a section for each. Pure constants.
#pragma once

#include <optional>
#include <string_view>

namespace medley::ops {

enum class Reason {
  // Planned
  kPlanFound,
  kInvalidSpec,
  kInvalidModel,
  kPoolNotFound,
  kPoolUnpriced,
  kUnitTooSmall,
  kUnknownPlanner,
  kInfeasible,
  kQueued,
  kSchedulerUnavailable,
  kProfiling,
  kWaitingForTurn,
  kUnschedulable,
  // PoolsUsable; also PoolNotFound, PoolUnpriced and UnitTooSmall, as of Planned
  kPoolsFound,
  // NamesAvailable
  kNamesFree,
  kNameTaken,
  // RecordsGenuine
  kRecordRefused,
  kRecordRenewed,
  // PodsReady
  kAllRunning,
  kPodsStarting,
  kPodCannotStart,
  // Running
  kGenerationCommitted,
  // Rescaling: why the plan changes; Rescaled: the change has finished
  kFirstPlan,
  kPriceChanged,
  kObjectiveChanged,
  kCapacityChanged,
  kThroughputBelowGoal,
  kPredictionCorrected,
  kMemberUnschedulable,
  kPlanRefused,
  kPoolUnusable,
  kMaxUnitsLowered,
  kCapacityLowered,
  kSpotNotice,
  kNodeDraining,
  kPodDisrupted,
  kNodeLost,
  kTrainerSlow,
  kRescaled,
  // Suspended
  kSuspending,
  kSuspended,
  kResumed,
  // Restarting
  kCoordinatorRestarted,
  kCoordinatorLost,
  kCoordinatorFailed,
  kRestarted,
  // CheckpointFailing
  kVolumeNotWritable,
  kJournalNotWritable,
  kCheckpointWritten,
  // Complete and Failed; also PodCannotStart, as of PodsReady
  kTrainingComplete,
  kStoppedEarly,
  kTrainingFailed,
  kProfileFailed,
  kBackoffLimitExceeded,
  kDeadlineExceeded,
  // Priced (pools)
  kFixedPrice,
  kCatalogPrice,
  kNotInCatalog,
  // Available (pools)
  kUnitsExist,
  kNoNodes,
  kOfferingUnavailable,
  kProvisioningFailed,
  // Profiled (pools); also ProfileFailed, as of Failed, and PodCannotStart, as of PodsReady
  kMeasured,
  kMeasuring,
  kNoFreeUnit,
  kFailedCreatePod,
  kProfilerFailed,
  kProfileUnreadable,
  kProfilingTimedOut,
};
inline constexpr int kReasons = static_cast<int>(Reason::kProfilingTimedOut) + 1;

// As in conditions: "PlanFound".
std::string_view ToString(Reason reason);
// nullopt: another program's, or another version's.
std::optional<Reason> ReasonNamed(std::string_view name);

}  // namespace medley::ops
