// Declarations of the values of this folder, for headers that only name them.
#pragma once

namespace medley::model {

enum class AnomalyDetector;
enum class SyncMode;
struct AlgorithmRule;
struct AllreduceMeasurement;
struct Cluster;
struct Device;
struct ExecutionPlan;
struct Hardware;
struct JobObservation;
struct Layer;
struct Link;
struct LinkSpeed;
struct Model;
struct Offering;
struct OperationRange;
struct OrderEntry;
struct PlanRequest;
struct PlanResult;
struct Prediction;
struct Profile;
struct ProvisionedPlan;
struct Reason;
struct Resource;
struct StepTimePlan;
struct Sync;
struct Synchronisation;

}  // namespace medley::model
