#include "cli/cluster/advice.h"

#include <map>

namespace medley::cli {
namespace {

const std::map<std::string_view, std::string_view>& Sentences() {
  static const std::map<std::string_view, std::string_view> kSentences = {
      {"InvalidSpec", "correct the field that is named; what is immutable needs a new TrainingJob"},
      {"InvalidModel",
       "correct spec.model or spec.data.schema so that they fit each other; both are immutable: "
       "delete the job and make it anew"},
      {"PoolNotFound",
       "make the ResourcePool, allow the namespace in its spec.namespaces, or name another in "
       "spec.resources"},
      {"PoolUnpriced",
       "give the pool spec.price.usdPerUnitHour, or a feed to the scheduling service that knows "
       "its spec.price.offering (medley prices --server)"},
      {"UnknownPlanner", "name a planner of the scheduling service in spec.planner.name, or leave it out: auto"},
      {"Infeasible",
       "ask for less (spec.objective), allow more (spec.elasticity.maxUnits, a pool's spec.limit, "
       "ResourceQuotas), or add nodes or pools; it is planned again by itself when any of them "
       "changes (medley plan --from JOB shows the numbers)"},
      {"SchedulerUnavailable",
       "see why the scheduling service does not answer: kubectl -n medley-system get pods -l "
       "app.kubernetes.io/name=medley-scheduler; what runs goes on meanwhile"},
      {"Profiling",
       "wait: a profiler pod measures the layers once on each pool (seconds to minutes); medley "
       "logs JOB --role profiler"},
      {"PodsStarting",
       "wait, or see what holds the pod that is named: kubectl describe pod; the reasons of pods "
       "are listed below"},
      {"CapacityChanged", ""},
      {"ThroughputBelowGoal", "nothing, if the next plan reaches the goal; else pools with more or faster units"},
      {"MemberUnschedulable", "free or add nodes of the pool; the job is planned without the units that are not there"},
      {"PoolGone", "make the ResourcePool again if it went by mistake; the job moves to what is left"},
      {"MaxUnitsLowered", ""},
      {"CapacityLowered",
       "nothing, if the smaller plan reaches the goal; else raise the quota or limit that the "
       "Event "
       "names, or add nodes"},
      {"SpotNotice", "nothing: the job leaves the machine before it is taken back"},
      {"NodeDraining", "nothing: the job leaves the node; when every node of a pool is drained, add others"},
      {"PodDisrupted", "nothing: the pod is replaced before it goes"},
      {"NodeLost",
       "nothing for the job; mend or delete the node (kubectl delete node), so that its pods are "
       "given up"},
      {"PriceChanged", ""},
      {"ObjectiveChanged", ""},
      {"FirstPlan", ""},
      {"Suspended",
       "set spec.runPolicy.suspend to false; the job goes on, from its last checkpoint if it has "
       "one"},
      {"Resumed", "wait: the job is planned again"},
      {"CoordinatorRestarted", "nothing; if it repeats, medley logs JOB --role coordinator says why"},
      {"CoordinatorLost", "nothing; if it repeats, see why its node or pod goes: kubectl get events"},
      {"CoordinatorFailed", "read its last lines: medley logs JOB --role coordinator"},
      {"TrainingFailed",
       "mend what the sentence names (data, model, checkpoint volume), delete the job and make it "
       "again, from the beginning"},
      {"ProfileFailed",
       "mend what the profiler names (data path, schema, memory), delete the job and make it "
       "again"},
      {"BackoffLimitExceeded",
       "mend what made it fail each time, or raise spec.runPolicy.backoffLimit; then delete the "
       "job and make it again"},
      {"DeadlineExceeded", "raise spec.runPolicy.activeDeadlineSeconds and make the job again"},
      {"NotInCatalog", "correct spec.price.offering, add a feed that knows it, or set spec.price.usdPerUnitHour"},
      {"NoNodes", "add nodes that match spec.nodeSelector and hold a unit, or set spec.scaling: Autoscaled"},
      {"PlanFound", ""},
      {"AllRunning", ""},
      {"GenerationCommitted", ""},
      {"Rescaled", ""},
      {"Restarted", ""},
      {"TrainingComplete", ""},
      {"FixedPrice", ""},
      {"CatalogPrice", ""},
      {"UnitsExist", ""},
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
