// A blocking HTTP request for tests.
#pragma once

#include <string>

namespace medley::sched {

struct ClientAnswer {
  long code = 0;  // 0: no answer
  std::string body;
};

// GET without a body, POST with one.
ClientAnswer Http(int port, const std::string& path, const std::string* body = nullptr);

}  // namespace medley::sched
