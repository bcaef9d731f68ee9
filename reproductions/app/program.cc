#include "reproductions/app/program.h"

#include <grpcpp/impl/codegen/service_type.h>

#include <cstdio>
#include <utility>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/plan_result.h"
#include "common/model/text.h"
#include "common/rpc/server.h"
#include "medley/scheduler/v1/scheduler.pb.h"
#include "reproductions/heterog/agent.h"
#include "reproductions/heterog/baselines.h"
#include "reproductions/heterps/heterps_planners.h"
#include "reproductions/tapp/baselines.h"
#include "reproductions/tapp/tapp_planner.h"
#include "reproductions/thesis/groups_planner.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/list_proto.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/process/address.h"
#include "scheduler-service/serve_planner/planner_service.h"

namespace medley::reproductions::app {
namespace {

constexpr base::seconds kMaxWait{1};  // of a request in the queue: the service that asks has a plan of its own
constexpr base::seconds kLastPlanning{5};
constexpr base::seconds kLastCalls{1};

// Errors: InvalidArgument, FailedPrecondition.
absl::Status CheckPlannerSecurity(const PlannerProgramOptions& options, const sched::Address& address) {
  const bool tls = !options.tls_cert.empty();
  if (tls == options.tls_key.empty()) {
    return base::InvalidArgument("--tls-cert and --tls-key must be given together");
  }
  if (!tls && !options.tls_client_ca.empty()) return base::InvalidArgument("--tls-client-ca needs --tls-cert");
  return sched::CheckExposure(address, "--listen", options.insecure || (tls && !options.token_file.empty()));
}

rpc::ServerOptions MakePlannerServerOptions(const PlannerProgramOptions& options, const sched::Address& address) {
  rpc::ServerOptions out;
  out.host = address.host.empty() ? "::" : address.host;  // of both families
  out.port = address.port;
  out.max_message_bytes = options.max_message_kib << 10;
  if (!options.tls_cert.empty()) out.tls = {options.tls_cert, options.tls_key, options.tls_client_ca};
  return out;
}

// The planners of the scheduling service, and those of the reproductions.
sched::Registry AllPlanners() {
  sched::Registry planners = sched::BuiltinPlanners();
  for (auto& planner : heterps::MakeHeterpsPlanners()) planners.Add(std::move(planner));
  planners.Add(thesis::MakeGroupsPlanner());
  for (auto& planner : tapp::MakeBaselines()) planners.Add(std::move(planner));
  planners.Add(tapp::MakeTapp());
  planners.Add(tapp::MakeTapp({.paper = true, .polish = 0}));
  for (auto& planner : heterog::MakeGraphAgentPlanners()) planners.Add(std::move(planner));
  for (auto& planner : heterog::MakeBaselines()) planners.Add(std::move(planner));
  return planners;
}

}  // namespace

absl::Status AnswerOnce(const std::string& file) {
  constexpr int64_t kMaxBytes = int64_t{16} << 20;
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file == "-" ? "/dev/stdin" : file, kMaxBytes));
  scheduler::v1::PlanRequest message;
  MEDLEY_RETURN_IF_ERROR(model::ParseText(text, message));
  MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest request, model::FromProto(message));
  const base::SystemClock clock;
  MEDLEY_ASSIGN_OR_RETURN(const model::PlanResult result, sched::MakePlan(request, {}, AllPlanners(), clock, {}));
  scheduler::v1::PlanResponse answer;
  model::ToProto(result, answer);
  std::fputs(model::ToJson(answer).c_str(), stdout);
  return absl::OkStatus();
}

void PrintPlanners() {
  scheduler::v1::ListPlannersResponse list;
  sched::ToProto(AllPlanners(), list);
  std::fputs(model::ToJson(list).c_str(), stdout);
}

absl::Status Serve(const PlannerProgramOptions& options, const std::function<void()>& wait_for_end) {
  MEDLEY_ASSIGN_OR_RETURN(const sched::Address address, sched::ParseAddress(options.listen, "--listen"));
  MEDLEY_RETURN_IF_ERROR(CheckPlannerSecurity(options, address));
  const sched::Registry planners = AllPlanners();
  const bool units = planners.Find(options.planner, sched::Supply::kUnits) != nullptr;
  if (!units && planners.Find(options.planner, sched::Supply::kDevices) == nullptr) {
    MEDLEY_RETURN_IF_ERROR(planners.CheckName(options.planner, sched::Supply::kUnits, "--planner"));
  }
  sched::PlannerServiceOptions service_options{.default_planner = units ? options.planner : "auto", .tokens = {}};
  if (!options.token_file.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(service_options.tokens, sched::BearerTokens::Load(options.token_file));
  }
  const base::SystemClock clock;
  std::stop_source stop;
  sched::Admission admission({.max_running = options.max_concurrent,
                              .max_expensive = options.max_concurrent,
                              .max_waiting = options.max_waiting,
                              .max_wait = kMaxWait},
                             nullptr, clock);
  const auto service =
      sched::MakePlannerService(planners, admission, clock, stop.get_token(), std::move(service_options));
  MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<rpc::Server> server,
                          rpc::Server::Start(MakePlannerServerOptions(options, address), {service.get()}));
  if (!options.port_file.empty()) {
    MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(options.port_file, fmt::format("{{\"grpc\": {}}}\n", server->port())));
  }
  base::log::Info("serving", {{"grpc", server->address()}, {"planner", options.planner}});
  wait_for_end();

  base::log::Info("stopping", {{"running", std::to_string(admission.running())}});
  admission.Close();
  admission.WaitIdle(base::FromSeconds(options.grace_seconds));
  stop.request_stop();
  admission.WaitIdle(kLastPlanning);
  server->Stop(kLastCalls);
  base::log::Info("stopped");
  return absl::OkStatus();
}

}  // namespace medley::reproductions::app
