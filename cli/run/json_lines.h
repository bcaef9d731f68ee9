// What `medley run -o json` prints: a JSON object for each line, which `event` says the kind of. Pure.
//
//   {"event":"address","name":"web page of the job","address":"http://..."}
//   {"event":"message","text":"..."}                       what the lines for people say
//   {"event":"progress","seconds":..,"percent":..,"samples":..,"samplesTotal":..,"throughput":..,"loss":..,
//    "spentUsd":..}
//   {"event":"result","exitStatus":..,"phase":..,"reason":..,"error":..,"failures":[..],"logs":[..],"samples":..,
//    "samplesTotal":..,"seconds":..,"metrics":{..},"spentUsd":..,"model":..}      the last line, always
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/run/snapshot.h"

namespace medley::cli {

std::string AddressJson(const std::string& name, const std::string& address);
std::string MessageJson(const std::string& text);
std::string ProgressJson(const Snapshot& view, double seconds);

struct RunResult {
  int exit_status = 0;
  std::vector<std::string> failures;        // the first is the error
  std::vector<std::filesystem::path> logs;  // to look into
  std::filesystem::path model;              // where it is; empty: there is none
  Snapshot last;
  double seconds = 0;
};
std::string ResultJson(const RunResult& result);

}  // namespace medley::cli
