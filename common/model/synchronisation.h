// How replicas synchronise, as a question asks for it. Immutable values.
#pragma once

namespace medley::model {

enum class SyncMode { kFull, kNone, kPercentage, kFlexible };
enum class AnomalyDetector { kOff, kRunningMean, kWindow };
enum class ScheduleKind { kSync1F1B, kGpipe, kAsync1F1B };

// Groups of replicas that the planner forms in every stage (Sync::hierarchy): none, of about the square root of their
// number within a pool, or one for each pool of the stage. With Objective::kStepTime the planner `hierarchy` forms them
// among devices: kNone and kAuto, the fastest; kPool, by pool; kLinks, for that goal only, by links and power.
enum class Grouping { kNone, kAuto, kPool, kLinks };

// How replicas synchronise. Other modes than kFull need one stage that holds the whole model, without parameter
// servers.
struct Synchronisation {
  SyncMode mode = SyncMode::kFull;
  double fraction = 1;                               // kPercentage, in (0, 1]
  double target_ratio = 0.02;                        // kFlexible, > 0: time of synchronisation over time of computation
  Grouping hierarchy = Grouping::kNone;              // kPool: only with kFull
  AnomalyDetector detector = AnomalyDetector::kOff;  // of slow replicas
  int anomaly_window = 16;                           // steps
  double anomaly_threshold = 3;                      // standard deviations
  bool operator==(const Synchronisation&) const = default;
};

inline constexpr int kLeastAnomalyWindow = 4;  // steps
inline constexpr int kMostAnomalyWindow = 1000;
inline constexpr double kMostAnomalyThreshold = 100;  // standard deviations

}  // namespace medley::model
