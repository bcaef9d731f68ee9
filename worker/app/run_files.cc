#include <charconv>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/http_server/server.h"
#include "worker/app/export_job.h"
#include "worker/app/roles.h"
#include "worker/file_server/file_server.h"
#include "worker/object_files/open_volume.h"

namespace medley::worker {
namespace {

constexpr base::nanoseconds kIdle = base::seconds(600);

absl::StatusOr<std::string> Required(const GetVariable& get, const char* name) {
  const std::optional<std::string> value = get(name);
  if (!value || value->empty()) return base::InvalidArgument("{} is not set", name);
  return *value;
}

absl::StatusOr<int> Port(const GetVariable& get) {
  const std::string text = get("MEDLEY_LISTEN_PORT").value_or("7070");
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error == std::errc() && end == text.data() + text.size() && port > 0 && port < 65536) return port;
  return base::InvalidArgument("MEDLEY_LISTEN_PORT: '{}' is not a port", text);
}

}  // namespace

absl::StatusOr<int> RunFilesRole(const GetVariable& get, base::Clock& clock, const Signals& signals) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string folder, Required(get, "MEDLEY_CHECKPOINT_DIR"));
  MEDLEY_ASSIGN_OR_RETURN(const std::string secret, Required(get, "MEDLEY_TOKEN"));
  MEDLEY_ASSIGN_OR_RETURN(const std::string host, Required(get, "MEDLEY_POD_IP"));
  MEDLEY_ASSIGN_OR_RETURN(const int port, Port(get));
  MEDLEY_ASSIGN_OR_RETURN(const Volume volume, OpenVolume(folder, get));
  std::filesystem::path model = volume / kExportFolder;
  if (volume.of_objects()) {
    MEDLEY_ASSIGN_OR_RETURN(const std::filesystem::path copy, base::MakeTempDir("medley-model"));
    model = copy / kExportFolder;
    const absl::Status fetched = FetchFolder(volume, volume / kExportFolder, model);
    if (!fetched.ok() && !absl::IsNotFound(fetched)) return fetched;  // without a model the list is empty
  }
  FileServer files(model, secret, clock);
  http_server::HttpServer server({.address = host, .port = port, .max_connections = 8, .max_body = 0},
                                 [&files](const http_server::HttpRequest& request) { return files.Respond(request); });
  MEDLEY_RETURN_IF_ERROR(server.Start());
  base::log::Info("serving files", {{"folder", folder}, {"port", std::to_string(port)}});
  const std::stop_token stop = signals.stop();
  while (!stop.stop_requested() && clock.Steady() - files.last_request() < kIdle) {
    clock.SleepFor(base::seconds(1), stop);
  }
  server.Stop();
  return 0;
}

}  // namespace medley::worker
