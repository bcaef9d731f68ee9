#include "operator/api/reasons.h"

namespace medley::ops {

std::string_view ToString(Reason reason) {
  switch (reason) {
    case Reason::kPlanFound:
      return "PlanFound";
    case Reason::kInvalidSpec:
      return "InvalidSpec";
    case Reason::kInvalidModel:
      return "InvalidModel";
    case Reason::kPoolNotFound:
      return "PoolNotFound";
    case Reason::kPoolUnpriced:
      return "PoolUnpriced";
    case Reason::kUnitTooSmall:
      return "UnitTooSmall";
    case Reason::kUnknownPlanner:
      return "UnknownPlanner";
    case Reason::kInfeasible:
      return "Infeasible";
    case Reason::kQueued:
      return "Queued";
    case Reason::kSchedulerUnavailable:
      return "SchedulerUnavailable";
    case Reason::kProfiling:
      return "Profiling";
    case Reason::kWaitingForTurn:
      return "WaitingForTurn";
    case Reason::kUnschedulable:
      return "Unschedulable";
    case Reason::kPoolsFound:
      return "PoolsFound";
    case Reason::kNamesFree:
      return "NamesFree";
    case Reason::kNameTaken:
      return "NameTaken";
    case Reason::kRecordRefused:
      return "RecordRefused";
    case Reason::kRecordRenewed:
      return "RecordRenewed";
    case Reason::kAllRunning:
      return "AllRunning";
    case Reason::kPodsStarting:
      return "PodsStarting";
    case Reason::kPodCannotStart:
      return "PodCannotStart";
    case Reason::kGenerationCommitted:
      return "GenerationCommitted";
    case Reason::kFirstPlan:
      return "FirstPlan";
    case Reason::kPriceChanged:
      return "PriceChanged";
    case Reason::kObjectiveChanged:
      return "ObjectiveChanged";
    case Reason::kCapacityChanged:
      return "CapacityChanged";
    case Reason::kPredictionCorrected:
      return "PredictionCorrected";
    case Reason::kThroughputBelowGoal:
      return "ThroughputBelowGoal";
    case Reason::kMemberUnschedulable:
      return "MemberUnschedulable";
    case Reason::kPlanRefused:
      return "PlanRefused";
    case Reason::kPoolUnusable:
      return "PoolUnusable";
    case Reason::kMaxUnitsLowered:
      return "MaxUnitsLowered";
    case Reason::kCapacityLowered:
      return "CapacityLowered";
    case Reason::kSpotNotice:
      return "SpotNotice";
    case Reason::kNodeDraining:
      return "NodeDraining";
    case Reason::kPodDisrupted:
      return "PodDisrupted";
    case Reason::kNodeLost:
      return "NodeLost";
    case Reason::kTrainerSlow:
      return "TrainerSlow";
    case Reason::kRescaled:
      return "Rescaled";
    case Reason::kSuspending:
      return "Suspending";
    case Reason::kSuspended:
      return "Suspended";
    case Reason::kResumed:
      return "Resumed";
    case Reason::kCoordinatorRestarted:
      return "CoordinatorRestarted";
    case Reason::kCoordinatorLost:
      return "CoordinatorLost";
    case Reason::kCoordinatorFailed:
      return "CoordinatorFailed";
    case Reason::kRestarted:
      return "Restarted";
    case Reason::kVolumeNotWritable:
      return "VolumeNotWritable";
    case Reason::kJournalNotWritable:
      return "JournalNotWritable";
    case Reason::kCheckpointWritten:
      return "CheckpointWritten";
    case Reason::kTrainingComplete:
      return "TrainingComplete";
    case Reason::kStoppedEarly:
      return "StoppedEarly";
    case Reason::kTrainingFailed:
      return "TrainingFailed";
    case Reason::kProfileFailed:
      return "ProfileFailed";
    case Reason::kBackoffLimitExceeded:
      return "BackoffLimitExceeded";
    case Reason::kDeadlineExceeded:
      return "DeadlineExceeded";
    case Reason::kFixedPrice:
      return "FixedPrice";
    case Reason::kCatalogPrice:
      return "CatalogPrice";
    case Reason::kNotInCatalog:
      return "NotInCatalog";
    case Reason::kUnitsExist:
      return "UnitsExist";
    case Reason::kNoNodes:
      return "NoNodes";
    case Reason::kOfferingUnavailable:
      return "OfferingUnavailable";
    case Reason::kProvisioningFailed:
      return "ProvisioningFailed";
    case Reason::kMeasured:
      return "Measured";
    case Reason::kMeasuring:
      return "Measuring";
    case Reason::kNoFreeUnit:
      return "NoFreeUnit";
    case Reason::kFailedCreatePod:
      return "FailedCreatePod";
    case Reason::kProfilerFailed:
      return "ProfilerFailed";
    case Reason::kProfileUnreadable:
      return "ProfileUnreadable";
    case Reason::kProfilingTimedOut:
      return "ProfilingTimedOut";
  }
  return "";
}

std::optional<Reason> ReasonNamed(std::string_view name) {
  for (int i = 0; i < kReasons; ++i) {
    if (ToString(static_cast<Reason>(i)) == name) return static_cast<Reason>(i);
  }
  return std::nullopt;
}

}  // namespace medley::ops
