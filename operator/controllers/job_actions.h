// Carries out the actions and effects of one pass over a job (operator/lifecycle/actions.h). Lives for one pass; not
// thread-safe.
#pragma once

#include "operator/controllers/job_deps.h"
#include "operator/lifecycle/lifecycle.h"

namespace medley::ops {

class JobActions {
 public:
  // `first`: this is the first pass of this process over this job.
  JobActions(const JobDeps& deps, const lifecycle::JobInput& input, int64_t leader_term, bool first)
      : deps_(deps), input_(input), key_(input.object->key()), term_(leader_term), first_(first) {}

  lifecycle::Answer Do(const lifecycle::Action& action);
  void Do(const lifecycle::Effect& effect);

 private:
  // One for each Action.
  lifecycle::Answer Carry(const lifecycle::ReadPools& action);
  lifecycle::Answer Carry(const lifecycle::ReadPlan& action);
  lifecycle::Answer Carry(const lifecycle::ReadProfiles& action);
  lifecycle::Answer Carry(const lifecycle::GetObject& action);
  lifecycle::Answer Carry(const lifecycle::ReadLog& action);
  lifecycle::Answer Carry(const lifecycle::TakeTurn& action);
  lifecycle::Answer Carry(const lifecycle::ReserveUnits& action);
  lifecycle::Answer Carry(const lifecycle::EnsureObject& action);
  lifecycle::Answer Carry(const lifecycle::CreateObject& action);
  lifecycle::Answer Carry(const lifecycle::ApplyObject& action);
  lifecycle::Answer Carry(const lifecycle::DeleteObject& action);
  lifecycle::Answer Carry(const lifecycle::PatchJob& action);
  lifecycle::Answer Carry(const lifecycle::CreatePods& action);
  lifecycle::Answer Carry(const lifecycle::DeletePods& action);
  lifecycle::Answer Carry(const lifecycle::SavePlan& action);
  lifecycle::Answer Carry(const lifecycle::Connect& action);
  lifecycle::Answer Carry(const lifecycle::SendPlan& action);
  lifecycle::Answer Carry(const lifecycle::SuspendTraining& action);
  lifecycle::Answer Carry(const lifecycle::DrainMembers& action);
  lifecycle::Answer Carry(const lifecycle::AskForPlan& action);
  // One for each Effect.
  void Carry(const lifecycle::PublishEvent& effect);
  void Carry(const lifecycle::CountRestarts& effect);
  void Carry(const lifecycle::CountPlan& effect);
  void Carry(const lifecycle::CountReplan& effect);
  void Carry(const lifecycle::AddSpent& effect);
  void Carry(const lifecycle::RecordSwitch& effect);
  void Carry(const lifecycle::Disconnect& effect);
  void Carry(const lifecycle::OfferObservation& effect);
  void Carry(const lifecycle::ReportNewerTerm& effect);
  void Carry(const lifecycle::ReportNoNode& effect);
  void Carry(const lifecycle::WriteLog& effect);

  // Begins a call that may take long, or hands over its answer.
  template <typename A, typename Call>
  lifecycle::Answer Slow(const SlowCalls::Question& question, SlowCalls::Pool pool, Call call);
  absl::Status CreatePod(kube::Object pod, bool avoid_noticed_nodes);
  // Reads the ConfigMap that exists: another operator has written it, or it belongs to an earlier job of this name and
  // may be replaced.
  lifecycle::SavePlan::Outcome ReadOtherPlan(const kube::Object& map);

  const JobDeps& deps_;
  const lifecycle::JobInput& input_;
  const kube::Key key_;
  const int64_t term_;
  const bool first_;
};

}  // namespace medley::ops
