#include "tests/bench/economics/scenario.h"

#include <absl/strings/str_split.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/document/parse.h"
#include "common/model/convert.h"
#include "common/model/text.h"
#include "medley/profile/v1/profile.pb.h"
#include "scheduler-service/profile/analytic.h"

namespace medley::bench {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

absl::StatusOr<double> Seconds(const std::string& text) {
  MEDLEY_ASSIGN_OR_RETURN(const base::WallTime time, base::ParseTime(text));
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// Reads the rows of a CSV file, which must not contain quotes, as maps from column to text.
using Row = std::map<std::string, std::string>;
absl::StatusOr<std::vector<Row>> ReadCsv(const fs::path& path) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path));
  std::vector<std::string> names;
  std::vector<Row> rows;
  for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> cells = absl::StrSplit(absl::StripSuffix(line, "\r"), ',');
    if (names.empty()) {
      names = cells;
      continue;
    }
    if (cells.size() != names.size()) {
      return base::InvalidArgument("{}: a row of {} cells", path.string(), cells.size());
    }
    Row row;
    for (size_t i = 0; i < names.size(); ++i) row[names[i]] = cells[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

class Reader {
 public:
  Reader(fs::path root, json tree) : root_(std::move(root)), tree_(std::move(tree)) {}

  absl::StatusOr<Scenario> Read() {
    Scenario s;
    s.name = tree_.at("name");
    MEDLEY_ASSIGN_OR_RETURN(s.begin, Seconds(tree_.at("begin")));
    MEDLEY_ASSIGN_OR_RETURN(s.end, Seconds(tree_.at("end")));
    MEDLEY_RETURN_IF_ERROR(ReadModel(s.request.model));
    const double floor = tree_.at("minThroughput");
    s.request.training.profile_batch_size = tree_.at("batch");
    s.request.training.samples_per_epoch = floor * (s.end - s.begin);  // finishes in time even at the floor
    s.request.constraints.min_throughput = floor;
    s.request.server_type = tree_.at("serverType");
    MEDLEY_ASSIGN_OR_RETURN(const auto builtin, sched::HardwareCatalog::Builtin());
    std::vector<sched::Hardware> sheets = builtin.all();
    if (tree_.contains("hardware")) {
      MEDLEY_ASSIGN_OR_RETURN(const auto more,
                              sched::HardwareCatalog::Parse(json{{"hardware", tree_.at("hardware")}}.dump()));
      sheets.insert(sheets.end(), more.all().begin(), more.all().end());
    }
    MEDLEY_ASSIGN_OR_RETURN(const auto catalog, sched::HardwareCatalog::Of(std::move(sheets)));
    for (const json& type : tree_.at("types")) MEDLEY_RETURN_IF_ERROR(AddType(type, s));
    MEDLEY_RETURN_IF_ERROR(sched::AddAnalyticProfiles(s.request, catalog));
    std::stable_sort(s.changes.begin(), s.changes.end(),
                     [](const PriceChange& a, const PriceChange& b) { return a.time < b.time; });
    return s;
  }

 private:
  absl::Status ReadModel(model::Model& out) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(root_ / tree_.at("model").get<std::string>()));
    profile::v1::Model message;
    MEDLEY_RETURN_IF_ERROR(model::ParseText(text, message));
    MEDLEY_ASSIGN_OR_RETURN(out, model::FromProto(message));
    return absl::OkStatus();
  }

  absl::Status AddType(const json& type, Scenario& s) {
    const size_t index = s.request.resources.size();
    model::Resource r;
    r.name = type.at("name");
    r.hardware = type.at("hardware");
    r.cls = type.value("class", "GPU") == "CPU" ? model::ResourceClass::kCpu : model::ResourceClass::kGpu;
    r.limit = type.at("limit");
    s.request.resources.push_back(r);
    s.on_demand.push_back(type.value("onDemand", false));
    s.place.push_back(type.value("place", ""));
    const double units = type.value("unitsPerInstance", 1.0);
    if (type.contains("usdPerHour")) {
      s.changes.push_back({s.begin, index, type.at("usdPerHour").get<double>() / units});
      return absl::OkStatus();
    }
    return AddSeries(type.at("series"), units, index, s);
  }

  absl::Status AddSeries(const json& series, double units, size_t index, Scenario& s) {
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<Row>* rows, File(series.at("file")));
    const std::string column = series.at("column");
    size_t found = 0;
    for (const Row& row : *rows) {
      const bool wanted =
          std::all_of(series.at("where").items().begin(), series.at("where").items().end(), [&](const auto& item) {
            const auto cell = row.find(item.key());
            return cell != row.end() && cell->second == item.value();
          });
      const auto cell = row.find(column);
      if (!wanted || cell == row.end() || cell->second.empty()) continue;
      double price = 0;
      const std::string& text = cell->second;
      const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), price);
      if (error != std::errc() || *rest != '\0') return base::InvalidArgument("{}: '{}' is no price", column, text);
      MEDLEY_ASSIGN_OR_RETURN(const double time, Seconds(row.at("timestamp")));
      s.changes.push_back({time, index, price / units});
      ++found;
    }
    if (found == 0) return base::NotFound("types[{}].series: no row is of it", index);
    return absl::OkStatus();
  }

  absl::StatusOr<const std::vector<Row>*> File(const std::string& name) {
    auto found = files_.find(name);
    if (found == files_.end()) {
      MEDLEY_ASSIGN_OR_RETURN(auto rows, ReadCsv(root_ / name));
      found = files_.emplace(name, std::move(rows)).first;
    }
    return &found->second;
  }

  const fs::path root_;
  const json tree_;
  std::map<std::string, std::vector<Row>> files_;
};

}  // namespace

absl::StatusOr<Scenario> ReadScenario(const fs::path& root, const fs::path& file) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(root / file));
  MEDLEY_ASSIGN_OR_RETURN(json tree, document::Parse(text));
  try {
    auto scenario = Reader(root, std::move(tree)).Read();
    if (!scenario.ok()) return base::Annotate(scenario.status(), file.string());
    return scenario;
  } catch (const json::exception& error) {
    return base::InvalidArgument("{}: {}", file.string(), error.what());
  }
}

}  // namespace medley::bench
