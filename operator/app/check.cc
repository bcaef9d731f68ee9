#include "operator/app/check.h"

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/value_text.h"
#include "kube/client/http_session.h"
#include "kube/errors.h"
#include "kube/leader/record.h"
#include "operator/api/resources.h"
#include "operator/planning/scheduler_client.h"

namespace medley::ops {
namespace {

constexpr base::nanoseconds kPause = base::milliseconds(250);
constexpr std::chrono::seconds kRequestTimeout{15};

// A problem with a known answer: the goal needs two units, and four are free.
model::PlanRequest TestRequest() {
  model::PlanRequest request;
  model::Layer layer;
  layer.name = "check";
  layer.kind = "OTHER";
  model::LayerProfile profile;
  profile.resource_type = "check";
  profile.compute_seconds = 0.01;
  profile.compute_parallel = 1;
  layer.profiles = {profile};
  request.model.name = "medley-check";
  request.model.layers = {layer};
  request.training.profile_batch_size = 100;  // 10,000 samples/s a unit
  request.training.samples_per_epoch = 1e6;
  request.constraints.min_throughput = 15000;
  model::Resource resource;
  resource.name = "check";
  resource.price_per_unit_hour = 1;
  resource.limit = 4;
  request.resources = {resource};
  request.planner.time_budget_seconds = 5;
  return request;
}

class Checker {
 public:
  Checker(const OperatorOptions& options, const CheckOptions& check, kube::Client& client, base::Clock& clock,
          std::ostream& out, std::stop_token stop)
      : options_(options),
        check_(check),
        client_(client),
        clock_(clock),
        out_(out),
        stop_(std::move(stop)),
        deadline_(clock.Steady() + check.patience) {}

  absl::Status Run() {
    MEDLEY_RETURN_IF_ERROR(ApiServer());
    MEDLEY_RETURN_IF_ERROR(Scheduler());
    if (!check_.rest_url.empty()) MEDLEY_RETURN_IF_ERROR(RetryUntilAvailable([this] { return Rest(); }));
    if (!check_.operator_url.empty()) {
      MEDLEY_RETURN_IF_ERROR(RetryUntilAvailable([this] { return Operator(); }));
    }
    return check_.lease ? Leader() : absl::OkStatus();
  }

 private:
  // Waits before the next try. False: `patience` has passed, or the check was stopped.
  bool Pause() { return clock_.Steady() < deadline_ && clock_.SleepFor(kPause, stop_); }

  template <typename Call>
  absl::Status RetryUntilAvailable(const Call& call) {
    absl::Status answer = call();
    while (IsSchedulerAway(answer) && Pause()) answer = call();
    return answer;
  }

  absl::Status ApiServer() {
    MEDLEY_ASSIGN_OR_RETURN(const std::string text, client_.GetRaw("/version"));
    const kube::Json version = kube::Json::parse(text, nullptr, false);
    out_ << "API server: " << (version.is_object() ? version.value("gitVersion", "") : text) << "\n";
    for (const kube::Resource& resource : {TrainingJobs(), ResourcePools()}) {
      const std::string ns = resource.namespaced ? options_.ns : "";
      const auto list = client_.List(resource, {.ns = ns, .limit = 1});
      if (kube::IsNotFound(list.status())) {
        return base::NotFound("the API server does not know {}: apply the CRDs in deploy/crds", resource.plural);
      }
      MEDLEY_RETURN_IF_ERROR(base::Annotate(list.status(), "list " + resource.plural));
      out_ << resource.plural << ": readable" << (ns.empty() ? "" : " in " + ns) << "\n";
    }
    return absl::OkStatus();
  }

  absl::Status CheckPlan(const std::string& service, double throughput, double units, double usd) {
    if (throughput < TestRequest().constraints.min_throughput || units < 2 || usd <= 0) {
      return base::Internal("{}: invalid plan: {} units, {} samples/s, {} USD", service, units, throughput, usd);
    }
    out_ << service << ": a plan of " << units << " units\n";
    return absl::OkStatus();
  }

  absl::Status PlanOverGrpc(SchedulerClient& scheduler) {
    MEDLEY_ASSIGN_OR_RETURN(const model::PlanResult answer, scheduler.Plan(TestRequest(), "", stop_));
    const std::string service = "scheduling service " + options_.scheduler_address;
    if (!answer.plan || answer.plan->stages.empty())
      return base::Internal("{}: no plan for a goal that has one", service);
    return CheckPlan(service, answer.plan->throughput, answer.plan->stages[0].units, answer.plan->cost_usd);
  }

  absl::Status Scheduler() {
    SchedulerClient scheduler({.address = options_.scheduler_address,
                               .seed = options_.seed,
                               .token = options_.scheduler_token,
                               .tls = options_.scheduler_tls},
                              clock_);
    MEDLEY_RETURN_IF_ERROR(RetryUntilAvailable([&] { return PlanOverGrpc(scheduler); }));
    scheduler.Start([] {});
    while (scheduler.catalog() == nullptr && Pause()) continue;
    const auto catalog = scheduler.catalog();
    scheduler.Stop();
    if (catalog == nullptr)
      return base::DeadlineExceeded("scheduling service {} has published no prices", options_.scheduler_address);
    out_ << "prices: " << catalog->entries.size() << ", revision " << catalog->revision << "\n";
    return absl::OkStatus();
  }

  // The body of a response with code 200; any other code is an error.
  absl::StatusOr<std::string> Exchange(const kube::ClientConfig& config, const kube::HttpRequest& request) {
    const std::string what = request.method + " " + config.server + request.path;
    kube::HttpSession session(config, clock_);
    MEDLEY_ASSIGN_OR_RETURN(kube::HttpResponse response, session.Exchange(request, what, stop_));
    if (response.code != 200) return kube::ErrorFromHttp(response.code, response.body, what, response.retry_after);
    return std::move(response.body);
  }

  absl::Status Rest() {
    kube::ClientConfig config;
    config.server = check_.rest_url;
    config.token = options_.scheduler_token;
    config.request_timeout = kRequestTimeout;
    if (const auto& tls = options_.scheduler_tls) {
      config.ca_data = tls->root_certificates;
      config.client_certificate_data = tls->certificate;
      config.client_key_data = tls->key;
    }
    MEDLEY_RETURN_IF_ERROR(Exchange(config, {.path = "/readyz"}).status());
    MEDLEY_ASSIGN_OR_RETURN(const std::string text, Exchange(config, {.method = "POST",
                                                                      .path = "/v1/plan",
                                                                      .body = model::PlanRequestJson(TestRequest()),
                                                                      .content_type = "application/json"}));
    // Not parsed into protobuf messages: a newer service may send fields that this program does not know.
    const kube::Json answer = kube::Json::parse(text, nullptr, false);
    const auto number = [&](const char* path) {
      const kube::Json::json_pointer at(path);
      const bool valid = answer.contains(at) && answer.at(at).is_number();
      return valid ? answer.at(at).get<double>() : 0;
    };
    return CheckPlan(check_.rest_url, number("/plan/throughput"), number("/plan/stages/0/units"),
                     number("/plan/costUsd"));
  }

  absl::Status Operator() {
    kube::ClientConfig config;
    config.server = check_.operator_url;
    config.request_timeout = kRequestTimeout;
    for (const char* path : {"/healthz", "/readyz"}) MEDLEY_RETURN_IF_ERROR(Exchange(config, {.path = path}).status());
    out_ << check_.operator_url << ": ready\n";
    return absl::OkStatus();
  }

  // Waits for two different renewal times. The age of one renewal would not do: the clocks of two machines differ.
  absl::Status Leader() {
    std::string first;
    do {
      const auto lease = client_.Get(kube::resources::Leases(), *check_.lease);
      if (!lease.ok() && !kube::IsNotFound(lease.status()))
        return base::Annotate(lease.status(), "lease " + check_.lease->ToString());
      if (!lease.ok()) continue;
      const kube::LeaderRecord now = kube::ReadLeaderRecord(*lease);
      if (now.holder.empty()) continue;
      if (!first.empty() && first != now.renew_time) {
        out_ << "leader: " << now.holder << ", term " << now.transitions << "\n";
        return absl::OkStatus();
      }
      first = now.renew_time;
    } while (Pause());
    return base::DeadlineExceeded("lease {} is not renewed: the operator has no leader", check_.lease->ToString());
  }

  const OperatorOptions& options_;
  const CheckOptions& check_;
  kube::Client& client_;
  base::Clock& clock_;
  std::ostream& out_;
  const std::stop_token stop_;
  const base::SteadyTime deadline_;
};

}  // namespace

absl::Status Check(const OperatorOptions& options, const CheckOptions& check, kube::Client& client, base::Clock& clock,
                   std::ostream& out, std::stop_token stop) {
  return Checker(options, check, client, clock, out, std::move(stop)).Run();
}

}  // namespace medley::ops
