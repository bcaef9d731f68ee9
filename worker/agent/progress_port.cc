#include "worker/agent/progress_port.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/document/parse.h"
#include "common/http_server/local_caller.h"
#include "common/http_server/server.h"

namespace medley::worker {
namespace {

constexpr int64_t kMostBody = 64 << 10;  // bytes

http_server::HttpResponse Answer(int code, const std::string& text) {
  http_server::HttpResponse response;
  response.code = code;
  response.content_type = "text/plain";
  response.body = text.empty() ? "" : text + "\n";
  return response;
}

http_server::HttpResponse Take(const http_server::HttpRequest& request,
                               const std::function<void(const model::StepReport&)>& report) {
  if (!http_server::HasLocalHost(request) || !request.origin.empty()) return Answer(403, "for the program only");
  if (request.path != "/v1/progress") return Answer(404, "no such path; reports are posted to /v1/progress");
  if (request.method != "POST") return Answer(405, "reports are posted");
  const auto read = ReadReport(request.body);
  if (!read.ok()) return Answer(400, base::Message(read.status()));
  report(*read);
  return Answer(204, "");
}

}  // namespace

absl::StatusOr<model::StepReport> ReadReport(std::string_view body) {
  MEDLEY_ASSIGN_OR_RETURN(const nlohmann::json json, document::ParseJson(body));
  const auto step = json.is_object() ? json.find("step") : json.end();
  if (!json.is_object() || step == json.end() || !step->is_number_integer()) {
    return base::InvalidArgument(R"(a report must be an object with an integer, as {{"step": 12}})");
  }
  model::StepReport report;
  report.step = step->get<int64_t>();
  if (report.step < 1) return base::InvalidArgument("step: must be 1 or more, is {}", report.step);
  const auto loss = json.find("loss");
  if (loss == json.end() || loss->is_null()) return report;
  if (!loss->is_number() || !std::isfinite(loss->get<double>())) return base::InvalidArgument("loss: must be a number");
  report.loss = loss->get<double>();
  return report;
}

ProgressPort::ProgressPort(std::unique_ptr<http_server::HttpServer> server) : server_(std::move(server)) {}
ProgressPort::~ProgressPort() = default;
int ProgressPort::port() const { return server_->port(); }

absl::StatusOr<std::unique_ptr<ProgressPort>> ProgressPort::Open(std::function<void(const model::StepReport&)> report) {
  http_server::HttpServer::Options options;
  options.max_connections = 16;
  options.max_body = kMostBody;
  auto server = std::make_unique<http_server::HttpServer>(
      std::move(options),
      [report = std::move(report)](const http_server::HttpRequest& request) { return Take(request, report); });
  MEDLEY_RETURN_IF_ERROR(server->Start());
  return std::unique_ptr<ProgressPort>(new ProgressPort(std::move(server)));
}

}  // namespace medley::worker
