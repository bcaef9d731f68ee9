#include "cli/cluster/advice.h"

#include <optional>

#include "operator/api/reasons.h"

namespace medley::cli {
namespace {

// What the user can do; empty: nothing.
std::string_view SentenceOf(ops::Reason reason) {
  switch (reason) {
    case ops::Reason::kInvalidSpec:
      return "correct the field that the message names; a change of an immutable field needs a new TrainingJob";
    case ops::Reason::kInvalidModel:
      return "make spec.model and spec.data.schema match; both are immutable, so delete the job and create it again";
    case ops::Reason::kPoolNotFound:
      return "create the ResourcePool, allow the namespace in its spec.namespaces, or name another pool in "
             "spec.resources";
    case ops::Reason::kPoolUnpriced:
      return "set the pool's spec.price.usdPerUnitHour, or give the scheduling service a feed that has a price for its "
             "spec.price.offering (medley prices --server)";
    case ops::Reason::kUnitTooSmall:
      return "lower what the containers beside the worker request in spec.template, or use a pool with larger units";
    case ops::Reason::kUnknownPlanner:
      return "set spec.planner.name to a planner of the scheduling service, or leave it out to use the planner auto";
    case ops::Reason::kInfeasible:
      return "lower the goals (spec.objective), raise the limits (spec.elasticity.maxUnits, a pool's spec.limit, "
             "ResourceQuotas), or add nodes or pools; the job is planned again when any of them changes (medley plan "
             "--from "
             "JOB shows the numbers)";
    case ops::Reason::kQueued:
      return "wait until a job that the message names ends or gives units back, which wakes this job by itself; or "
             "allow "
             "more "
             "units (a pool's spec.limit, more nodes), or give it a PriorityClass (spec.runPolicy.schedulingPolicy)";
    case ops::Reason::kSchedulerUnavailable:
      return "find out why the scheduling service does not answer: kubectl -n medley-system get pods -l "
             "app.kubernetes.io/name=medley-scheduler; running jobs continue to train meanwhile";
    case ops::Reason::kProfiling:
      return "wait: a profiler pod measures the layers once on each pool, which takes seconds to minutes (medley logs "
             "JOB "
             "--role profiler)";
    case ops::Reason::kWaitingForTurn:
      return "nothing: the job that the message names is planned first, which takes seconds";
    case ops::Reason::kUnschedulable:
      return "find out why the pod that the message names finds no node: kubectl get events --field-selector "
             "reason=FailedScheduling; the job is planned again after a pause";
    case ops::Reason::kPodsStarting:
      return "wait, or find out why the pod that the message names does not start: kubectl describe pod; the reasons "
             "of pods "
             "are listed below";
    case ops::Reason::kPodCannotStart:
      return "correct what the message names: the image or its pull secret, a Secret or ConfigMap, a volume; an edited "
             "spec.template replaces pods that never started";
    case ops::Reason::kThroughputBelowGoal:
      return "nothing, if the next plan reaches the goal; otherwise add pools with more or faster units";
    case ops::Reason::kMemberUnschedulable:
      return "free or add nodes of the pool; until then the job is planned without the missing units";
    case ops::Reason::kPoolUnusable:
      return "create the ResourcePool again if it was deleted by mistake; the job moves to the remaining pools";
    case ops::Reason::kCapacityLowered:
      return "nothing, if the smaller plan reaches the goal; otherwise raise the quota or limit that the Event names, "
             "or add "
             "nodes";
    case ops::Reason::kSpotNotice:
      return "nothing: the job leaves the machine before the provider takes it back";
    case ops::Reason::kNodeDraining:
      return "nothing: the job leaves the node; add nodes if all nodes of a pool are drained";
    case ops::Reason::kPodDisrupted:
      return "nothing: the pod is replaced before it terminates";
    case ops::Reason::kNodeLost:
      return "nothing for the job; repair the node or delete it (kubectl delete node), so that Kubernetes removes its "
             "pods";
    case ops::Reason::kTrainerSlow:
      return "nothing: another pod replaces the slow one; look for other work on its node";
    case ops::Reason::kSuspending:
      return "wait: the coordinator takes a checkpoint and stops";
    case ops::Reason::kSuspended:
      return "set spec.runPolicy.suspend to false; the job then continues, from its last checkpoint if it has one";
    case ops::Reason::kResumed:
      return "wait: the job is being planned again";
    case ops::Reason::kCoordinatorRestarted:
      return "nothing; if it happens again, find the cause with medley logs JOB --role coordinator";
    case ops::Reason::kVolumeNotWritable:
      return "make room on the checkpoint volume; the job trains on and tries again";
    case ops::Reason::kJournalNotWritable:
      return "make room on the checkpoint volume; training continues by itself";
    case ops::Reason::kCoordinatorLost:
      return "nothing; if it happens again, find out why its node or pod was lost: kubectl get events";
    case ops::Reason::kCoordinatorFailed:
      return "read the coordinator's last log lines: medley logs JOB --role coordinator";
    case ops::Reason::kTrainingFailed:
      return "correct what the message names (data, model, checkpoint volume), delete the job and create it again; it "
             "starts "
             "from the beginning";
    case ops::Reason::kProfileFailed:
      return "correct what the profiler names (data path, schema, memory), delete the job and create it again";
    case ops::Reason::kBackoffLimitExceeded:
      return "remove the cause of the failures, or raise spec.runPolicy.backoffLimit; then delete the job and create "
             "it "
             "again";
    case ops::Reason::kDeadlineExceeded:
      return "raise spec.runPolicy.activeDeadlineSeconds, delete the job and create it again";
    case ops::Reason::kNotInCatalog:
      return "correct spec.price.offering, add a feed that has a price for it, or set spec.price.usdPerUnitHour";
    case ops::Reason::kOfferingUnavailable:
      return "wait until a feed reports the offering as available, or set another offering or "
             "spec.price.usdPerUnitHour; "
             "running jobs keep the units that they hold";
    case ops::Reason::kProvisioningFailed:
      return "find out why the autoscaler brings no node (its quota, the stock of the machine type, kubectl describe "
             "pod), "
             "or "
             "add another pool; the pool is tried again at the time in the message, and after an edit of it";
    case ops::Reason::kNoNodes:
      return "add nodes that match spec.nodeSelector and have room for a unit, or set spec.scaling to Autoscaled";
    case ops::Reason::kRecordRefused:
      return "find out who writes to ConfigMaps of the namespace, and leave those of Medley to the operator";
    case ops::Reason::kNameTaken:
      return "delete the object that the message names if nobody needs it, or give the job another name";
    case ops::Reason::kPlanRefused:
      return "correct the nodes or volumes of the pool that the message names, so that its pods find the same training "
             "data "
             "as "
             "the others; the job tries the pool again after the time in the message";
    case ops::Reason::kMeasuring:
      return "wait: the profiler pod that the message names needs seconds to minutes";
    case ops::Reason::kNoFreeUnit:
      return "add nodes, or raise the limit or quota that the message names; the layers are measured when a unit is "
             "free";
    case ops::Reason::kFailedCreatePod:
      return "correct what the message names (a ResourceQuota, an admission policy, a pod of another owner with that "
             "name); "
             "the operator tries again within 10 minutes";
    case ops::Reason::kProfilerFailed:
      return "correct what the message names; if the pod ran out of memory, raise the memory in spec.unit.resources of "
             "the "
             "pool; the operator tries again within 10 minutes, and at once after an edit of the pool";
    case ops::Reason::kProfileUnreadable:
      return "use the worker image of the operator's version; the operator measures again by itself";
    case ops::Reason::kProfilingTimedOut:
      return "find out why the pod did not start or was slow (kubectl describe pod), and add nodes of the pool if it "
             "was not "
             "scheduled; the operator measures again by itself";
    case ops::Reason::kCapacityChanged:
    case ops::Reason::kMaxUnitsLowered:
    case ops::Reason::kPriceChanged:
    case ops::Reason::kPredictionCorrected:
    case ops::Reason::kObjectiveChanged:
    case ops::Reason::kFirstPlan:
    case ops::Reason::kPlanFound:
    case ops::Reason::kAllRunning:
    case ops::Reason::kGenerationCommitted:
    case ops::Reason::kRescaled:
    case ops::Reason::kRestarted:
    case ops::Reason::kTrainingComplete:
    case ops::Reason::kStoppedEarly:
    case ops::Reason::kFixedPrice:
    case ops::Reason::kCatalogPrice:
    case ops::Reason::kUnitsExist:
    case ops::Reason::kPoolsFound:
    case ops::Reason::kNamesFree:
    case ops::Reason::kRecordRenewed:
    case ops::Reason::kCheckpointWritten:
    case ops::Reason::kMeasured:
      return "";
  }
  return "";
}

}  // namespace

std::string Advice(std::string_view reason, std::string_view job) {
  constexpr std::string_view kJob = "JOB";
  const std::optional<ops::Reason> known = ops::ReasonNamed(reason);
  std::string advice(known ? SentenceOf(*known) : "");
  for (size_t at = 0; (at = advice.find(kJob, at)) != std::string::npos; at += job.size())
    advice.replace(at, kJob.size(), job);
  return advice;
}

}  // namespace medley::cli
