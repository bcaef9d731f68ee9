#include "scheduler-service/serve_planner/planner_service.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/planning.h"
#include "common/rpc/decode.h"
#include "common/rpc/status.h"
#include "medley/planner/v1/planner.grpc.pb.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/options/check_options.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/stages.h"
#include "scheduler-service/serve_grpc/cancel_watcher.h"

namespace medley::sched {
namespace {

namespace pb = medley::planner::v1;

constexpr double kMaxBudgetSeconds = 3600;
// The scheduling service fills in profiles, so its questions may be larger than the requests of its clients.
constexpr int kMaxObjects = 10 * rpc::kMaxObjectsOfMessage;

// How often a search may send a candidate: at once for the first kBurst, then kRate a second. So a search of an hour
// stays below the 10,000 candidates after which the scheduling service ends a call.
constexpr double kBurst = 100;
constexpr double kRate = 2;

absl::Status WritePlan(const Question& question, const model::ExecutionPlan& plan, pb::SolveResponse& out) {
  if (question.supply() == Supply::kDevices) {
    model::ToProto(plan, *out.mutable_plan());
    return absl::OkStatus();
  }
  const Problem& problem = question.units();
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<StageChoice> stages, StagesOf(problem, plan));
  for (size_t i = 0; i < stages.size(); ++i) {
    const StageChoice& stage = stages[i];
    if (i > 0 && stages[i - 1].type == stage.type) out.add_cuts(stage.first);
    for (int layer = stage.first; layer <= stage.last; ++layer) out.add_schedule(problem.type(stage.type).name);
    out.add_units(stage.units);
  }
  return absl::OkStatus();
}

// How many candidates a search may send now. One thread.
class Allowance {
 public:
  explicit Allowance(const base::Clock& clock) : clock_(clock), filled_(clock.Steady()) {}
  bool Take() {
    const base::SteadyTime now = clock_.Steady();
    places_ = std::min(kBurst, places_ + kRate * base::ToSeconds(now - filled_));
    filled_ = now;
    if (places_ < 1) return false;  // the last message of the call has the best plan
    places_ -= 1;
    return true;
  }

 private:
  const base::Clock& clock_;
  double places_ = kBurst;
  base::SteadyTime filled_;
};

using Send = std::function<void(const pb::SolveResponse&)>;

// Sends the plans of a search that are better than those before: cheaper, or on devices what the planner reports. One
// thread.
class IncumbentStream {
 public:
  IncumbentStream(const Question& question, const base::Clock& clock, Send send)
      : question_(question), allowance_(clock), send_(std::move(send)) {}

  void Offer(const model::ExecutionPlan& plan, const Figures& figures) {
    const bool units = question_.supply() == Supply::kUnits;
    if ((units && figures.usd >= least_) || !allowance_.Take()) return;
    least_ = figures.usd;
    pb::SolveResponse response;
    if (!WritePlan(question_, plan, response).ok()) return;
    send_(response);
    base::log::Debug("sent a candidate",
                     {{"model", question_.request().model.name}, {"usd", fmt::format("{:.6g}", figures.usd)}});
  }

 private:
  const Question& question_;
  Allowance allowance_;
  const Send send_;
  double least_ = kInfinity;
};

class PlannerService final : public pb::PlannerService::Service {
 public:
  PlannerService(const Registry& planners, Admission& admission, const base::Clock& clock, std::stop_token stop,
                 PlannerServiceOptions options)
      : planners_(planners),
        admission_(admission),
        clock_(clock),
        stop_(std::move(stop)),
        options_(std::move(options)) {
    const auto* const service = pb::SolveRequest::descriptor()->file()->FindServiceByName("PlannerService");
    // gRPC's own handler parses the message before anything of ours is called. This one reads it after the token was
    // checked and a place is free, and bounds its objects.
    MarkMethodStreamed(service->FindMethodByName("Solve")->index(),
                       new grpc::internal::SplitServerStreamingHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
                           [this](grpc::ServerContext* context, Streamer* streamer) {
                             return rpc::ToGrpc(Run(*context, *streamer));
                           }));
  }

 private:
  using Streamer = grpc::ServerSplitStreamer<grpc::ByteBuffer, grpc::ByteBuffer>;

  absl::Status Run(grpc::ServerContext& context, Streamer& streamer) {
    const auto authorization = context.client_metadata().find("authorization");
    const bool shown = authorization != context.client_metadata().end();
    if (!options_.tokens.Allow(shown ? std::string_view(authorization->second.data(), authorization->second.size())
                                     : "")) {
      return base::Unauthenticated("the call has no valid bearer token");
    }
    CancelWatcher::Watch watch(cancelled_, context, stop_);
    MEDLEY_ASSIGN_OR_RETURN(const Admission::Permit permit,
                            admission_.Enter(CostClass::kExpensive, watch.token(), base::SteadyTime::max()));
    pb::SolveRequest request;
    MEDLEY_RETURN_IF_ERROR(Receive(streamer, watch, request));
    const auto send = [&](const pb::SolveResponse& response) {
      const grpc::Slice bytes(response.SerializeAsString());
      streamer.Write(grpc::ByteBuffer(&bytes, 1));  // when the caller has closed the call, the search is cancelled
    };
    pb::SolveResponse response;
    MEDLEY_RETURN_IF_ERROR(Solve(request, watch.token(), send, response));
    response.set_done(true);
    send(response);
    return absl::OkStatus();
  }

  absl::Status Receive(Streamer& streamer, CancelWatcher::Watch& watch, pb::SolveRequest& request) const {
    watch.CancelAt(clock_.Steady() + options_.receive);
    grpc::ByteBuffer buffer;
    grpc::Slice whole;
    if (!streamer.Read(&buffer) || !buffer.DumpToSingleSlice(&whole).ok()) {
      return base::ResourceExhausted(
          "the message cannot be received: it is larger than this planner accepts, or incomplete");
    }
    watch.CancelAt(base::SteadyTime::max());
    return rpc::Decode({reinterpret_cast<const char*>(whole.begin()), whole.size()}, request, kMaxObjects);
  }

  absl::Status Solve(const pb::SolveRequest& in, std::stop_token stop, Send send, pb::SolveResponse& out) const {
    const double seconds = in.budget_seconds();
    if (!(seconds > 0 && seconds <= kMaxBudgetSeconds)) {
      return base::InvalidArgument("budgetSeconds: must be above 0 and at most {}, is {}", kMaxBudgetSeconds, seconds);
    }
    MEDLEY_ASSIGN_OR_RETURN(model::PlanRequest request, model::FromProto(in.request()));
    const Supply supply = SupplyOf(request);
    if (supply == Supply::kDevices) MEDLEY_RETURN_IF_ERROR(model::Validate(request));
    const Planner& planner = PlannerFor(request.planner.name, supply);
    MEDLEY_RETURN_IF_ERROR(CheckOptions(planner.name(), planner.options(), request.planner.options));
    MEDLEY_ASSIGN_OR_RETURN(const Question question, Question::Compile(std::move(request)));
    const base::SteadyTime begin = clock_.Steady();
    IncumbentStream incumbents(question, clock_, std::move(send));
    const Budget budget(
        clock_, begin + base::FromSeconds(seconds), std::move(stop),
        [&](const model::ExecutionPlan& plan, const Figures& figures) { incumbents.Offer(plan, figures); });
    MEDLEY_ASSIGN_OR_RETURN(const Candidate found, planner.Solve(question, in.seed(), budget));
    base::log::Info("solved", {{"model", question.request().model.name},
                               {"planner", std::string(planner.name())},
                               {"seconds", fmt::format("{:.6f}", base::ToSeconds(clock_.Steady() - begin))},
                               {"found", found.plan ? "true" : "false"}});
    if (!found.plan) return absl::OkStatus();
    const bool usd = supply == Supply::kUnits && question.request().objective == model::Objective::kCost;
    const bool claims = usd && std::isfinite(found.lower_bound) && found.lower_bound > 0;
    out.set_claimed_lower_bound_usd(claims ? found.lower_bound : 0);
    return WritePlan(question, *found.plan, out);
  }

  const Planner& PlannerFor(std::string_view name, Supply supply) const {
    const Planner* planner = planners_.Find(name, supply);
    if (planner == nullptr)
      planner = planners_.Find(supply == Supply::kUnits ? std::string_view(options_.default_planner) : "auto", supply);
    MEDLEY_CHECK(planner != nullptr, "the default planner is not in the registry");
    return *planner;
  }

  const Registry& planners_;
  Admission& admission_;
  const base::Clock& clock_;
  const std::stop_token stop_;
  const PlannerServiceOptions options_;
  CancelWatcher cancelled_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakePlannerService(const Registry& planners, Admission& admission,
                                                  const base::Clock& clock, std::stop_token stop,
                                                  PlannerServiceOptions options) {
  return std::make_unique<PlannerService>(planners, admission, clock, std::move(stop), std::move(options));
}

}  // namespace medley::sched
