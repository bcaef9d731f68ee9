// The parsed command line options of medley-planner.
#pragma once

#include <optional>
#include <string>

namespace medley::reproductions::app {

struct PlannerProgramOptions {
  std::string listen = "127.0.0.1:7072";
  std::string planner = "auto";
  std::string port_file;
  int max_concurrent = 4;
  int max_waiting = 16;
  int max_message_kib = 32768;
  double grace_seconds = 10;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  std::string token_file;
  bool insecure = false;
  std::string log_level = "info";
  bool list = false;   // print the planners instead of serving
  std::string answer;  // file with one request to answer instead of serving
};

// Parses the command line into `options`. A returned value is the exit code: the program must exit because it printed
// the help or an error.
std::optional<int> ParseOptions(int argc, char** argv, PlannerProgramOptions& options);

}  // namespace medley::reproductions::app
