#include "worker/coordinator/server/metrics_page.h"

#include <algorithm>
#include <map>

#include "common/base/status.h"
#include "common/metrics/metrics.h"
#include "common/metrics/process_metrics.h"
#include "common/metrics/text_page.h"

namespace medley::worker {

using http_server::HttpRequest;
using http_server::HttpResponse;

namespace {

// A row that was read ahead is in memory when it is pulled; it counts apart from those that were there anyway.
void AddRowTiers(const job::v1::RowTiers& tiers, metrics::TextPage& page) {
  using Kind = metrics::TextPage::Kind;
  const auto family = [&](std::string_view name, Kind kind, std::string_view help, std::string_view label,
                          const std::map<std::string, int64_t>& values) {
    page.Family(name, kind, help);
    for (const auto& [value, count] : values) page.Sample({{label, value}}, static_cast<double>(count));
  };
  family("medley_coordinator_embedding_rows", Kind::kGauge, "Rows of embedding tables that are kept", "place",
         {{"memory", tiers.memory_rows()}, {"disk", tiers.disk_rows()}});
  family("medley_coordinator_embedding_row_bytes", Kind::kGauge, "Bytes of these rows, on the disk with old ones",
         "place", {{"memory", tiers.memory_bytes()}, {"disk", tiers.disk_bytes()}});
  family("medley_coordinator_embedding_pulled_rows_total", Kind::kCounter, "Rows that pulls have found", "found",
         {{"memory", std::max<int64_t>(0, tiers.pulled_rows() - tiers.loaded_rows())},
          {"ahead", tiers.ahead_rows()},
          {"disk", tiers.loaded_rows() - tiers.ahead_rows()}});
  family("medley_coordinator_embedding_moved_rows_total", Kind::kCounter, "Rows that have moved", "to",
         {{"memory", tiers.loaded_rows()}, {"disk", tiers.left_rows()}});
  page.Family("medley_coordinator_embedding_disk_wait_seconds_total", Kind::kCounter,
              "Seconds in which pulls and updates of rows waited for the disk");
  page.Sample({}, tiers.wait_seconds());
}

void AddDeviceTables(const job::v1::DeviceTables& tables, metrics::TextPage& page) {
  using Kind = metrics::TextPage::Kind;
  const auto family = [&](std::string_view name, std::string_view help, std::string_view label,
                          const std::map<std::string, int64_t>& values) {
    page.Family(name, Kind::kCounter, help);
    for (const auto& [value, count] : values) page.Sample({{label, value}}, static_cast<double>(count));
  };
  family("medley_coordinator_embedding_device_rows_total", "Rows that steps on GPUs used", "found",
         {{"device", tables.found_rows()}, {"host", std::max<int64_t>(0, tables.used_rows() - tables.found_rows())}});
  family("medley_coordinator_embedding_device_bytes_total",
         "Bytes of rows, their optimizer state or their gradients that were copied between GPUs and hosts", "to",
         {{"device", tables.bytes_in()}, {"host", tables.bytes_out()}});
}

}  // namespace

std::string MetricsText(const job::v1::Observation& seen) {
  using Kind = metrics::TextPage::Kind;
  metrics::TextPage page;
  const auto gauge = [&](std::string_view name, std::string_view help, double value) {
    page.Family(name, Kind::kGauge, help);
    page.Sample({}, value);
  };
  const auto counter = [&](std::string_view name, std::string_view help, double value) {
    page.Family(name, Kind::kCounter, help);
    page.Sample({}, value);
  };
  gauge("medley_coordinator_phase", "Phase of the job's runtime, as numbered in JobPhase", seen.phase());
  gauge("medley_coordinator_generation", "Generation in force", static_cast<double>(seen.generation()));
  gauge("medley_coordinator_committed_step", "Steps that every member has applied", static_cast<double>(seen.step()));
  gauge("medley_coordinator_samples_done", "Samples in the surviving state", static_cast<double>(seen.samples_done()));
  gauge("medley_coordinator_target_samples", "Samples to train in all", static_cast<double>(seen.samples_total()));
  gauge("medley_coordinator_throughput_samples_per_second", "Samples trained per second over the last seconds",
        seen.throughput());
  gauge("medley_coordinator_loss", "Mean loss of the last steps", seen.loss());
  gauge("medley_coordinator_first_plan_usd", "USD that the first plan would have cost for the same samples",
        seen.usd_first_plan());
  gauge("medley_coordinator_missing_members", "Slots of the plan whose pod is not connected",
        seen.missing_members_size());
  gauge("medley_coordinator_left_out_members", "Slow trainers that stand by", seen.left_out_size());
  gauge("medley_coordinator_checkpoint_step", "Step of the last complete checkpoint",
        static_cast<double>(seen.last_checkpoint_step()));
  gauge("medley_coordinator_bad_rows", "Rows of the training data that were refused",
        static_cast<double>(seen.bad_rows()));
  counter("medley_coordinator_cost_usd_total", "USD spent: units held times the prices paid", seen.usd_spent());
  counter("medley_coordinator_checkpoint_failures_total", "Checkpoints and models that could not be written",
          static_cast<double>(seen.checkpoint_failures()));
  gauge("medley_coordinator_checkpoint_failing", "1 while checkpoints, the model or the journal cannot be written",
        seen.has_checkpoint_failure() ? 1 : 0);
  counter("medley_coordinator_data_wait_seconds_total",
          "Seconds that trainers waited for samples, of all trainers together", seen.data_wait_seconds());
  if (seen.has_row_tiers()) AddRowTiers(seen.row_tiers(), page);
  if (seen.has_device_tables()) AddDeviceTables(seen.device_tables(), page);
  counter("medley_coordinator_recoveries_total", "Recoveries", static_cast<double>(seen.restarts()));
  if (seen.has_agreement()) {
    gauge("medley_coordinator_agreement_fraction", "Share of the steps after which replicas average their parameters",
          seen.agreement().fraction());
    gauge("medley_coordinator_synchronisation_ratio", "Time of synchronisation over time of computation",
          seen.agreement().ratio());
  }
  if (seen.switches_size() > 0) {
    gauge("medley_coordinator_last_switch_pause_seconds", "Seconds without training at the last generation switch",
          seen.switches(seen.switches_size() - 1).pause_seconds());
  }
  if (seen.evaluations_size() > 0) {
    const job::v1::EvaluationRecord& last = seen.evaluations(seen.evaluations_size() - 1);
    gauge("medley_coordinator_evaluation_step", "Step of the last evaluation", static_cast<double>(last.step()));
    gauge("medley_coordinator_evaluation_epochs", "Complete passes over the training data at the last evaluation",
          last.epochs());
    if (last.has_loss()) {
      gauge("medley_coordinator_evaluation_training_loss",
            "Mean training loss between the last evaluation and the one before", last.loss());
    }
    page.Family("medley_coordinator_evaluation_score", Kind::kGauge, "Quality on the test data at the last evaluation");
    const std::map<std::string, double> metrics(last.metrics().begin(), last.metrics().end());  // sorted by name
    for (const auto& [name, value] : metrics) page.Sample({{"score", name}}, value);
  }
  const auto stages = [&](std::string_view name, std::string_view help,
                          double (*value)(const job::v1::StageObservation&)) {
    page.Family(name, Kind::kGauge, help);
    for (const job::v1::StageObservation& stage : seen.stages()) {
      page.Sample({{"stage", std::to_string(stage.stage())}, {"pool", stage.pool()}}, value(stage));
    }
  };
  using Stage = job::v1::StageObservation;
  stages("medley_coordinator_stage_compute_seconds", "Computation of the stage per step",
         [](const Stage& stage) { return stage.compute_seconds(); });
  stages("medley_coordinator_stage_communication_seconds", "Waiting of the stage per step",
         [](const Stage& stage) { return stage.comm_seconds(); });
  stages("medley_coordinator_stage_units", "Trainers of the stage",
         [](const Stage& stage) { return static_cast<double>(stage.units()); });
  metrics::WriteProcessMetrics(page);
  metrics::WriteBuildInfo(page, "coordinator");
  return page.Take();
}

absl::StatusOr<std::unique_ptr<MetricsPage>> MetricsPage::Start(const std::string& host, int port,
                                                                http_server::Readers readers,
                                                                std::function<job::v1::Observation()> observe) {
  std::unique_ptr<MetricsPage> page(new MetricsPage(host, port, std::move(readers), std::move(observe)));
  const absl::Status started = page->server_.Start();
  if (!started.ok()) return base::Annotate(started, "serving metrics");
  return page;
}

MetricsPage::MetricsPage(const std::string& host, int port, http_server::Readers readers,
                         std::function<job::v1::Observation()> observe)
    : server_({.address = host, .port = port, .max_connections = 64, .max_body = 0},
              [readers = std::move(readers), observe = std::move(observe)](const HttpRequest& request) -> HttpResponse {
                const bool known = request.method == "GET" || request.method == "HEAD";
                if (!known) return {.code = 405, .content_type = "text/plain", .body = "GET only\n"};
                if (request.path != "/metrics") {
                  return {.code = 404, .content_type = "text/plain", .body = "the page is /metrics\n"};
                }
                if (!readers.Allow(request)) return http_server::Readers::Refusal();
                return {.content_type = metrics::kTextContentType, .body = MetricsText(observe())};
              }) {}

}  // namespace medley::worker
