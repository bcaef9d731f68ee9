// The concerns that lead the job as a whole: members, plans, data, generations, recovery, hand-over, choices, ending.
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/testing/status_matchers.h"
#include "common/model/model.h"
#include "tests/unit/worker/coordinator/core/concern_fixture.h"

namespace medley::worker::concern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(MembersConcernTest, WhoMayFillASlot) {
  using members::Use;
  struct Case {
    const char* name;
    std::function<void(Job&)> prepare;
    int holders, staying, all;
  };
  const auto stand_by = [](Job& job) {
    job::v1::StandbyRecord record;
    record.set_member(job.names[0]);
    record.set_instance("i-" + job.names[0]);
    job.state.standing_by.standbys.Add(record, At(0));
  };
  const std::vector<Case> cases = {
      {"all", [](Job&) {}, 3, 3, 3},
      {"one is lost", [](Job& job) { members::Remove(job.state.members, job.names[0]); }, 2, 2, 2},
      {"one leaves", [](Job& job) { members::Leave(job.state.members, job.names[0]); }, 2, 2, 3},
      {"one is released", [](Job& job) { members::MarkReleased(job.state.members, job.names[0]); }, 2, 2, 2},
      {"one does not hold the state", [](Job& job) { generations::Lose(job.state.generations, job.names[0]); }, 2, 3,
       3},
      {"one stands by, but nobody else has its stage", stand_by, 3, 3, 3},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job;
    job.Train();
    each.prepare(job);
    const auto peers = [&](Use use) { return static_cast<int>(members::Fit(job.state, job.plan, use).peers.size()); };
    EXPECT_EQ(peers(Use::kHolders), each.holders);
    EXPECT_EQ(peers(Use::kStaying), each.staying);
    EXPECT_EQ(peers(Use::kAll), each.all);
  }
}

TEST(PlansConcernTest, WhichPlansFollow) {
  struct Case {
    const char* name;
    int64_t plan, refused;
    bool servers;
    std::string error;
    bool checkpoints = true;
  };
  const std::vector<Case> cases = {
      {"a newer one", 6, 0, true, ""},
      {"the same again", 5, 0, true, ""},
      {"an older one", 4, 0, true, "plan 4 is older than plan 5"},
      {"the one that was given up", 6, 6, true, "plan 6 was given up, because job-0-a-0 cannot run it: no"},
      {"tables move", 6, 0, false, ""},
      {"tables cannot move", 6, 0, false, "that writes no checkpoints cannot train with a plan", false},
  };
  CoreOptions options = Options();
  options.model = std::make_shared<const model::Model>(model::Model{.layers = {{.sparse = true}}});
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    options.checkpoints = each.checkpoints;
    PlansState plans;
    plans::Accept(plans, sim::MakePlan(5, 1, 1, 1, "a"));
    if (each.refused > 0) plans::Refuse(plans, *plans.desired, each.refused, "job-0-a-0", "no");
    job::v1::ApplyPlanRequest next = sim::MakePlan(each.plan, 1, 1, 1, "a");
    if (!each.servers) next.mutable_plan()->clear_servers();
    EXPECT_THAT(std::string(plans::MayFollow(plans, options, next).message()), HasSubstr(each.error));
    EXPECT_EQ(plans::MayFollow(plans, options, next).ok(), each.error.empty());
  }
}

TEST(PlansConcernTest, AnOlderLeaderIsRefused) {
  PlansState plans;
  Effects out;
  const std::vector<std::pair<int64_t, bool>> terms = {{3, true}, {3, false}, {4, true}};
  for (const auto& [term, newer] : terms) {
    EXPECT_THAT(plans::AcceptTerm(plans, term, out), base::IsOkAndHolds(newer));
  }
  EXPECT_FALSE(plans::AcceptTerm(plans, 3, out).ok());
  EXPECT_EQ(plans.leader_term, 4);
}

TEST(DataConcernTest, WhoseDataAreRight) {
  struct Case {
    const char* name;
    const char *journal, *first, *second;
    size_t wrong;
    bool hopeless;
    const char* digest;  // afterwards
  };
  const std::vector<Case> cases = {
      {"the first generation", "", "x", "x", 0, false, "x"},
      {"a later one", "x", "x", "x", 0, false, "x"},
      {"the second trainer's differ", "", "x", "y", 1, false, ""},
      {"the first trainer's do, from the journal's", "y", "x", "y", 1, false, "y"},
      {"all do", "z", "x", "y", 2, true, "z"},
      {"trainers without data", "x", "", "", 0, true, "x"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job;
    job.Prepare();
    job.state.data.train_digest = each.journal;
    job.state.generations.next->members[job.names[0]].data_digest = each.first;
    job.state.generations.next->members[job.names[1]].data_digest = each.second;
    const data_check::TrainingData data = data_check::CheckTraining(job.state.data, job.state);
    EXPECT_EQ(data.wrong.size(), each.wrong);
    EXPECT_EQ(data.hopeless, each.hopeless);
    EXPECT_EQ(job.state.data.train_digest, each.digest);
  }
}

TEST(DataConcernTest, TheProgramOfMostIsRight) {
  GenerationInfo generation;
  const std::map<std::string, std::string> programs = {{"a", "1"}, {"b", "2"}, {"c", "2"}, {"server", ""}};
  for (const auto& [name, program] : programs) generation.members[name].program = program;
  const data_check::WrongMembers wrong = data_check::WithOtherPrograms(generation);
  ASSERT_EQ(wrong.size(), 1);
  EXPECT_EQ(wrong[0].first, "a");
  EXPECT_THAT(wrong[0].second, HasSubstr("compiled the plan to program 1, 2 trainers to 2"));
}

TEST(GenerationsConcernTest, WhatAFaultMeans) {
  struct Case {
    const char* name;
    Mode mode;
    int64_t generation;  // 1 is in force, 2 is prepared
    bool exchange;
    std::string request, permanent;
  };
  const std::vector<Case> cases = {
      {"in force", Mode::kTraining, 1, false, "halt: job-0-a-0: broke", "fail: job-0-a-0: broke"},
      {"an exchange", Mode::kTraining, 1, true, "halt: the exchange of job-0-a-0 with other members broke at step 7",
       "fail: job-0-a-0: broke"},
      {"already halting", Mode::kHalting, 1, false, "", "fail: job-0-a-0: broke"},
      {"prepared", Mode::kTraining, 2, false, "abandon, a fault: job-0-a-0: broke", "job-0-a-0 refuses: broke"},
      {"given up", Mode::kTraining, 0, false, "", ""},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job;
    job.Train();
    job.Prepare();
    job.state.generations.mode = each.mode;
    job::v1::Fault fault;
    fault.set_generation(each.generation);
    fault.set_step(7);
    fault.set_message("broke");
    if (each.exchange) fault.set_kind(job::v1::FAULT_KIND_EXCHANGE);
    EXPECT_EQ(Text(generations::OnFault(job.state.generations, job.names[0], fault)), each.request);
    EXPECT_EQ(Text(generations::OnPermanentFault(job.state.generations, job.names[0], fault, job.out)), each.permanent);
  }
}

TEST(GenerationsConcernTest, WhereSurvivorsMeet) {
  struct Case {
    const char* name;
    std::vector<int64_t> applied, undo_to;
    int64_t step;  // -1: nowhere
    std::string why;
  };
  const std::vector<Case> cases = {
      {"all at the same step", {5, 5, 5}, {4, 4, 4}, 5, ""},
      {"one is ahead and returns", {5, 6, 5}, {4, 5, 4}, 5, ""},
      {"one cannot return", {5, 7, 5}, {4, 6, 4}, -1, "job-1-a-0 has applied step 7 and cannot roll back to step 5"},
      {"before the committed step",
       {3, 3, 3},
       {2, 2, 2},
       -1,
       "the survivors can only continue from step 3, but step 4 is committed"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job;
    job.Train();
    job.Commit(4);
    generations::BeginHalt(job.state.generations, job.state, At(0), job.out);
    EXPECT_EQ(generations::LateMembers(job.state, At(0)), std::nullopt);
    for (size_t i = 0; i < job.names.size(); ++i) {
      job::v1::Halted halted;
      halted.set_generation(1);
      halted.set_applied_step(each.applied[i]);
      halted.set_undo_to_step(each.undo_to[i]);
      EXPECT_TRUE(generations::OnHalted(job.state.generations, job.names[i], halted));
    }
    EXPECT_THAT(*generations::LateMembers(job.state, At(0)), testing::IsEmpty());
    const std::variant<int64_t, Cause> meeting = generations::MeetingStep(job.state);
    EXPECT_EQ(std::holds_alternative<int64_t>(meeting) ? std::get<int64_t>(meeting) : -1, each.step);
    const Cause* why = std::get_if<Cause>(&meeting);
    EXPECT_EQ(why == nullptr ? "" : why->text, each.why);
  }
}

TEST(GenerationsConcernTest, WhoDoesNotHaltInTimeIsLate) {
  Job job;
  job.Train();
  generations::BeginHalt(job.state.generations, job.state, At(0), job.out);
  job::v1::Halted halted;
  halted.set_generation(1);
  generations::OnHalted(job.state.generations, job.names[1], halted);
  EXPECT_EQ(generations::LateMembers(job.state, At(14)), std::nullopt);
  EXPECT_THAT(*generations::LateMembers(job.state, At(15)), ElementsAre(job.names[0], job.names[2]));
}

TEST(RecoveryConcernTest, WhichCauseUsersAreShown) {
  struct Case {
    const char* name;
    Mode mode;
    job::v1::SwitchCause before, after;
    bool replaces;
  };
  const std::vector<Case> cases = {
      {"a new interruption", Mode::kTraining, job::v1::SWITCH_CAUSE_MEMBER_LOST, job::v1::SWITCH_CAUSE_EXCHANGE_BROKEN,
       true},
      {"an effect of a loss", Mode::kHalting, job::v1::SWITCH_CAUSE_MEMBER_LOST, job::v1::SWITCH_CAUSE_EXCHANGE_BROKEN,
       false},
      {"a loss after its effect", Mode::kHalting, job::v1::SWITCH_CAUSE_EXCHANGE_BROKEN,
       job::v1::SWITCH_CAUSE_MEMBER_LOST, true},
      {"another loss", Mode::kHalting, job::v1::SWITCH_CAUSE_MEMBER_LOST, job::v1::SWITCH_CAUSE_MEMBER_LOST, true},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job;
    job.state.generations.mode = each.mode;
    job.state.recovery.cause = {each.before, "before", ""};
    recovery::Blame(job.state.recovery, job.state, {each.after, "after", ""});
    EXPECT_EQ(job.state.recovery.cause.text, each.replaces ? "after" : "before");
  }
}

TEST(RecoveryConcernTest, FaultsWaitLongerAndLongerUntilTheJobGivesUp) {
  CoreOptions options = Options();
  options.max_fruitless = 3;
  Job job(options);
  std::vector<double> waits;
  while (IsNothing(recovery::GiveUp(job.state.recovery, {.text = "broke"}))) {
    recovery::OnAbandon(job.state.recovery, job.state, RecoveryBudget::Weight::kFault, At(0));
    waits.push_back(base::ToSeconds(job.state.recovery.retry_at - At(0)));
    ASSERT_LT(waits.size(), 100);
  }
  EXPECT_THAT(waits, ElementsAre(1, 1, 2, 4));
  EXPECT_EQ(Text(recovery::GiveUp(job.state.recovery, {.text = "broke"})),
            "fail, retryable: gave up after 4 interruptions without progress beyond step 0; the last one: broke");
  recovery::OnPlan(job.state.recovery, At(0));
  EXPECT_TRUE(IsNothing(recovery::GiveUp(job.state.recovery, {.text = "broke"})));
}

TEST(HandOverConcernTest, WhoMayTakeOver) {
  struct Case {
    const char* name;
    std::function<void(Job&)> prepare;
    int64_t term;
    std::string answer;  // "news", "" or an error
  };
  const auto hand_over = [](int64_t term) {
    return [term](Job& job) {
      job.state.hand_over.successor.emplace().set_term(term);
      job.state.hand_over.handed_over = true;
    };
  };
  const std::vector<Case> cases = {
      {"the first", [](Job&) {}, 2, "news"},
      {"a larger term", [](Job& job) { job.state.hand_over.successor.emplace().set_term(2); }, 3, "news"},
      {"a smaller one", [](Job& job) { job.state.hand_over.successor.emplace().set_term(3); }, 2, "takes over"},
      {"done already", hand_over(2), 2, ""},
      {"another has it", hand_over(2), 3, "is handed over to the coordinator of term 2"},
      {"suspended", [](Job& job) { ending::Suspend(job.state.ending, "", At(0)); }, 2, "is being suspended"},
      {"over", [](Job& job) { job.state.ending.outcome = job::v1::JOB_PHASE_COMPLETE; }, 2, "the job is over"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job;
    each.prepare(job);
    job::v1::HandOverRequest to;
    to.set_term(each.term);
    const absl::StatusOr<bool> news = hand_over::Accept(job.state.hand_over, job.state, to, job.out);
    const std::string answer = !news.ok() ? std::string(news.status().message()) : *news ? "news" : "";
    EXPECT_THAT(answer, HasSubstr(each.answer));
    EXPECT_EQ(news.ok(), each.answer == "news" || each.answer.empty());
  }
}

TEST(ChoicesConcernTest, WhenAGenerationMayBeReplaced) {
  struct Case {
    const char* name;
    std::function<void(Job&)> prepare;
    bool may;
  };
  const std::vector<Case> cases = {
      {"while it trains", [](Job&) {}, true},
      {"one is being prepared", [](Job& job) { job.Prepare(); }, false},
      {"the job is suspended", [](Job& job) { ending::Suspend(job.state.ending, "", At(9)); }, false},
      {"another coordinator takes over", [](Job& job) { job.state.hand_over.successor.emplace(); }, false},
      {"all steps are leased", [](Job& job) { job.Commit(20); }, false},
      {"a fault was just now", [](Job& job) { recovery::RetryAt(job.state.recovery, At(2)); }, false},
      {"a fault was long ago", [](Job& job) { recovery::RetryAt(job.state.recovery, At(1)); }, true},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job;
    job.Train();
    each.prepare(job);
    EXPECT_EQ(choices::MayChange(job.state, At(1)), each.may);
  }
}

TEST(ChoicesConcernTest, SurvivorsContinueWithoutALeaverIfTheyCan) {
  Job job;
  job.Train();
  plans::Accept(job.state.plans, sim::MakePlan(2, 1, 1, 1, "b"));
  job.state.recovery.cause.text = "a loss";
  EXPECT_EQ(Text(choices::FromSurvivors(job.state, At(0))), "prepare plan 1 with 3 members: a loss");
  members::Leave(job.state.members, job.names[0]);  // but it alone has stage 0
  EXPECT_EQ(Text(choices::FromSurvivors(job.state, At(0))), "prepare plan 1 with 3 members: a loss");
  members::Remove(job.state.members, job.names[0]);
  EXPECT_EQ(Text(choices::FromSurvivors(job.state, At(0))), "") << "it waits for a member";
}

TEST(EndingConcernTest, WhatIsLeftToDo) {
  using ending::Step;
  struct Case {
    const char* name;
    int64_t committed;
    std::function<void(Job&)> prepare;
    Step step;
  };
  const auto suspend = [](Job& job) { ending::Suspend(job.state.ending, "a test", At(99)); };
  const auto saved = [](int64_t step) { return [step](Job& job) { job.state.checkpoints.last_step = step; }; };
  const std::vector<Case> cases = {
      {"samples are left", 5, [](Job&) {}, Step::kNothing},
      {"all are trained", 20, [](Job&) {}, Step::kSave},
      {"and saved", 20, saved(20), Step::kEvaluate},
      {"saved, but damaged", 20, [&](Job& job) { saved(20)(job), job.state.checkpoints.last_is_damaged = true; },
       Step::kSave},
      {"being saved", 20, [](Job& job) { job.state.checkpoints.pending.emplace(); }, Step::kNothing},
      {"not saved just now", 20, [](Job& job) { recovery::RetryAt(job.state.recovery, At(2)); }, Step::kNothing},
      {"suspended", 5, suspend, Step::kSave},
      {"suspended and saved", 5, [&](Job& job) { suspend(job), saved(5)(job); }, Step::kSuspend},
      {"suspended before the first step", 0, suspend, Step::kSuspend},
      {"suspended at the end", 20, [&](Job& job) { suspend(job), saved(20)(job); }, Step::kEvaluate},
      {"handed over", 20, [](Job& job) { job.state.hand_over.successor.emplace(); }, Step::kNothing},
      {"over", 20, [](Job& job) { job.state.ending.outcome = job::v1::JOB_PHASE_FAILED; }, Step::kNothing},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job;
    job.Train();
    job.Commit(each.committed);
    each.prepare(job);
    EXPECT_EQ(ending::NextStep(job.state, At(1)), each.step);
  }
}

TEST(EvaluationsConcernTest, WhenOneIsDueBetweenSteps) {
  struct Case {
    const char* name;
    int64_t committed;
    std::function<void(Job&)> prepare;
    bool due;
  };
  const std::vector<Case> cases = {
      {"every 5 steps", 5, [](Job&) {}, true},
      {"between them", 6, [](Job&) {}, false},
      {"steps are open", 5, [](Job& job) { job.state.training.ledger->Lease(); }, false},
      {"evaluated already", 5, [](Job& job) { job.state.evaluation.curve.AddNothing(5); }, false},
      {"suspended", 5, [](Job& job) { ending::Suspend(job.state.ending, "", At(9)); }, false},
      {"a switch comes first", 5, [](Job& job) { job.Prepare(), job.Warm(); }, false},
      {"a preparation goes on", 5, [](Job& job) { job.Prepare(); }, true},
      {"the last one follows the end", 20, [](Job&) {}, false},
  };
  CoreOptions options = Options();
  options.evaluation.every_steps = 5;
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Job job(options);
    job.Train();
    job.Commit(each.committed);
    each.prepare(job);
    EXPECT_EQ(evaluations::IsDue(job.state), each.due);
  }
}

}  // namespace
}  // namespace medley::worker::concern
