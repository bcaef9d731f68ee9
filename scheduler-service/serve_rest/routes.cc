#include "scheduler-service/serve_rest/routes.h"

#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/base/url.h"
#include "common/document/parse.h"
#include "common/model/text.h"

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;

// More than any request needs that fits into a body. The tree of a text of this many values takes about 30 MiB.
constexpr document::Limits kRequestLimits{.depth = 32, .values = 200'000};

// Reads `text` in one of the few places for it, so that only few requests have a tree of their text at a time.
absl::Status Parse(Handlers& handlers, const std::string& rpc, std::string_view text, const Call& call,
                   google::protobuf::Message& in) {
  absl::Status status;
  if (const auto permit = handlers.parsing().Enter(CostOfReading(text.size()), call.stop, call.deadline);
      !permit.ok()) {
    status = permit.status();
  } else {
    status = model::ParseText(text, in, kRequestLimits);
  }
  handlers.GiveMemoryBack(text.size());
  if (!status.ok()) handlers.record().Answered(rpc, call, status, 0);
  return status;
}

template <typename In, typename Out>
Route MakeRoute(Handlers& handlers, std::string method, std::string path, std::string rpc,
                absl::Status (Handlers::*handler)(const In&, Call&, Out&)) {
  auto answer = [&handlers, handler, rpc](std::string_view text, Call& call, std::string& body) -> absl::Status {
    In in;
    Out out;
    MEDLEY_RETURN_IF_ERROR(Parse(handlers, rpc, text, call, in));
    MEDLEY_RETURN_IF_ERROR((handlers.*handler)(in, call, out));
    body = model::ToJson(out);
    return absl::OkStatus();
  };
  return {std::move(method), std::move(path), std::move(rpc), "", In::descriptor(), Out::descriptor(), answer};
}

// Converts YAML to JSON, for clients that read only JSON, such as the web page.
Route Normalize(Handlers& handlers) {
  auto answer = [&handlers](std::string_view text, Call& call, std::string& body) -> absl::Status {
    pb::PlanRequest request;
    MEDLEY_RETURN_IF_ERROR(Parse(handlers, "Normalize", text, call, request));
    absl::Status status;
    if (const auto permit = handlers.parsing().Enter(CostOfReading(text.size()), call.stop, call.deadline);
        !permit.ok()) {
      status = permit.status();
    } else {
      const auto tree = document::Parse(text, kRequestLimits);
      status = tree.status();
      if (tree.ok()) body = tree->dump();
    }
    call.cached = status.ok();
    handlers.record().Answered("Normalize", call, status, 0);
    return status;
  };
  return {"POST",
          "/v1/normalize",
          "Normalize",
          "Returns a planning request as JSON after checking it for unknown and misplaced fields.",
          pb::PlanRequest::descriptor(),
          pb::PlanRequest::descriptor(),
          answer};
}

}  // namespace

std::vector<Route> MakeRoutes(Handlers& handlers) {
  std::vector<Route> routes;
  routes.push_back(MakeRoute(handlers, "POST", "/v1/plan", "Plan", &Handlers::Plan));
  routes.push_back(MakeRoute(handlers, "POST", "/v1/pareto", "Pareto", &Handlers::Pareto));
  routes.push_back(MakeRoute(handlers, "POST", "/v1/provision", "Provision", &Handlers::Provision));
  routes.push_back(MakeRoute(handlers, "POST", "/v1/evaluate", "Evaluate", &Handlers::Evaluate));
  routes.push_back(MakeRoute(handlers, "POST", "/v1/simulate", "Simulate", &Handlers::Simulate));
  routes.push_back(MakeRoute(handlers, "POST", "/v1/profile", "Profile", &Handlers::Profile));
  routes.push_back(MakeRoute(handlers, "POST", "/v1/observations", "Observe", &Handlers::Observe));
  routes.push_back(Normalize(handlers));
  routes.push_back(MakeRoute(handlers, "GET", "/v1/hardware", "ListHardware", &Handlers::ListHardware));
  routes.push_back(MakeRoute(handlers, "GET", "/v1/planners", "ListPlanners", &Handlers::ListPlanners));
  routes.push_back(MakeRoute(handlers, "GET", "/v1/catalog", "GetCatalog", &Handlers::GetCatalog));
  routes.push_back(MakeRoute(handlers, "GET", "/v1/prices", "ListPrices", &Handlers::ListPrices));
  return routes;
}

absl::StatusOr<std::string> QueryToJson(const base::QueryFields& query) {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [name, value] : query) {
    if (name.empty()) return base::InvalidArgument("the query has a parameter without a name");
    if (out.contains(name)) return base::InvalidArgument("{}: appears twice in the query", name);
    if (!value.empty()) out[name] = value;
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace medley::sched
