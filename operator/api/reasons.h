// Every reason that a condition of a TrainingJob or of a ResourcePool may have. tests/lint/check_reasons.py checks that
// the controllers use no other reason and that docs/use/troubleshooting.md has a section for each. `medley explain`
// prints what to do about each (cli/cluster/advice.h). Pure constants.
#pragma once

#include <string_view>

namespace medley::ops {

inline constexpr std::string_view kReasons[] = {
    // Planned
    "PlanFound",
    "InvalidSpec",
    "InvalidModel",
    "PoolNotFound",
    "PoolUnpriced",
    "UnitTooSmall",
    "UnknownPlanner",
    "Infeasible",
    "Queued",
    "SchedulerUnavailable",
    "Profiling",
    "WaitingForTurn",
    "Unschedulable",
    // PoolsUsable; also PoolNotFound, PoolUnpriced and UnitTooSmall, as of Planned
    "PoolsFound",
    // NamesAvailable
    "NamesFree",
    "NameTaken",
    // RecordsGenuine
    "RecordRefused",
    "RecordRenewed",
    // PodsReady
    "AllRunning",
    "PodsStarting",
    "PodCannotStart",
    // Running
    "GenerationCommitted",
    // Rescaling: why the plan changes; Rescaled: the change has finished
    "FirstPlan",
    "PriceChanged",
    "ObjectiveChanged",
    "CapacityChanged",
    "ThroughputBelowGoal",
    "MemberUnschedulable",
    "PlanRefused",
    "PoolUnusable",
    "MaxUnitsLowered",
    "CapacityLowered",
    "SpotNotice",
    "NodeDraining",
    "PodDisrupted",
    "NodeLost",
    "TrainerSlow",
    "Rescaled",
    // Suspended
    "Suspending",
    "Suspended",
    "Resumed",
    // Restarting
    "CoordinatorRestarted",
    "CoordinatorLost",
    "CoordinatorFailed",
    "Restarted",
    // CheckpointFailing
    "VolumeNotWritable",
    "JournalNotWritable",
    "CheckpointWritten",
    // Complete and Failed; also PodCannotStart, as of PodsReady
    "TrainingComplete",
    "StoppedEarly",
    "TrainingFailed",
    "ProfileFailed",
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    // Priced (pools)
    "FixedPrice",
    "CatalogPrice",
    "NotInCatalog",
    // Available (pools)
    "UnitsExist",
    "NoNodes",
    "OfferingUnavailable",
    "ProvisioningFailed",
    // Profiled (pools); also ProfileFailed, as of Failed, and PodCannotStart, as of PodsReady
    "Measured",
    "Measuring",
    "NoFreeUnit",
    "FailedCreatePod",
    "ProfilerFailed",
    "ProfileUnreadable",
    "ProfilingTimedOut",
};

}  // namespace medley::ops
