#include "cli/dashboard/dashboard.h"

#include <utility>

#include "cli/cluster/top_view.h"
#include "cli/dashboard/job_json.h"
#include "common/base/embedded_file.h"
#include "common/base/mutex.h"
#include "common/base/secrets.h"
#include "common/base/status.h"
#include "common/http_server/local_caller.h"
#include "common/http_server/server.h"
#include "operator/api/resources.h"

MEDLEY_EMBEDDED(dashboard_files);

namespace medley::cli {
namespace {

using http_server::HttpRequest;
using http_server::HttpResponse;
using kube::Json;

constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
constexpr std::string_view kJobs = "/api/jobs/";
constexpr base::nanoseconds kFresh = base::seconds(1);

std::string TypeOf(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  return "text/javascript; charset=utf-8";
}

HttpResponse Refuse(int code, const std::string& message) {
  return {.code = code, .body = Json{{"message", message}}.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

HttpResponse Refuse(const absl::Status& status) {
  int code = 502;
  if (status.code() == absl::StatusCode::kNotFound) code = 404;
  if (status.code() == absl::StatusCode::kPermissionDenied) code = 403;
  if (status.code() == absl::StatusCode::kInvalidArgument) code = 400;
  return Refuse(code, base::Message(status));
}

HttpResponse Reply(const absl::StatusOr<std::string>& json) {
  if (!json.ok()) return Refuse(json.status());
  return {.body = *json};
}

// In constant time, so that the time does not reveal how much of a path was right.
bool BeginsWith(std::string_view path, std::string_view secret) {
  if (path.size() < secret.size()) return false;
  int difference = 0;
  for (size_t i = 0; i < secret.size(); ++i) difference |= path[i] ^ secret[i];
  return difference == 0;
}

}  // namespace

class Dashboard::Rep {
 public:
  Rep(Cluster cluster, base::Clock& clock, DashboardOptions options)
      : cluster_(std::move(cluster)),
        clock_(clock),
        options_(std::move(options)),
        server_({.port = options_.port, .max_connections = 32, .max_body = 0},
                [this](const HttpRequest& request) { return Respond(request); }) {}

  absl::Status Start() { return server_.Start(); }
  void Stop() {
    cluster_.client->Shutdown();
    server_.Stop();
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}{}", server_.port(), root_); }

 private:
  HttpResponse Respond(const HttpRequest& request) {
    if (!http_server::HasLocalHost(request)) return Refuse(421, "this page is served only as localhost");
    if (!http_server::HasOwnOrigin(request)) return Refuse(403, "this page is not for other sites");
    if (request.method != "GET" && request.method != "HEAD") return Refuse(405, "GET only");
    if (!BeginsWith(request.path, root_)) {
      return Refuse(403, "open the whole address that the command has printed: its long number is the permission");
    }
    const std::string path = request.path.substr(root_.size() - 1);
    if (path == "/api/overview") return Reply(Overview());
    if (path == "/api/prices") return Reply(Prices(request));
    if (path.starts_with(kJobs)) {
      const std::string_view rest = std::string_view(path).substr(kJobs.size());
      const size_t slash = rest.find('/');
      if (slash == std::string_view::npos) return Refuse(404, "name a job: api/jobs/NAMESPACE/NAME");
      return Reply(Job({std::string(rest.substr(0, slash)), std::string(rest.substr(slash + 1))}));
    }
    for (const base::EmbeddedFile& file : medley_embedded_dashboard_files()) {
      if (path.substr(1) != file.name && (path != "/" || file.name != "index.html")) continue;
      return {.content_type = TypeOf(file.name),
              .headers = {{"Content-Security-Policy", kPolicy}, {"Referrer-Policy", "no-referrer"}},
              .body = std::string(file.bytes)};
    }
    return Refuse(404, "no such path: " + path);
  }

  // All pages share one reading of the cluster, however many are open.
  absl::StatusOr<std::string> Overview() {
    base::MutexLock lock(mutex_);
    const base::SteadyTime now = clock_.Steady();
    if (overview_.empty() || now - read_at_ >= kFresh) {
      MEDLEY_ASSIGN_OR_RETURN(overview_, ReadOverview());
      read_at_ = now;
    }
    return overview_;
  }

  absl::StatusOr<std::string> ReadOverview() {
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<kube::Object> jobs,
                            ListAll(cluster_, ops::TrainingJobs(), {.ns = options_.all_namespaces ? "" : cluster_.ns}));
    const auto pools = ListAll(cluster_, ops::ResourcePools(), {});
    const bool hidden = pools.status().code() == absl::StatusCode::kPermissionDenied;
    if (!pools.ok() && !hidden) return pools.status();
    TopView view = TakeTop(jobs, hidden ? std::vector<kube::Object>() : *pools, clock_.Now());
    view.pools_known = !hidden;
    return TopJson(view);
  }

  absl::StatusOr<std::string> Job(const kube::Key& key) {
    if (!options_.all_namespaces && key.ns != cluster_.ns) {
      return base::NotFound("this page shows the namespace {} only; start medley dashboard with -A for all",
                            cluster_.ns);
    }
    MEDLEY_ASSIGN_OR_RETURN(const Story story, ReadStory({cluster_.client, key.ns}, key.name));
    return JobJson(story, clock_.Now());
  }

  absl::StatusOr<std::string> Prices(const HttpRequest& request) {
    if (options_.price_service.address.empty()) {
      return base::NotFound(
          "the history of prices needs the scheduling service: start medley dashboard with --server HOST:PORT of its "
          "gRPC port");
    }
    std::optional<base::WallTime> since;
    if (const std::string text = request.Query("since"); !text.empty()) {
      MEDLEY_ASSIGN_OR_RETURN(since, base::ParseTime(text));
    }
    return ListPricesJson(options_.price_service, request.Query("type"), since);
  }

  const Cluster cluster_;
  base::Clock& clock_;
  const DashboardOptions options_;
  const std::string root_ = "/" + base::RandomToken().substr(0, 32) + "/";  // the path of the page
  base::Mutex mutex_;
  std::string overview_ ABSL_GUARDED_BY(mutex_);
  base::SteadyTime read_at_ ABSL_GUARDED_BY(mutex_){};
  http_server::HttpServer server_;  // last: its threads use the rest
};

Dashboard::Dashboard(Cluster cluster, base::Clock& clock, DashboardOptions options)
    : rep_(std::make_unique<Rep>(std::move(cluster), clock, std::move(options))) {}
Dashboard::~Dashboard() { Stop(); }
absl::Status Dashboard::Start() { return rep_->Start(); }
void Dashboard::Stop() { rep_->Stop(); }
std::string Dashboard::url() const { return rep_->url(); }

}  // namespace medley::cli
