// Answers GET /SECRET with the list of the regular files below a folder, and GET /SECRET/PATH with one of them.
//
// The list is {"files": [{"path", "bytes", "xxh3": 32 hexadecimal digits}]}, ordered by path. Thread-safe. Owner: the
// role.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "common/base/clock.h"
#include "common/http_server/message.h"

namespace medley::worker {

class FileServer {
 public:
  // `secret` must not be empty.
  FileServer(std::filesystem::path folder, std::string secret, const base::Clock& clock);

  // 404 for every path that does not begin with the secret, and for what the list does not have.
  http_server::HttpResponse Respond(const http_server::HttpRequest& request);
  // When the last request with the secret came; at first when the server was made.
  base::SteadyTime last_request() const { return base::SteadyTime(base::nanoseconds(last_request_)); }

 private:
  absl::StatusOr<std::string> List() const;

  const std::filesystem::path folder_;
  const std::string secret_;
  const base::Clock& clock_;
  std::atomic<int64_t> last_request_;
};

}  // namespace medley::worker
