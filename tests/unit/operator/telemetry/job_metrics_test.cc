#include "operator/telemetry/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/telemetry/operator_metrics.h"

namespace medley::ops {
namespace {

using testing::HasSubstr;
using testing::Not;

base::WallTime At(int seconds) { return base::WallTime(base::seconds(seconds)); }

std::string Page(const JobMetrics& metrics) {
  metrics::TextPage page;
  metrics.Write(page);
  return page.Take();
}

JobSnapshot Running(double samples, const std::string& uid = "u1") {
  JobSnapshot seen;
  seen.uid = uid;
  seen.phase = "Running";
  seen.conditions = {{"Running", "True", "GenerationCommitted"}};
  seen.goal_throughput = 20000;
  seen.throughput = 21000.5;
  seen.samples = samples;
  seen.plan = "emb@4xcpu | fc@1xgpu";
  seen.planner = "exact";
  seen.units = {{"0", "cpu", "trainer", 4}, {"1", "gpu", "trainer", 1}, {"", "cpu", "server", 2}};
  seen.usd_per_hour = {{"cpu", 0.6}, {"gpu", 2.5}};
  seen.stages = {{"0", "cpu", 22000, 23000, 0.01, 0.002}, {"1", "gpu", 25000, {}, {}, {}}};
  seen.scores = {{"auc", 0.9}};
  seen.evaluation_training_loss = 0.25;
  seen.evaluation_epochs = 3;
  seen.left_out_members = 1;
  seen.agreement_fraction = 0.25;
  seen.synchronisation_ratio = 0.02;
  seen.staleness_steps = 2;
  seen.embedding_rows = {{"memory", 10}, {"disk", 30}};
  seen.embedding_bytes = {{"memory", 1000}, {"disk", 4000}};
  seen.embedding_pulled = {{"memory", 80}, {"ahead", 15}, {"disk", 5}};
  seen.embedding_moved = {{"memory", 20}, {"disk", 18}};
  seen.embedding_wait_seconds = 0.5;
  seen.embedding_device_rows = {{"device", 40}, {"host", 10}};
  seen.embedding_device_bytes = {{"device", 800}, {"host", 700}};
  seen.unit_seconds = {{"training", 90.5}, {"startUp", 9.5}};
  seen.bill_usd = {{"training", 0.75}, {"startUp", 0.05}};
  seen.goodput_ratio = 0.9375;
  seen.promised_usd = 2.5;
  return seen;
}

TEST(JobMetricsTest, HasEveryLabelAndValue) {
  JobMetrics metrics;
  metrics.Set({"ml", "adult"}, Running(1000), At(50));
  const std::string page = Page(metrics);
  for (const char* line : {"\nmedley_job_throughput_samples_per_second{namespace=\"ml\",job=\"adult\"} 21000.5\n",
                           "\nmedley_job_left_out_members{namespace=\"ml\",job=\"adult\"} 1\n",
                           "\nmedley_job_agreement_fraction{namespace=\"ml\",job=\"adult\"} 0.25\n",
                           "\nmedley_job_synchronisation_ratio{namespace=\"ml\",job=\"adult\"} 0.02\n",
                           "\nmedley_job_staleness_steps{namespace=\"ml\",job=\"adult\"} 2\n",
                           "\nmedley_job_embedding_rows{namespace=\"ml\",job=\"adult\",place=\"disk\"} 30\n",
                           "\nmedley_job_embedding_row_bytes{namespace=\"ml\",job=\"adult\",place=\"disk\"} 4000\n",
                           "\nmedley_job_embedding_pulled_rows_total{namespace=\"ml\",job=\"adult\","
                           "found=\"ahead\"} 15\n",
                           "\nmedley_job_embedding_moved_rows_total{namespace=\"ml\",job=\"adult\",to=\"memory\"} 20\n",
                           "\nmedley_job_embedding_disk_wait_seconds_total{namespace=\"ml\",job=\"adult\"} "
                           "0.5\n",
                           "\nmedley_job_embedding_device_rows_total{namespace=\"ml\",job=\"adult\","
                           "found=\"host\"} 10\n",
                           "\nmedley_job_embedding_device_bytes_total{namespace=\"ml\",job=\"adult\","
                           "to=\"device\"} 800\n",
                           "\nmedley_job_unit_seconds{namespace=\"ml\",job=\"adult\",category=\"startUp\"} 9.5\n",
                           "\nmedley_job_bill_usd{namespace=\"ml\",job=\"adult\",category=\"training\"} 0.75\n",
                           "\nmedley_job_goodput_ratio{namespace=\"ml\",job=\"adult\"} 0.9375\n",
                           "\nmedley_job_promised_usd{namespace=\"ml\",job=\"adult\"} 2.5\n",
                           "\nmedley_job_goal_samples_per_second{namespace=\"ml\",job=\"adult\"} 20000\n",
                           "\nmedley_job_samples_total{namespace=\"ml\",job=\"adult\"} 1000\n",
                           "\nmedley_job_last_progress_timestamp_seconds{namespace=\"ml\",job=\"adult\"} 50\n",
                           "\nmedley_job_phase{namespace=\"ml\",job=\"adult\",phase=\"Running\"} 1\n",
                           "\nmedley_job_condition{namespace=\"ml\",job=\"adult\",condition=\"Running\",status="
                           "\"True\","
                           "reason=\"GenerationCommitted\"} 1\n",
                           "\nmedley_job_plan_info{namespace=\"ml\",job=\"adult\",planner=\"exact\",plan=\"emb@4xcpu "
                           "| fc@1xgpu\"} 1\n",
                           "\nmedley_job_units{namespace=\"ml\",job=\"adult\",stage=\"0\",pool=\"cpu\",role="
                           "\"trainer\"} 4\n",
                           "\nmedley_job_units{namespace=\"ml\",job=\"adult\",stage=\"\",pool=\"cpu\",role=\"server\"}"
                           " 2\n",
                           "\nmedley_job_usd_per_hour{namespace=\"ml\",job=\"adult\",pool=\"gpu\"} 2.5\n",
                           "\nmedley_job_stage_compute_seconds{namespace=\"ml\",job=\"adult\",stage=\"0\",pool="
                           "\"cpu\"} 0.01\n",
                           "\nmedley_job_stage_predicted_samples_per_second{namespace=\"ml\",job=\"adult\",stage="
                           "\"1\",pool=\"gpu\"} "
                           "25000\n",
                           "\nmedley_job_score{namespace=\"ml\",job=\"adult\",score=\"auc\"} 0.9\n",
                           "\nmedley_job_evaluation_training_loss{namespace=\"ml\",job=\"adult\"} 0.25\n",
                           "\nmedley_job_evaluation_epochs{namespace=\"ml\",job=\"adult\"} 3\n",
                           "\nmedley_job_pause_seconds_count{namespace=\"ml\",job=\"adult\",kind=\"rescale\"} 0\n",
                           "# TYPE medley_job_samples_total counter\n",
                           "# TYPE medley_job_pause_seconds summary\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
  // An unknown value has no series, instead of a zero.
  EXPECT_THAT(page, Not(HasSubstr("medley_job_budget_usd")));
  EXPECT_THAT(page, Not(HasSubstr("medley_job_stage_compute_seconds{namespace=\"ml\",job=\"adult\",stage=\"1\"")));
}

TEST(JobMetricsTest, ADeletedJobHasNoSeries) {
  JobMetrics metrics;
  metrics.Set({"ml", "adult"}, Running(1000), At(0));
  metrics.Set({"ml", "other"}, Running(1), At(0));
  metrics.Remove({"ml", "adult"});
  EXPECT_THAT(Page(metrics), Not(HasSubstr("adult")));
  EXPECT_THAT(Page(metrics), HasSubstr("job=\"other\""));
  metrics.Remove({"ml", "other"});
  metrics.Remove({"ml", "never"});
  EXPECT_EQ(Page(metrics), "");
}

TEST(JobMetricsTest, CountersDoNotDecreaseInARollback) {
  JobMetrics metrics;
  metrics.Set({"ml", "adult"}, Running(1000), At(10));
  metrics.Set({"ml", "adult"}, Running(600), At(20));  // rolled back to a checkpoint
  EXPECT_THAT(Page(metrics), HasSubstr("medley_job_samples_total{namespace=\"ml\",job=\"adult\"} 1000\n"));
  EXPECT_THAT(Page(metrics), HasSubstr("last_progress_timestamp_seconds{namespace=\"ml\",job=\"adult\"} 10\n"));
  metrics.Set({"ml", "adult"}, Running(1200), At(30));
  EXPECT_THAT(Page(metrics), HasSubstr("medley_job_samples_total{namespace=\"ml\",job=\"adult\"} 1200\n"));
  EXPECT_THAT(Page(metrics), HasSubstr("last_progress_timestamp_seconds{namespace=\"ml\",job=\"adult\"} 30\n"));
  // Another job with the same name starts from zero.
  metrics.Set({"ml", "adult"}, Running(5, "u2"), At(40));
  EXPECT_THAT(Page(metrics), HasSubstr("medley_job_samples_total{namespace=\"ml\",job=\"adult\"} 5\n"));
}

TEST(JobMetricsTest, SwitchesAreSummedByKind) {
  metrics::Registry registry;
  OperatorMetrics metrics(registry);
  const kube::Key job{"ml", "adult"};
  metrics.ObserveSwitch(job, false, 0.25, 0);
  metrics.jobs().Set(job, Running(1), At(0));
  metrics.ObserveSwitch(job, false, 0.5, 0);
  metrics.ObserveSwitch(job, true, 2, 7);
  const std::string page = metrics.Text();
  for (const char* line :
       {"medley_job_pause_seconds_sum{namespace=\"ml\",job=\"adult\",kind=\"rescale\"} 0.75\n",
        "medley_job_pause_seconds_count{namespace=\"ml\",job=\"adult\",kind=\"rescale\"} 2\n",
        "medley_job_pause_seconds_sum{namespace=\"ml\",job=\"adult\",kind=\"recovery\"} 2\n",
        "medley_job_lost_steps_total{namespace=\"ml\",job=\"adult\"} 7\n",
        "medley_operator_generation_switches_total{kind=\"rescale\"} 2\n",
        "medley_operator_jobs{phase=\"Running\"} 1\n", "medley_operator_plans_usd_per_hour 3.1\n", "medley_leader 1\n",
        "process_resident_memory_bytes ", "medley_build_info{component=\"operator\""}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST(OperatorMetricsTest, ADeletedPoolHasNoSeries) {
  metrics::Registry registry;
  OperatorMetrics metrics(registry);
  metrics.SetPool("cpu", {0.05, 8, 6, 2, 4});
  EXPECT_THAT(metrics.Text(), HasSubstr("medley_pool_units{pool=\"cpu\",state=\"free\"} 4\n"));
  EXPECT_THAT(metrics.Text(), HasSubstr("medley_pool_usd_per_unit_hour{pool=\"cpu\"} 0.05\n"));
  metrics.SetPool("cpu", {0, 8, 6, 2, 4});  // the price has become unknown
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("medley_pool_usd_per_unit_hour{")));
  metrics.RemovePool("cpu");
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("pool=\"cpu\"")));
}

}  // namespace
}  // namespace medley::ops
