// Converts the enums of the execution plan to and from their protos. Internal to common/model.
#pragma once

#include "common/base/status.h"
#include "common/model/allreduce_algorithm.h"
#include "common/model/synchronisation.h"
#include "medley/plan/v1/plan.pb.h"

namespace medley::model {

inline plan::v1::SyncMode ToProto(SyncMode mode) {
  switch (mode) {
    case SyncMode::kFull:
      return plan::v1::SYNC_MODE_FULL;
    case SyncMode::kNone:
      return plan::v1::SYNC_MODE_NONE;
    case SyncMode::kPercentage:
      return plan::v1::SYNC_MODE_PERCENTAGE;
    case SyncMode::kFlexible:
      return plan::v1::SYNC_MODE_FLEXIBLE;
  }
  return plan::v1::SYNC_MODE_UNSPECIFIED;
}

inline absl::StatusOr<SyncMode> FromProto(plan::v1::SyncMode mode, std::string_view path) {
  switch (mode) {
    case plan::v1::SYNC_MODE_UNSPECIFIED:
    case plan::v1::SYNC_MODE_FULL:
      return SyncMode::kFull;
    case plan::v1::SYNC_MODE_NONE:
      return SyncMode::kNone;
    case plan::v1::SYNC_MODE_PERCENTAGE:
      return SyncMode::kPercentage;
    case plan::v1::SYNC_MODE_FLEXIBLE:
      return SyncMode::kFlexible;
    default:
      return base::InvalidArgument("{}: unknown value {}", path, static_cast<int>(mode));
  }
}

inline plan::v1::AnomalyDetector ToProto(AnomalyDetector detector) {
  switch (detector) {
    case AnomalyDetector::kOff:
      return plan::v1::ANOMALY_DETECTOR_UNSPECIFIED;
    case AnomalyDetector::kRunningMean:
      return plan::v1::ANOMALY_DETECTOR_RUNNING_MEAN;
    case AnomalyDetector::kWindow:
      return plan::v1::ANOMALY_DETECTOR_WINDOW;
  }
  return plan::v1::ANOMALY_DETECTOR_UNSPECIFIED;
}

inline absl::StatusOr<AnomalyDetector> FromProto(plan::v1::AnomalyDetector detector, std::string_view path) {
  switch (detector) {
    case plan::v1::ANOMALY_DETECTOR_UNSPECIFIED:
      return AnomalyDetector::kOff;
    case plan::v1::ANOMALY_DETECTOR_RUNNING_MEAN:
      return AnomalyDetector::kRunningMean;
    case plan::v1::ANOMALY_DETECTOR_WINDOW:
      return AnomalyDetector::kWindow;
    default:
      return base::InvalidArgument("{}: unknown value {}", path, static_cast<int>(detector));
  }
}

inline plan::v1::ScheduleKind ToProto(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kSync1F1B:
      return plan::v1::SCHEDULE_KIND_SYNC_1F1B;
    case ScheduleKind::kGpipe:
      return plan::v1::SCHEDULE_KIND_GPIPE;
    case ScheduleKind::kAsync1F1B:
      return plan::v1::SCHEDULE_KIND_ASYNC_1F1B;
  }
  return plan::v1::SCHEDULE_KIND_UNSPECIFIED;
}

inline absl::StatusOr<ScheduleKind> FromProto(plan::v1::ScheduleKind kind, std::string_view path) {
  switch (kind) {
    case plan::v1::SCHEDULE_KIND_UNSPECIFIED:
    case plan::v1::SCHEDULE_KIND_SYNC_1F1B:
      return ScheduleKind::kSync1F1B;
    case plan::v1::SCHEDULE_KIND_GPIPE:
      return ScheduleKind::kGpipe;
    case plan::v1::SCHEDULE_KIND_ASYNC_1F1B:
      return ScheduleKind::kAsync1F1B;
    default:
      return base::InvalidArgument("{}: unknown value {}", path, static_cast<int>(kind));
  }
}

inline plan::v1::AllreduceAlgorithm AlgorithmToProto(AllreduceAlgorithm algorithm) {
  switch (algorithm) {
    case AllreduceAlgorithm::kAuto:
      return plan::v1::ALLREDUCE_ALGORITHM_AUTO;
    case AllreduceAlgorithm::kCentralized:
      return plan::v1::ALLREDUCE_ALGORITHM_CENTRALIZED;
    case AllreduceAlgorithm::kRing:
      return plan::v1::ALLREDUCE_ALGORITHM_RING;
    case AllreduceAlgorithm::kRecursiveDoubling:
      return plan::v1::ALLREDUCE_ALGORITHM_RECURSIVE_DOUBLING;
    case AllreduceAlgorithm::kLinear:
      return plan::v1::ALLREDUCE_ALGORITHM_LINEAR;
  }
  return plan::v1::ALLREDUCE_ALGORITHM_UNSPECIFIED;
}

// `path`: of the message that has the field.
inline absl::StatusOr<AllreduceAlgorithm> AlgorithmFromProto(plan::v1::AllreduceAlgorithm algorithm,
                                                             std::string_view path) {
  switch (algorithm) {
    case plan::v1::ALLREDUCE_ALGORITHM_UNSPECIFIED:
    case plan::v1::ALLREDUCE_ALGORITHM_AUTO:
      return AllreduceAlgorithm::kAuto;
    case plan::v1::ALLREDUCE_ALGORITHM_CENTRALIZED:
      return AllreduceAlgorithm::kCentralized;
    case plan::v1::ALLREDUCE_ALGORITHM_RING:
      return AllreduceAlgorithm::kRing;
    case plan::v1::ALLREDUCE_ALGORITHM_RECURSIVE_DOUBLING:
      return AllreduceAlgorithm::kRecursiveDoubling;
    case plan::v1::ALLREDUCE_ALGORITHM_LINEAR:
      return AllreduceAlgorithm::kLinear;
    default:
      return base::InvalidArgument("{}.algorithm: unknown value {}", path, static_cast<int>(algorithm));
  }
}

}  // namespace medley::model
