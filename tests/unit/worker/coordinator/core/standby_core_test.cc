// The state machine leaves slow trainers out and takes them in again.
#include "tests/unit/worker/coordinator/core/core_fixture.h"

namespace medley::worker {
namespace {

using ::testing::HasSubstr;

// One trainer of stage 0, three of stage 1, and a server.
class StandbyCoreTest : public CoreTest {
 protected:
  StandbyCoreTest() : CoreTest(StandbyOptions()) {}
  static CoreOptions StandbyOptions() {
    CoreOptions options = Options();
    options.epochs = 1000;
    options.batch_size = 10;
    return options;
  }
  static job::v1::ApplyPlanRequest Plan(int64_t generation, int units) {
    job::v1::ApplyPlanRequest plan = sim::MakePlan(generation, 1, units, 1, "a");
    for (plan::v1::Stage& stage : *plan.mutable_plan()->mutable_stages()) {
      plan::v1::AnomalyPolicy& policy = *stage.mutable_syncs(0)->mutable_sync()->mutable_anomaly();
      policy.set_detector(plan::v1::ANOMALY_DETECTOR_WINDOW);
      policy.set_window(4);
      policy.set_threshold(3);
    }
    return plan;
  }
  void StartPlan(const job::v1::ApplyPlanRequest& plan) {
    ASSERT_TRUE(core_.ApplyPlan(plan, Now()).ok());
    Take();
    for (const job::v1::MemberSlot& slot : plan.slots()) Hello(slot);
    FollowPrepare();
  }
  // Each member that got a Prepare and then a Switch answers, and all answer Halt.
  void FollowPrepare() {
    for (int round = 0; round < 3; ++round) {
      std::map<std::string, std::vector<job::v1::SessionResponse>> sent;
      sent.swap(sent_);
      for (const auto& [name, messages] : sent) {
        for (const job::v1::SessionResponse& message : messages) Follow(name, message);
      }
    }
  }
  void Follow(const std::string& name, const job::v1::SessionResponse& message) {
    job::v1::SessionRequest answer;
    if (message.has_prepare()) {
      std::vector<std::string>& peers = peers_[message.prepare().generation()];
      peers.clear();
      for (const job::v1::Peer& peer : message.prepare().peers()) peers.push_back(peer.slot().member());
      answer.mutable_warmed()->set_generation(message.prepare().generation());
      answer.mutable_warmed()->set_rows(100);
    } else if (message.has_switch_()) {
      answer.mutable_ready()->set_generation(message.switch_().generation());
      answer.mutable_ready()->set_step(message.switch_().step());
      answer.mutable_ready()->set_state_samples(message.switch_().state_samples());
    } else if (message.has_halt()) {
      answer.mutable_halted()->set_generation(message.halt().generation());
      answer.mutable_halted()->set_applied_step(step_);
      answer.mutable_halted()->set_undo_to_step(step_ - 1);
    } else if (message.has_lease()) {
      generation_ = message.lease().generation();
      training_ = peers_[generation_];
      return;
    } else if (message.has_release()) {
      released_.push_back(name);
      return;
    } else if (message.has_probe()) {
      probes_.push_back(message.probe().id());
      probed_ = name;
      return;
    } else {
      return;
    }
    Say(name, answer);
  }
  // The members of the generation train; a step takes each 10 ms times its factor.
  void Train(int steps, const std::map<std::string, double>& factors = {}) {
    for (int i = 0; i < steps; ++i) {
      ++step_;
      time_ += base::milliseconds(100);
      for (const std::string& name : std::vector<std::string>(training_)) {
        const auto factor = factors.find(name);
        job::v1::SessionRequest message;
        message.mutable_progress()->set_generation(generation_);
        message.mutable_progress()->set_step(step_);
        message.mutable_progress()->set_compute_seconds(0.01 * (factor == factors.end() ? 1 : factor->second));
        Say(name, message);
      }
      if (!sent_.empty()) FollowPrepare();
    }
  }
  // The members complete the steps that are leased, and switch.
  void TrainUntil(int64_t generation, const std::map<std::string, double>& factors = {}) {
    for (int i = 0; i < 20 && generation_ != generation; ++i) Train(1, factors);
    ASSERT_EQ(generation_, generation);
  }
  void LeaveOutTheLast() {
    StartPlan(Plan(1, 3));
    Train(40);
    Train(60, {{kLast, 4}});
    ASSERT_EQ(Seen().left_out_size(), 1);
    ASSERT_EQ(generation_, 2);
  }
  void Probes(double seconds, int times) {
    for (int i = 0; i < times; ++i) {
      probes_.clear();
      for (int waited = 0; probes_.empty() && waited < 100; ++waited) {
        Advance(base::milliseconds(100));
        FollowPrepare();
      }
      ASSERT_EQ(probes_.size(), 1U);
      ASSERT_EQ(probed_, kLast);
      job::v1::SessionRequest message;
      message.mutable_probed()->set_id(probes_.front());
      message.mutable_probed()->set_seconds(seconds);
      Say(kLast, message);
      FollowPrepare();
    }
  }
  job::v1::SwitchRecord LastSwitch() {
    const job::v1::Observation seen = Seen();
    return seen.switches(seen.switches_size() - 1);
  }
  bool Trains(const std::string& name) const { return std::ranges::find(training_, name) != training_.end(); }

  static constexpr char kLast[] = "job-1-a-2";
  std::map<int64_t, std::vector<std::string>> peers_;  // of each generation
  std::vector<std::string> training_;                  // those of the one in force
  std::vector<std::string> released_;
  std::vector<int64_t> probes_;
  std::string probed_;
  int64_t generation_ = 1;
  int64_t step_ = 0;
};

TEST_F(StandbyCoreTest, ASlowTrainerStandsBy) {
  LeaveOutTheLast();
  EXPECT_EQ(training_, (std::vector<std::string>{"job-0-a-0", "job-1-a-0", "job-1-a-1", "job-server-0"}));
  EXPECT_EQ(LastSwitch().cause(), job::v1::SWITCH_CAUSE_MEMBER_SLOW);
  EXPECT_EQ(LastSwitch().member(), kLast);
  EXPECT_EQ(LastSwitch().reason(), "Left out trainer job-1-a-2: a step took it 40.0 ms, usually 10.0 ms.");
  EXPECT_FALSE(LastSwitch().recovery());
  const job::v1::Observation seen = Seen();
  EXPECT_EQ(seen.left_out(0).member(), kLast);
  EXPECT_EQ(seen.left_out(0).reason(), "Left out trainer job-1-a-2: a step took it 40.0 ms, usually 10.0 ms.");
  EXPECT_EQ(seen.left_out(0).since().seconds(), 1'700'000'000);
  EXPECT_EQ(seen.missing_members_size(), 0) << "it is connected";
  EXPECT_EQ(seen.restarts(), 0);
  EXPECT_TRUE(released_.empty());
  const int64_t step = seen.step();
  Train(20);
  EXPECT_EQ(Seen().step(), step + 20);
}

TEST_F(StandbyCoreTest, SlowTrainersStandByTogether) {
  StartPlan(Plan(1, 8));
  Train(40);
  Train(70, {{"job-1-a-1", 4}, {"job-1-a-3", 6}, {"job-1-a-4", 5}, {kLast, 3}});
  ASSERT_EQ(generation_, 2) << "one switch";
  EXPECT_EQ(Seen().left_out_size(), 4);
  EXPECT_EQ(training_, (std::vector<std::string>{"job-0-a-0", "job-1-a-0", "job-1-a-5", "job-1-a-6", "job-1-a-7",
                                                 "job-server-0"}));
  EXPECT_EQ(LastSwitch().cause(), job::v1::SWITCH_CAUSE_MEMBER_SLOW);
  EXPECT_EQ(LastSwitch().member(), "job-1-a-3") << "the slowest";
  EXPECT_EQ(LastSwitch().reason(),
            "Left out 4 trainers: job-1-a-3 (a step took it 60.0 ms, usually 10.0 ms), job-1-a-4 (a step took it 50.0 "
            "ms, usually 10.0 ms), job-1-a-1 (a step took it 40.0 ms, usually 10.0 ms) and 1 more.");
  const int64_t step = Seen().step();
  Train(20);
  EXPECT_EQ(Seen().step(), step + 20);
}

TEST_F(StandbyCoreTest, OneOfTwoSlowTrainersLeaves) {
  StartPlan(Plan(1, 8));
  Train(40);
  Train(40, {{"job-1-a-1", 4}, {"job-1-a-3", 6}});
  job::v1::SessionRequest leaving;
  leaving.mutable_leaving()->mutable_notice()->set_seconds(30);
  Say("job-1-a-3", leaving);
  FollowPrepare();
  TrainUntil(2, {{"job-1-a-1", 4}, {"job-1-a-3", 6}});
  EXPECT_EQ(LastSwitch().cause(), job::v1::SWITCH_CAUSE_MEMBER_LEFT);
  Train(100, {{"job-1-a-1", 4}, {"job-1-a-3", 6}});
  EXPECT_THAT(LastSwitch().reason(), HasSubstr("Left out trainer job-1-a-1: a step took it 40.0 ms"));
  EXPECT_FALSE(Trains("job-1-a-1"));
  EXPECT_FALSE(Trains("job-1-a-3"));
  EXPECT_EQ(Seen().left_out_size(), 1);
}

TEST_F(StandbyCoreTest, ReturnsWhenItIsAsFastAsUsual) {
  LeaveOutTheLast();
  Train(40);
  Probes(0.03, 4);
  Probes(0.012, 3);
  EXPECT_EQ(Seen().left_out(0).probe_seconds(), 0.012);
  EXPECT_EQ(generation_, 2);
  Probes(0.012, 1);
  TrainUntil(3);
  EXPECT_TRUE(Trains(kLast));
  EXPECT_EQ(LastSwitch().cause(), job::v1::SWITCH_CAUSE_STANDBY_RETURNED);
  EXPECT_EQ(LastSwitch().reason(), "Took trainer job-1-a-2 back: a step would take it 12.0 ms, usually 10.0 ms.");
  EXPECT_EQ(Seen().left_out_size(), 0);
  Train(50, {{kLast, 1.2}});
  EXPECT_EQ(generation_, 3);
  // What was usual is remembered: slow again, out again.
  Train(80, {{kLast, 4}});
  EXPECT_EQ(generation_, 4);
  EXPECT_FALSE(Trains(kLast));
}

TEST_F(StandbyCoreTest, IsUsedWhenTheOthersAreLost) {
  LeaveOutTheLast();
  Train(10);
  core_.OnLost("job-1-a-0", "i-job-1-a-0", Now());
  Take();
  FollowPrepare();
  EXPECT_FALSE(Trains(kLast)) << "one trainer of its stage is left";
  core_.OnLost("job-1-a-1", "i-job-1-a-1", Now());
  Take();
  FollowPrepare();
  Advance(base::seconds(5));  // no member has the stage's state: the job starts again, with every connected member
  FollowPrepare();
  EXPECT_TRUE(Trains(kLast));
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
  EXPECT_EQ(Seen().left_out_size(), 0);
}

TEST_F(StandbyCoreTest, ALeavingStandbyIsReleasedAtOnce) {
  LeaveOutTheLast();
  job::v1::SessionRequest leaving;
  leaving.mutable_leaving()->mutable_notice()->set_seconds(30);
  Say(kLast, leaving);
  FollowPrepare();
  EXPECT_EQ(released_, std::vector<std::string>{kLast});
  EXPECT_EQ(Seen().left_out_size(), 0);
  core_.OnLost(kLast, std::string("i-") + kLast, Now());
  Take();
  EXPECT_EQ(Seen().phase(), job::v1::JOB_PHASE_TRAINING);
  Train(10);
  EXPECT_EQ(generation_, 2);
  EXPECT_THAT(Seen().missing_members(), testing::ElementsAre(kLast));
  EXPECT_EQ(Seen().restarts(), 0);
}

TEST_F(StandbyCoreTest, ALostStandbyInterruptsNothing) {
  LeaveOutTheLast();
  core_.OnLost(kLast, std::string("i-") + kLast, Now());
  Take();
  Train(10);
  EXPECT_EQ(generation_, 2);
  EXPECT_EQ(Seen().restarts(), 0);
  EXPECT_EQ(Seen().left_out_size(), 0);
  // A new process with the name is an ordinary newcomer.
  const job::v1::ApplyPlanRequest plan = Plan(1, 3);
  for (const job::v1::MemberSlot& slot : plan.slots()) {
    if (slot.member() != kLast) continue;
    job::v1::SessionRequest message;
    message.mutable_hello()->set_member(kLast);
    message.mutable_hello()->set_role(slot.role());
    message.mutable_hello()->set_pool(slot.pool());
    message.mutable_hello()->set_instance("i-" + slot.member());
    Say(kLast, message);
  }
  FollowPrepare();
  TrainUntil(3);
  EXPECT_EQ(LastSwitch().cause(), job::v1::SWITCH_CAUSE_MEMBER_RETURNED);
}

TEST_F(StandbyCoreTest, StaysASlowMemberInANewPlan) {
  LeaveOutTheLast();
  ASSERT_TRUE(core_.ApplyPlan(Plan(10, 3), Now()).ok());
  Take();
  FollowPrepare();
  TrainUntil(10);
  EXPECT_FALSE(Trains(kLast));
  EXPECT_EQ(Seen().left_out_size(), 1);
  // A plan without its slot has no use for it.
  ASSERT_TRUE(core_.ApplyPlan(Plan(20, 2), Now()).ok());
  Take();
  FollowPrepare();
  TrainUntil(20);
  FollowPrepare();
  EXPECT_EQ(released_, std::vector<std::string>{kLast});
}

TEST_F(StandbyCoreTest, IsUsedByAPlanThatNeedsIt) {
  LeaveOutTheLast();
  job::v1::ApplyPlanRequest plan = Plan(10, 1);
  for (job::v1::MemberSlot& slot : *plan.mutable_slots()) {
    if (slot.stage() == 1) slot.set_member(kLast);
  }
  ASSERT_TRUE(core_.ApplyPlan(plan, Now()).ok());
  Take();
  FollowPrepare();
  TrainUntil(10);
  EXPECT_TRUE(Trains(kLast));
  EXPECT_EQ(Seen().left_out_size(), 0);
}

TEST_F(StandbyCoreTest, ARestartedCoordinatorRemembersIt) {
  LeaveOutTheLast();
  std::optional<job::v1::CoordinatorState> journal;
  ASSERT_TRUE(core_.ApplyPlan(Plan(1, 3), Now()).ok());
  Advance(base::seconds(11));
  time_ += base::seconds(11);
  core_.Tick(Now());
  for (const Command& command : core_.TakeCommands()) {
    if (const auto* record = std::get_if<JournalCommand>(&command)) journal = record->state;
  }
  ASSERT_TRUE(journal);
  sent_.clear();
  CoordinatorCore restarted(StandbyOptions(), Now(), journal);
  std::vector<std::string> peers;
  const job::v1::ApplyPlanRequest plan = Plan(1, 3);
  for (const job::v1::MemberSlot& slot : plan.slots()) {
    job::v1::SessionRequest message;
    message.mutable_hello()->set_member(slot.member());
    message.mutable_hello()->set_role(slot.role());
    message.mutable_hello()->set_pool(slot.pool());
    message.mutable_hello()->set_instance("i-" + slot.member());
    message.mutable_hello()->set_held_generation(slot.member() == kLast ? 1 : 2);
    message.mutable_hello()->set_held_step(step_);
    restarted.OnMessage(slot.member(), "i-" + slot.member(), message, Now());
  }
  for (const job::v1::MemberSlot& slot : plan.slots()) {
    job::v1::SessionRequest halted;
    halted.mutable_halted()->set_generation(2);
    halted.mutable_halted()->set_applied_step(step_);
    halted.mutable_halted()->set_undo_to_step(step_);
    restarted.OnMessage(slot.member(), "i-" + slot.member(), halted, Now());
  }
  for (const Command& command : restarted.TakeCommands()) {
    const auto* send = std::get_if<SendCommand>(&command);
    if (send == nullptr || !send->message.has_prepare()) continue;
    peers.clear();
    for (const job::v1::Peer& peer : send->message.prepare().peers()) peers.push_back(peer.slot().member());
  }
  EXPECT_EQ(peers, (std::vector<std::string>{"job-0-a-0", "job-1-a-0", "job-1-a-1", "job-server-0"}));
  ASSERT_EQ(restarted.Observe(Now()).left_out_size(), 1);
  EXPECT_THAT(restarted.Observe(Now()).left_out(0).reason(), HasSubstr("usually 10.0 ms"));
}

TEST_F(StandbyCoreTest, WithoutADetectorNobodyIsLeftOut) {
  StartPlan(sim::MakePlan(1, 1, 3, 1, "a"));
  Train(40);
  Train(200, {{kLast, 9}});
  EXPECT_EQ(generation_, 1);
}

TEST_F(StandbyCoreTest, TheOnlyTrainerOfAStageIsNeverLeftOut) {
  StartPlan(Plan(1, 3));
  Train(40);
  Train(200, {{"job-0-a-0", 9}});
  EXPECT_EQ(generation_, 1);
}

}  // namespace
}  // namespace medley::worker
