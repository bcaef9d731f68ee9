// A file that is part of the program.
#pragma once

#include <string>
#include <string_view>

namespace medley::sched {

struct StaticFile {
  std::string path;        // "/app.js"
  std::string type;        // "text/javascript; charset=utf-8"
  std::string_view bytes;  // live as long as the program
};

}  // namespace medley::sched
