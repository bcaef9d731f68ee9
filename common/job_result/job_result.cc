#include "common/job_result/job_result.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "common/base/status.h"
#include "common/base/utf8.h"
#include "common/document/reader.h"

namespace medley::job_result {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostCount = int64_t{1} << 53;
constexpr int64_t kMostEpochs = (int64_t{1} << 31) - 1;
constexpr size_t kShortReason = 128;
constexpr size_t kMostUidBytes = 128;  // of Kubernetes: 36
constexpr document::Limits kLimits = {.bytes = kMostBytes, .depth = 4, .values = 256};
constexpr Phase kPhases[] = {Phase::kComplete, Phase::kFailed, Phase::kSuspended};

// A part of the text that does not end within a character.
std::string Shortened(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  const auto continues = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
  while (bytes > 0 && continues(bytes)) --bytes;
  return text.substr(0, bytes);
}

// People read names in terminals. One without its end would be another metric.
bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMostNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
}

Json MetricsOf(const JobResult& result) {
  Json metrics = Json::object();
  for (const auto& [name, value] : result.metrics) {
    if (IsName(name) && std::isfinite(value) && metrics.size() < kMostMetrics) metrics[name] = value;
  }
  return metrics;
}

std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json TreeOf(const JobResult& result) {
  Json tree = {{"job", Shortened(result.job_uid, kMostUidBytes)},
               {"phase", std::string(ToString(result.phase))},
               {"step", result.step},
               {"samples", result.samples},
               {"samplesTotal", result.samples_total},
               {"epoch", result.epoch},
               {"epochs", result.epochs},
               {"badRows", result.bad_rows},
               {"lastCheckpointStep", result.last_checkpoint_step},
               {"stoppedEarly", result.stopped_early},
               {"metrics", MetricsOf(result)}};
  if (result.loss && std::isfinite(*result.loss)) tree["loss"] = *result.loss;
  if (const auto& best = result.best; best && IsName(best->metric) && std::isfinite(best->value)) {
    tree["best"] = {{"step", best->step},
                    {"epochs", best->epochs},
                    {"metric", best->metric},
                    {"value", best->value},
                    {"data", best->validation ? "Validation" : "Test"}};
  }
  if (const auto& exported = result.exported) {
    tree["export"] = {
        {"step", exported->step}, {"epochs", exported->epochs}, {"model", exported->best ? "Best" : "Last"}};
  }
  const std::string reason = Shortened(base::EscapeInvalidUtf8(result.reason), kMostReasonBytes);
  if (!reason.empty()) tree["reason"] = reason;
  return tree;
}

// Removes the least important part. False: nothing is left that could go.
bool Shorten(Json& tree) {
  const std::string reason = tree.value("reason", "");
  if (reason.size() > kShortReason) {
    tree["reason"] = Shortened(reason, std::max(kShortReason, reason.size() / 2));
    return true;
  }
  if (Json& metrics = tree["metrics"]; !metrics.empty()) {
    metrics.erase(std::prev(metrics.end()));
    return true;
  }
  for (const char* part : {"best", "export", "reason"}) {
    if (tree.erase(part) > 0) return true;
  }
  return false;
}

void ReadCount(const document::Reader& reader, const char* field, int64_t& out, int64_t most = kMostCount) {
  reader.Read(field, out);
  if (out < 0 || out > most) reader.Fail(field, fmt::format("must be from 0 to {}", most));
}

std::map<std::string, double> ReadMetrics(const document::Reader& root) {
  std::map<std::string, double> metrics;
  const Json tree = root.Raw("metrics");
  if (!tree.is_object()) {
    root.Fail("metrics", "must be an object");
    return metrics;
  }
  if (tree.size() > kMostMetrics) root.Fail("metrics", fmt::format("has more than {} entries", kMostMetrics));
  for (const auto& [name, value] : tree.items()) {
    if (!IsName(name))
      root.Fail("metrics", fmt::format("a name must have 1 to {} characters of ASCII", kMostNameBytes));
    if (!value.is_number()) {
      root.Fail("metrics", "must have numbers only");
    } else {
      metrics[name] = value.get<double>();
    }
  }
  return metrics;
}

std::optional<Best> ReadBest(const document::Reader& root) {
  if (!root.Has("best")) return std::nullopt;
  const document::Reader reader = root.Child("best");
  Best best;
  ReadCount(reader, "step", best.step);
  ReadCount(reader, "epochs", best.epochs, kMostEpochs);
  best.metric = reader.RequiredString("metric");
  if (!IsName(best.metric)) reader.Fail("metric", fmt::format("must have 1 to {} characters of ASCII", kMostNameBytes));
  reader.Require({"value"});
  reader.Read("value", best.value);
  best.validation = reader.String("data") == "Validation";
  return best;
}

std::optional<Exported> ReadExported(const document::Reader& root) {
  if (!root.Has("export")) return std::nullopt;
  const document::Reader reader = root.Child("export");
  Exported exported;
  ReadCount(reader, "step", exported.step);
  ReadCount(reader, "epochs", exported.epochs, kMostEpochs);
  exported.best = reader.String("model") == "Best";
  return exported;
}

Phase ReadPhase(const document::Reader& root) {
  const std::string name = root.RequiredString("phase");
  for (const Phase phase : kPhases) {
    if (name == ToString(phase)) return phase;
  }
  root.Fail("phase", "must be Complete, Failed or Suspended");
  return Phase::kFailed;
}

}  // namespace

std::string_view ToString(Phase phase) {
  switch (phase) {
    case Phase::kComplete:
      return "Complete";
    case Phase::kFailed:
      return "Failed";
    case Phase::kSuspended:
      return "Suspended";
  }
  return "";
}

std::string ToText(const JobResult& result) {
  Json tree = TreeOf(result);
  std::string text = Dump(tree);
  while (text.size() > kMostBytes && Shorten(tree)) text = Dump(tree);
  return text;
}

absl::StatusOr<JobResult> Parse(std::string_view text, std::string_view job_uid) {
  if (text.empty()) return base::InvalidArgument("it is empty");
  MEDLEY_ASSIGN_OR_RETURN(const Json tree, document::ParseJson(text, kLimits));
  if (!tree.is_object()) return base::InvalidArgument("it is not an object");
  const document::Reader root(tree);
  JobResult result;
  result.job_uid = root.RequiredString("job");
  result.phase = ReadPhase(root);
  ReadCount(root, "step", result.step);
  ReadCount(root, "samples", result.samples);
  ReadCount(root, "samplesTotal", result.samples_total);
  ReadCount(root, "epoch", result.epoch, kMostEpochs);
  ReadCount(root, "epochs", result.epochs, kMostEpochs);
  ReadCount(root, "badRows", result.bad_rows);
  ReadCount(root, "lastCheckpointStep", result.last_checkpoint_step);
  root.Read("stoppedEarly", result.stopped_early);
  if (root.Has("loss")) root.Read("loss", result.loss.emplace());
  result.metrics = ReadMetrics(root);
  result.best = ReadBest(root);
  result.exported = ReadExported(root);
  result.reason = Shortened(root.String("reason"), kMostReasonBytes);
  if (result.samples_total > 0 && result.samples > result.samples_total) {
    root.Fail("samples", "is more than samplesTotal");
  }
  MEDLEY_RETURN_IF_ERROR(root.status());
  if (result.job_uid != job_uid) return base::FailedPrecondition("it is the result of another job");
  return result;
}

}  // namespace medley::job_result
