#include "scheduler-service/serve_rest/routes.h"

#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/model/convert.h"

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;

template <typename In, typename Out>
Route MakeRoute(Handlers& handlers, std::string method, std::string path, std::string rpc,
                absl::Status (Handlers::*handler)(const In&, Call&, Out&)) {
  auto answer = [&handlers, handler, rpc](std::string_view text, Call& call, std::string& body) -> absl::Status {
    In in;
    Out out;
    if (absl::Status status = model::ParseText(text, in); !status.ok()) {
      handlers.record().Answered(rpc, call, status, 0);
      return status;
    }
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
    absl::Status status = model::ParseText(text, request);
    if (status.ok()) {
      auto normal = model::YamlToJson(text);
      status = normal.status();
      if (normal.ok()) body = *std::move(normal);
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

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 && HexDigit(text[i + 2]) >= 0) {
      out += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace

std::vector<Route> MakeRoutes(Handlers& handlers) {
  std::vector<Route> routes;
  routes.push_back(MakeRoute(handlers, "POST", "/v1/plan", "Plan", &Handlers::Plan));
  routes.push_back(MakeRoute(handlers, "POST", "/v1/pareto", "Pareto", &Handlers::Pareto));
  routes.push_back(MakeRoute(handlers, "POST", "/v1/provision", "Provision", &Handlers::Provision));
  routes.push_back(MakeRoute(handlers, "POST", "/v1/evaluate", "Evaluate", &Handlers::Evaluate));
  routes.push_back(MakeRoute(handlers, "POST", "/v1/profile", "Profile", &Handlers::Profile));
  routes.push_back(MakeRoute(handlers, "POST", "/v1/observations", "Observe", &Handlers::Observe));
  routes.push_back(Normalize(handlers));
  routes.push_back(MakeRoute(handlers, "GET", "/v1/hardware", "ListHardware", &Handlers::ListHardware));
  routes.push_back(MakeRoute(handlers, "GET", "/v1/planners", "ListPlanners", &Handlers::ListPlanners));
  routes.push_back(MakeRoute(handlers, "GET", "/v1/catalog", "GetCatalog", &Handlers::GetCatalog));
  routes.push_back(MakeRoute(handlers, "GET", "/v1/prices", "ListPrices", &Handlers::ListPrices));
  return routes;
}

absl::StatusOr<std::string> QueryToJson(std::string_view query) {
  nlohmann::json out = nlohmann::json::object();
  for (size_t begin = 0; begin < query.size();) {
    const size_t end = std::min(query.find('&', begin), query.size());
    const std::string_view part = query.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty()) continue;
    const size_t equals = std::min(part.find('='), part.size());
    const std::string name = Unescape(part.substr(0, equals));
    if (name.empty()) return base::InvalidArgument("the query has a parameter without a name");
    if (out.contains(name)) return base::InvalidArgument("{}: appears twice in the query", name);
    const std::string value = Unescape(part.substr(std::min(equals + 1, part.size())));
    if (!value.empty()) out[name] = value;
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace medley::sched
