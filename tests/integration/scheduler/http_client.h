// A blocking HTTP request for tests.
#pragma once

#include <string>

namespace medley::sched {

struct ClientAnswer {
  int code = 0;  // 0: no response
  std::string body;
};

// Sends GET without a body and POST with one.
ClientAnswer Http(int port, const std::string& path, const std::string* body = nullptr);

}  // namespace medley::sched
