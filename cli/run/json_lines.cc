#include "cli/run/json_lines.h"

#include <nlohmann/json.hpp>

namespace medley::cli {
namespace {

using LineJson = nlohmann::ordered_json;

std::string Line(const LineJson& json) { return json.dump(-1, ' ', false, LineJson::error_handler_t::replace) + "\n"; }

}  // namespace

std::string AddressJson(const std::string& name, const std::string& address) {
  return Line({{"event", "address"}, {"name", name}, {"address", address}});
}

std::string MessageJson(const std::string& text) { return Line({{"event", "message"}, {"text", text}}); }

std::string ProgressJson(const Snapshot& view, double seconds) {
  return Line({{"event", "progress"},
               {"seconds", seconds},
               {"percent", view.progress_percent},
               {"samples", view.observed.samples},
               {"samplesTotal", view.observed.samples_total},
               {"throughput", view.observed.throughput},
               {"loss", view.observed.loss},
               {"spentUsd", view.cost.spent_usd}});
}

std::string ResultJson(const RunResult& result) {
  const Snapshot& last = result.last;
  LineJson json = {{"event", "result"},
                   {"exitStatus", result.exit_status},
                   {"phase", last.complete ? "Complete"
                             : last.failed ? "Failed"
                                           : last.phase},
                   {"reason", last.failure},
                   {"error", result.failures.empty() ? "" : result.failures.front()},
                   {"failures", result.failures},
                   {"logs", LineJson::array()},
                   {"samples", last.observed.samples},
                   {"samplesTotal", last.observed.samples_total},
                   {"seconds", result.seconds},
                   {"metrics", LineJson::object()},
                   {"spentUsd", last.cost.spent_usd},
                   {"model", result.model.string()}};
  for (const std::filesystem::path& log : result.logs) json["logs"].push_back(log.string());
  for (const auto& [name, value] : last.observed.metrics) json["metrics"][name] = value;
  return Line(json);
}

}  // namespace medley::cli
