#include "operator/app/check.h"

#include "common/base/status.h"
#include "common/kube/errors.h"
#include "operator/api/resources.h"
#include "operator/planning/scheduler_client.h"

namespace medley::ops {
namespace {

constexpr base::nanoseconds kPause = base::milliseconds(500);

absl::Status CheckApiServer(const OperatorOptions& options, kube::Client& client, std::ostream& out) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, client.GetRaw("/version"));
  const kube::Json version = kube::Json::parse(text, nullptr, false);
  out << "API server: " << (version.is_object() ? version.value("gitVersion", "") : text) << "\n";
  for (const kube::Resource& resource : {TrainingJobs(), ResourcePools()}) {
    const std::string ns = resource.namespaced ? options.ns : "";
    const auto list = client.List(resource, {.ns = ns, .limit = 1});
    if (kube::IsNotFound(list.status())) {
      return base::NotFound("the API server does not know {}: apply the definitions (deploy/crds)", resource.plural);
    }
    MEDLEY_RETURN_IF_ERROR(base::Annotate(list.status(), "list " + resource.plural));
    out << resource.plural << ": readable" << (ns.empty() ? "" : " in " + ns) << "\n";
  }
  return absl::OkStatus();
}

// A question that the service must refuse shows that it answers, and takes the token.
absl::Status Ask(SchedulerClient& scheduler, std::stop_token stop) {
  const absl::Status status = scheduler.Plan({}, std::move(stop)).status();
  return absl::IsInvalidArgument(status) ? absl::OkStatus() : status;
}

absl::Status CheckScheduler(const OperatorOptions& options, base::Clock& clock, base::nanoseconds patience,
                            std::ostream& out, const std::stop_token& stop) {
  SchedulerClient scheduler({.address = options.scheduler_address,
                             .seed = options.seed,
                             .token = options.scheduler_token,
                             .tls = options.scheduler_tls},
                            clock);
  const base::SteadyTime deadline = clock.Steady() + patience;
  absl::Status answer = Ask(scheduler, stop);
  while (IsSchedulerAway(answer) && clock.Steady() < deadline && clock.SleepFor(kPause, stop))
    answer = Ask(scheduler, stop);
  MEDLEY_RETURN_IF_ERROR(answer);
  scheduler.Start([] {});
  while (scheduler.catalog() == nullptr && clock.Steady() < deadline && clock.SleepFor(kPause / 10, stop)) continue;
  const auto catalog = scheduler.catalog();
  scheduler.Stop();
  if (catalog == nullptr) return base::DeadlineExceeded("{} told no prices", options.scheduler_address);
  out << "scheduling service " << options.scheduler_address << ": " << catalog->entries.size() << " prices, revision "
      << catalog->revision << "\n";
  return absl::OkStatus();
}

}  // namespace

absl::Status Check(const OperatorOptions& options, kube::Client& client, base::Clock& clock,
                   base::nanoseconds patience, std::ostream& out, std::stop_token stop) {
  MEDLEY_RETURN_IF_ERROR(CheckApiServer(options, client, out));
  return CheckScheduler(options, clock, patience, out, stop);
}

}  // namespace medley::ops
