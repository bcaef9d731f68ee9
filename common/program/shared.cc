#include "common/program/shared.h"

#include <charconv>
#include <map>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/model/model.h"

namespace medley::program {
namespace {

constexpr char kAttribute[] = "shared";

struct Holders {
  int64_t floats = 0;
  std::vector<int> operations;
};

absl::Status ReadShared(const model::Layer& layer, int operation, std::map<std::string, Holders>& found) {
  const auto text = layer.attributes.find(kAttribute);
  if (text == layer.attributes.end()) return absl::OkStatus();
  std::string_view rest = text->second;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    int64_t floats = 0;
    const auto [next, error] = std::from_chars(line.data(), line.data() + line.size(), floats);
    const bool whole = error == std::errc() && floats > 0 && next + 1 < line.data() + line.size() && *next == ' ';
    if (!whole)
      return base::InvalidArgument("operation {}: the shared parameter '{}' is not FLOATS NAME", layer.name, line);
    Holders& holders = found[std::string(next + 1, line.data() + line.size())];
    if (!holders.operations.empty() && holders.floats != floats) {
      return base::InvalidArgument("operation {}: the shared parameter '{}' has {} floats elsewhere", layer.name, line,
                                   holders.floats);
    }
    holders.floats = floats;
    holders.operations.push_back(operation);
  }
  return absl::OkStatus();
}

}  // namespace

bool HasShared(const model::Model& model) {
  for (const model::Layer& layer : model.layers) {
    if (layer.attributes.contains(kAttribute)) return true;
  }
  return false;
}

absl::Status AddShared(const model::Model& model, Program& program) {
  std::map<std::string, Holders> found;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    MEDLEY_RETURN_IF_ERROR(ReadShared(model.layers[i], static_cast<int>(i), found));
  }
  for (const auto& [name, holders] : found) {
    if (holders.operations.size() < 2) continue;
    Shared& shared = program.shared.emplace_back(Shared{.name = name, .floats = holders.floats});
    std::string names;
    for (const int operation : holders.operations) {
      const std::string& holder = model.layers[static_cast<size_t>(operation)].name;
      names += (names.empty() ? "" : ", ") + holder;
    }
    for (int b = 0; b < static_cast<int>(program.blocks.size()); ++b) {
      const Block& block = program.blocks[static_cast<size_t>(b)];
      bool holds = false;
      for (const int operation : holders.operations) holds = holds || block.operations.Contains(operation);
      if (!holds) continue;
      if (program.form == Form::kAsync1F1B) {
        return base::Unimplemented(
            "plan.schedule.kind: ASYNC_1F1B updates the operations {} at different times, but they share the parameter "
            "'{}'; make them one by spec.model.cut",
            names, name);
      }
      if (block.average >= 0) {
        return base::Unimplemented(
            "plan.sync.mode: replicas that differ do not add the gradients of the parameter '{}', which the operations "
            "{} share; make them one by spec.model.cut",
            name, names);
      }
      shared.blocks.push_back(b);
    }
  }
  return absl::OkStatus();
}

}  // namespace medley::program
