// How the replicas of some operations synchronise in an execution plan. Immutable values.
// proto/medley/plan/v1/plan.proto documents the fields.
#pragma once

#include <string>
#include <vector>

#include "common/model/allreduce_algorithm.h"
#include "common/model/operation_range.h"
#include "common/model/synchronisation.h"

namespace medley::model {

enum class SyncKind { kNone, kAllreduce, kParameterServer };

// Groups of devices of one level of a hierarchy, by device id. Each group of a level consists of whole groups of the
// level below.
struct HierarchyLevel {
  std::vector<std::vector<std::string>> groups;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::kAuto;  // within each group
  bool operator==(const HierarchyLevel&) const = default;
};

inline constexpr int kMostInnerLevels = 2;  // below the outermost

struct Sync {
  SyncKind kind = SyncKind::kNone;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::kAuto;
  SyncMode mode = SyncMode::kFull;
  double fraction = 1;
  double target_ratio = 0;
  std::vector<HierarchyLevel> hierarchy;  // innermost level first
  std::string root;                       // device id; empty: the first replica
  AnomalyDetector detector = AnomalyDetector::kOff;
  int anomaly_window = 0;
  double anomaly_threshold = 0;
  bool operator==(const Sync&) const = default;
};

struct OperationSync {
  std::vector<OperationRange> operations;
  Sync sync;
  bool operator==(const OperationSync&) const = default;
};

}  // namespace medley::model
