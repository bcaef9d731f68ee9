// One pass over one job: from what the caches hold to the writes that bring it nearer to what it
// should be.
//
//   admit -> profile -> plan -> run -> (observe, restart, re-plan) -> finish
//
// Each step either is done, or starts something and leaves the rest to a later pass that an event
// (or `Again`) brings. Not thread-safe; lives for one call of Run. The parts are in pass_*.cc.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/model/planning.h"
#include "operator/api/training_job.h"
#include "operator/controllers/job_deps.h"
#include "operator/records/plan_request.h"
#include "operator/runtime/reconciler.h"

namespace medley::ops {

class JobPass {
 public:
  JobPass(const JobDeps& deps, kube::ObjectPtr object, JobMemory& memory, std::stop_token stop);
  absl::StatusOr<Result> Run();

 private:
  // The pools that the job may use, all priced, with the units that it may have.
  struct Pools {
    std::vector<ResourcePool> pools;
    std::map<std::string, double> prices;      // to plan with
    std::map<std::string, double> paid;        // what a unit of the running plan costs now
    std::map<std::string, std::string> zones;  // that pods are pinned to; empty: none
    std::map<std::string, double> cheaper;     // prices of other zones than those that the job keeps
    std::vector<PoolOffer> offers;             // into `pools`
    const ResourcePool* Find(std::string_view name) const;
  };

  // pass_admit.cc
  absl::Status Steps();
  bool Admit();
  absl::Status EnsureFinalizer();
  // Priced in the zones that the job keeps, or in the cheapest ones. Nothing: the condition says why.
  std::optional<Pools> UsablePools(bool keep_zones = true);

  // pass_objects.cc
  absl::Status EnsureBaseObjects();
  absl::Status EnsureBudget();  // both once the record has the slots of the plan
  absl::Status EnsurePodGroup();
  absl::StatusOr<std::string> Token();
  absl::Status EnsureOwned(const kube::Resource& resource, const kube::Object& object);
  absl::Status CheckOwned(const kube::Object& existing);
  absl::Status Put(const kube::Resource& resource, const kube::Object& object);  // applied

  // pass_profile.cc: the merged profile, or nothing while profilers run (or the job failed).
  absl::StatusOr<std::optional<model::Profile>> Profiles(const Pools& pools);
  absl::StatusOr<std::optional<model::Profile>> StoredProfile(const std::string& hash, const std::string& pool);
  absl::Status RunProfiler(const std::string& hash, const ResourcePool& pool);
  absl::Status CollectProfile(const std::string& hash, const ResourcePool& pool, const kube::Object& pod);
  absl::Status ProfilerFailed(const kube::Object& pod);

  // pass_plan.cc
  absl::Status MakeFirstPlan();
  std::optional<model::PlanResult> Ask(const Pools& pools, const model::Profile& profile, const JobProgress& progress);
  void ExplainRefusal(const absl::Status& status);
  void ExplainInfeasible(const std::vector<model::Reason>& reasons, const Pools& pools);
  absl::Status Accept(const model::PlanResult& result, const Pools& pools, const model::Profile& profile,
                      const std::string& reason);
  absl::Status SaveRecord(const PlanRecord& record);
  absl::Status RecordOfAnother(const kube::Object& map);
  void ReadRecord();

  // pass_run.cc
  absl::Status RunPlan();
  absl::StatusOr<std::string> EnsureCoordinator();  // its address, empty while there is none
  absl::Status EnsureMembers(const std::string& coordinator);
  absl::Status ReplaceMember(const kube::Object& pod);
  std::string HowItEnded(const kube::Object& pod);
  absl::Status CreateMembers(const std::vector<kube::Object>& pods);
  absl::Status CreatePod(kube::Object pod);
  absl::Status FoundInstead(const kube::Object& pod);
  absl::Status ApplyPlan();
  absl::Status DeleteLeftovers();
  bool InForce() const;

  // pass_restart.cc
  absl::Status CheckCoordinator(bool* over);
  absl::Status Restart(const std::string& reason, const std::string& message);
  absl::Status CountRestarts(int count, const std::string& message, bool* failed);
  absl::Status CoordinatorEnded(const kube::Object& pod, bool* over);
  void ForgetRun();

  // pass_replan.cc
  absl::Status Replan();
  std::string ReplanReason(const Pools& pools, const PlanningInputs& now, bool* forced);
  PlanningInputs InputsOf(const Pools& pools) const;
  // `inputs`: of the pools in the zones that the job keeps.
  absl::Status Consider(const std::string& reason, bool forced, const Pools& pools, const PlanningInputs& inputs);
  // Where no plan was found in the zones of `pools`: pools of which at least one is in a zone that was not tried yet.
  std::optional<Pools> PoolsInOtherZones(const Pools& pools);
  absl::Status ConsiderCheaperZones(const std::string& reason, bool forced, const PlanningInputs& inputs);
  JobProgress Progress() const;
  bool Settled() const;    // runs as planned and has what it asked for
  bool BelowGoal() const;  // as measured, and by more than measurements vary
  bool GoalMissedForLong();
  bool MemberUnschedulableForLong(std::string* pool);
  void TellReplan(const char* event_reason, const std::string& sentence);

  // pass_capacity.cc
  PodDemand UnitOf(const ResourcePool& pool, const std::string& zone) const;
  JobUnits UnitsFor(const ResourcePool& pool, const std::string& zone) const;
  std::optional<JobPrice> PriceFor(const ResourcePool& pool, const PriceCatalog* catalog, bool keep_zones) const;
  bool Fits(const Pools& pools) const;  // the plan in force
  std::string CapacityReason(const Pools& pools, const PlanningInputs& now, bool* forced);

  // pass_disrupt.cc
  struct Doomed {
    kube::ObjectPtr pod;
    Notice notice;
  };
  std::optional<Notice> NoticeFor(const kube::Object& pod);  // it will be lost soon
  std::vector<Doomed> DoomedMembers();                       // of the plan
  std::vector<MemberSlot> StayingSlots();
  absl::StatusOr<bool> LeaveNodes();  // true: a plan without them was accepted
  absl::Status Relocate(const std::string& reason, size_t count);
  std::string TellNotices(const std::vector<Doomed>& doomed);  // the reason of the worst
  void DrainLeaving();

  // pass_observe.cc
  void TellScheduler();

  // pass_metrics.cc
  void TellMetrics();

  // pass_finish.cc
  absl::Status Suspend();
  void Resume();
  bool DeadlinePassed();
  absl::Status Finish(bool complete, const std::string& reason, const std::string& message);
  absl::Status AfterFinished();
  absl::Status Finalize();
  absl::Status DeletePods(bool only_running);

  // pass_term.cc
  absl::Status CheckTerm();
  absl::Status Deposed(const absl::Status& refusal, const char* what);
  kube::ObjectPtr Current(const kube::Resource& resource, const kube::Key& key, kube::ObjectPtr cached) const;

  // pass_status.cc
  void Observe();
  void ObserveSwitches();
  void SetCondition(const char* type, ConditionStatus status, std::string_view reason, std::string_view message);
  void Event(EventRecorder::Type type, std::string_view reason, std::string_view message);
  absl::Status WriteStatus();
  void FillPlanStatus();
  void CheckPodsReady();

  std::vector<kube::ObjectPtr> Pods() const;  // of this job, all roles
  kube::ObjectPtr Pod(const std::string& name) const;
  absl::Status DeletePod(const kube::Object& pod);
  // Being deleted, by anybody; this operator's own deletions count before the cache shows them.
  bool Going(const kube::Object& pod) const;
  std::string LogOf(const kube::Object& pod);
  void Again(base::nanoseconds in);  // at the earliest of all wishes

  const JobDeps& deps_;
  const kube::ObjectPtr held_;
  const kube::Object& object_;
  JobMemory& memory_;
  const std::stop_token stop_;
  const base::WallTime now_;
  const base::SteadyTime steady_;
  std::optional<TrainingJob> job_;
  JobStatus status_;
  std::optional<PlanRecord> record_;
  std::shared_ptr<const Observation> observed_;
  std::shared_ptr<CoordinatorLink> link_;
  bool spec_ok_ = true;
  bool first_ = false;  // of this process over this job
  std::optional<base::nanoseconds> again_;
};

// Whole seconds since `time` (RFC 3339); 0 when it is empty.
double SecondsSince(const std::string& time, base::WallTime now);

}  // namespace medley::ops
