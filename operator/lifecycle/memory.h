// What the operator remembers of a job from pass to pass, beyond what the cluster stores. A value that one pass at a
// time uses.
//
// It is lost with the process. Everything here is rebuilt from the cluster, or only saves calls and repeated Events:
// an operator that starts with an empty memory reaches the same state of the cluster (property_test.cc). Each part
// belongs to the concern in whose header it is defined.
#pragma once

#include <string>

#include "operator/lifecycle/consider.h"
#include "operator/lifecycle/disruption.h"
#include "operator/lifecycle/feedback.h"
#include "operator/lifecycle/keeping.h"
#include "operator/lifecycle/lost_token.h"
#include "operator/lifecycle/members.h"
#include "operator/lifecycle/objects.h"
#include "operator/lifecycle/observing.h"
#include "operator/lifecycle/placement.h"
#include "operator/lifecycle/planning.h"
#include "operator/lifecycle/pods.h"
#include "operator/lifecycle/pools.h"
#include "operator/lifecycle/profiling.h"
#include "operator/lifecycle/refusal.h"
#include "operator/lifecycle/replanning.h"
#include "operator/lifecycle/running.h"
#include "operator/lifecycle/search.h"
#include "operator/lifecycle/sizes.h"
#include "operator/lifecycle/spending.h"
#include "operator/lifecycle/spot_wait.h"
#include "operator/lifecycle/starting.h"
#include "operator/lifecycle/status.h"
#include "operator/lifecycle/stored_plan.h"
#include "operator/lifecycle/succession.h"
#include "operator/lifecycle/taken_names.h"
#include "operator/lifecycle/units.h"

namespace medley::ops::lifecycle {

struct Memory {
  std::string uid;  // of the job; a memory of another UID is not used
  StatusState status;
  ObjectsState objects;
  KeepingState keeping;
  TakenNamesState taken_names;
  LostTokenState lost_token;
  PoolsState pools;
  ProfilingState profiling;
  StoredPlanState stored_plan;
  SearchState search;
  PlanningState planning;
  PlacementState placement;
  StartingState starting;
  RunningState running;
  SuccessionState succession;
  MembersState members;
  PodsState pods;
  DisruptionState disruption;
  ReplanningState replanning;
  ConsiderState consider;
  SpotWaitState spot_wait;
  RefusalState refusal;
  UnitsState units;
  ObservingState observing;
  SizesState sizes;
  SpendingState spending;
  FeedbackState feedback;
};

}  // namespace medley::ops::lifecycle
