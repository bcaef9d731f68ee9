// A file that is embedded in the program.
#pragma once

#include <string>
#include <string_view>

namespace medley::sched {

struct StaticFile {
  std::string path;        // "/app.js"
  std::string type;        // "text/javascript; charset=utf-8"
  std::string_view bytes;  // valid as long as the program runs
};

}  // namespace medley::sched
