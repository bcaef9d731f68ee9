#include "tests/integration/scheduler/http_client.h"

#include <fmt/core.h>

#include "common/http_client/connection.h"

namespace medley::sched {

ClientAnswer Http(int port, const std::string& path, const std::string* body) {
  http_client::Connection connection({.user_agent = "medley-test"});
  http_client::Request request{.method = body == nullptr ? "GET" : "POST",
                               .url = fmt::format("http://127.0.0.1:{}{}", port, path),
                               .headers = {{"Content-Type", "application/json"}},
                               .timeout = std::chrono::seconds(60)};
  if (body != nullptr) request.body = *body;
  http_client::Result result = connection.Run(request, path, {});
  return {result.status.ok() ? result.response.code : 0, std::move(result.response.body)};
}

}  // namespace medley::sched
