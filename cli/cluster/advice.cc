#include "cli/cluster/advice.h"

#include <map>

namespace medley::cli {
namespace {

const std::map<std::string_view, std::string_view>& Sentences() {
  static const std::map<std::string_view, std::string_view> kSentences = {
      {"InvalidSpec",
       "correct the field that the message names; a change of an immutable field needs a new TrainingJob"},
      {"InvalidModel",
       "make spec.model and spec.data.schema match; both are immutable, so delete the job and create it again"},
      {"PoolNotFound",
       "create the ResourcePool, allow the namespace in its spec.namespaces, or name another pool in spec.resources"},
      {"PoolUnpriced",
       "set the pool's spec.price.usdPerUnitHour, or give the scheduling service a feed that has a price for its "
       "spec.price.offering (medley prices --server)"},
      {"UnitTooSmall",
       "lower what the containers beside the worker request in spec.template, or use a pool with larger units"},
      {"UnknownPlanner",
       "set spec.planner.name to a planner of the scheduling service, or leave it out to use the planner auto"},
      {"Infeasible",
       "lower the goals (spec.objective), raise the limits (spec.elasticity.maxUnits, a pool's spec.limit, "
       "ResourceQuotas), or add nodes or pools; the job is planned again when any of them changes (medley plan --from "
       "JOB shows the numbers)"},
      {"Queued",
       "wait until a job that the message names ends or gives units back, which wakes this job by itself; or allow "
       "more "
       "units (a pool's spec.limit, more nodes), or give it a PriorityClass (spec.runPolicy.schedulingPolicy)"},
      {"SchedulerUnavailable",
       "find out why the scheduling service does not answer: kubectl -n medley-system get pods -l "
       "app.kubernetes.io/name=medley-scheduler; running jobs continue to train meanwhile"},
      {"Profiling",
       "wait: a profiler pod measures the layers once on each pool, which takes seconds to minutes (medley logs JOB "
       "--role profiler)"},
      {"WaitingForTurn", "nothing: the job that the message names is planned first, which takes seconds"},
      {"Unschedulable",
       "find out why the pod that the message names finds no node: kubectl get events --field-selector "
       "reason=FailedScheduling; the job is planned again after a pause"},
      {"PodsStarting",
       "wait, or find out why the pod that the message names does not start: kubectl describe pod; the reasons of pods "
       "are listed below"},
      {"PodCannotStart",
       "correct what the message names: the image or its pull secret, a Secret or ConfigMap, a volume; an edited "
       "spec.template replaces pods that never started"},
      {"CapacityChanged", ""},
      {"ThroughputBelowGoal",
       "nothing, if the next plan reaches the goal; otherwise add pools with more or faster units"},
      {"MemberUnschedulable", "free or add nodes of the pool; until then the job is planned without the missing units"},
      {"PoolUnusable",
       "create the ResourcePool again if it was deleted by mistake; the job moves to the remaining pools"},
      {"MaxUnitsLowered", ""},
      {"CapacityLowered",
       "nothing, if the smaller plan reaches the goal; otherwise raise the quota or limit that the Event names, or add "
       "nodes"},
      {"SpotNotice", "nothing: the job leaves the machine before the provider takes it back"},
      {"NodeDraining", "nothing: the job leaves the node; add nodes if all nodes of a pool are drained"},
      {"PodDisrupted", "nothing: the pod is replaced before it terminates"},
      {"NodeLost",
       "nothing for the job; repair the node or delete it (kubectl delete node), so that Kubernetes removes its pods"},
      {"TrainerSlow", "nothing: another pod replaces the slow one; look for other work on its node"},
      {"PriceChanged", ""},
      {"ObjectiveChanged", ""},
      {"FirstPlan", ""},
      {"Suspending", "wait: the coordinator takes a checkpoint and stops"},
      {"Suspended",
       "set spec.runPolicy.suspend to false; the job then continues, from its last checkpoint if it has one"},
      {"Resumed", "wait: the job is being planned again"},
      {"CoordinatorRestarted", "nothing; if it happens again, find the cause with medley logs JOB --role coordinator"},
      {"VolumeNotWritable", "make room on the checkpoint volume; the job trains on and tries again"},
      {"JournalNotWritable", "make room on the checkpoint volume; training continues by itself"},
      {"CoordinatorLost", "nothing; if it happens again, find out why its node or pod was lost: kubectl get events"},
      {"CoordinatorFailed", "read the coordinator's last log lines: medley logs JOB --role coordinator"},
      {"TrainingFailed",
       "correct what the message names (data, model, checkpoint volume), delete the job and create it again; it starts "
       "from the beginning"},
      {"ProfileFailed",
       "correct what the profiler names (data path, schema, memory), delete the job and create it again"},
      {"BackoffLimitExceeded",
       "remove the cause of the failures, or raise spec.runPolicy.backoffLimit; then delete the job and create it "
       "again"},
      {"DeadlineExceeded", "raise spec.runPolicy.activeDeadlineSeconds, delete the job and create it again"},
      {"NotInCatalog",
       "correct spec.price.offering, add a feed that has a price for it, or set spec.price.usdPerUnitHour"},
      {"OfferingUnavailable",
       "wait until a feed reports the offering as available, or set another offering or spec.price.usdPerUnitHour; "
       "running jobs keep the units that they hold"},
      {"ProvisioningFailed",
       "find out why the autoscaler brings no node (its quota, the stock of the machine type, kubectl describe pod), "
       "or "
       "add another pool; the pool is tried again at the time in the message, and after an edit of it"},
      {"NoNodes", "add nodes that match spec.nodeSelector and have room for a unit, or set spec.scaling to Autoscaled"},
      {"PlanFound", ""},
      {"AllRunning", ""},
      {"GenerationCommitted", ""},
      {"Rescaled", ""},
      {"Restarted", ""},
      {"TrainingComplete", ""},
      {"StoppedEarly", ""},
      {"FixedPrice", ""},
      {"CatalogPrice", ""},
      {"UnitsExist", ""},
      {"PoolsFound", ""},
      {"NamesFree", ""},
      {"RecordRenewed", ""},
      {"RecordRefused",
       "find out who writes to ConfigMaps of the namespace, and leave those of Medley to the operator"},
      {"CheckpointWritten", ""},
      {"NameTaken", "delete the object that the message names if nobody needs it, or give the job another name"},
      {"PlanRefused",
       "correct the nodes or volumes of the pool that the message names, so that its pods find the same training data "
       "as "
       "the others; the job tries the pool again after the time in the message"},
      {"Measured", ""},
      {"Measuring", "wait: the profiler pod that the message names needs seconds to minutes"},
      {"NoFreeUnit",
       "add nodes, or raise the limit or quota that the message names; the layers are measured when a unit is free"},
      {"FailedCreatePod",
       "correct what the message names (a ResourceQuota, an admission policy, a pod of another owner with that name); "
       "the operator tries again within 10 minutes"},
      {"ProfilerFailed",
       "correct what the message names; if the pod ran out of memory, raise the memory in spec.unit.resources of the "
       "pool; the operator tries again within 10 minutes, and at once after an edit of the pool"},
      {"ProfileUnreadable", "use the worker image of the operator's version; the operator measures again by itself"},
      {"ProfilingTimedOut",
       "find out why the pod did not start or was slow (kubectl describe pod), and add nodes of the pool if it was not "
       "scheduled; the operator measures again by itself"},
  };
  return kSentences;
}

}  // namespace

std::string Advice(std::string_view reason, std::string_view job) {
  constexpr std::string_view kJob = "JOB";
  const auto found = Sentences().find(reason);
  std::string advice(found == Sentences().end() ? "" : found->second);
  for (size_t at = 0; (at = advice.find(kJob, at)) != std::string::npos; at += job.size())
    advice.replace(at, kJob.size(), job);
  return advice;
}

bool IsKnownReason(std::string_view reason) { return Sentences().contains(reason); }

}  // namespace medley::cli
