#include "scheduler-service/catalog/price_csv.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "common/base/status.h"
#include "common/model/checks.h"

namespace medley::sched {
namespace {

constexpr size_t kMaxQuoted = 100;

// Removes the first line from `text` and returns it.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// RFC 4180 fields of one line; a quoted field may hold commas and doubled quotes, not line breaks.
std::vector<std::string> Fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

class Row {
 public:
  Row(const std::map<std::string, size_t>& columns, std::vector<std::string> fields)
      : columns_(columns), fields_(std::move(fields)) {}
  std::string Get(const std::string& column) const {
    const auto found = columns_.find(column);
    return found == columns_.end() || found->second >= fields_.size() ? "" : fields_[found->second];
  }

 private:
  const std::map<std::string, size_t>& columns_;
  const std::vector<std::string> fields_;
};

// A positive number, or 0 if the text is empty or no positive finite number ("nan").
double NumberOr0(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && value > 0 && value <= model::kMaxNumber ? value : 0;
}

Shape ShapeOf(const Row& row) {
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  Shape shape;
  shape.vcpus = NumberOr0(row.Get("vCPUs"));
  shape.memory_bytes = NumberOr0(row.Get("MemoryGiB")) * kGib;
  shape.gpu_model = row.Get("AcceleratorName");
  std::transform(shape.gpu_model.begin(), shape.gpu_model.end(), shape.gpu_model.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  shape.gpus = NumberOr0(row.Get("AcceleratorCount"));
  return shape;
}

absl::Status AddPrice(const Row& row, const std::string& column, const std::string& capacity,
                      const std::string& provider, int line, std::vector<CatalogEntry>& out) {
  const std::string text = row.Get(column);
  if (text.empty() || text == "nan") return absl::OkStatus();
  double price = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), price);
  if (error != std::errc() || end != text.data() + text.size() || !model::IsSourcePrice(price)) {
    return base::InvalidArgument("line {}: {}: '{}' is not a price greater than 0 and at most 1e9", line, column,
                                 text.substr(0, kMaxQuoted));
  }
  CatalogEntry entry;
  entry.offering =
      model::Offering{provider, row.Get("Region"), row.Get("AvailabilityZone"), row.Get("InstanceType"), capacity, 1};
  entry.price_per_instance_hour = price;
  entry.shape = ShapeOf(row);
  out.push_back(std::move(entry));
  return absl::OkStatus();
}

}  // namespace

bool LooksLikePriceCsv(std::string_view text) {
  const std::string_view header = TakeLine(text);
  return header.find(',') != std::string_view::npos && header.find(':') == std::string_view::npos &&
         header.find("InstanceType") != std::string_view::npos;
}

absl::StatusOr<std::vector<CatalogEntry>> ParsePriceCsv(std::string_view text, const std::string& provider,
                                                        std::vector<absl::Status>& left_out) {
  std::map<std::string, size_t> columns;
  const std::vector<std::string> header = Fields(TakeLine(text));
  for (size_t i = 0; i < header.size(); ++i) columns[header[i]] = i;
  std::vector<CatalogEntry> out;
  for (int line = 2; !text.empty(); ++line) {
    const std::string_view content = TakeLine(text);
    if (content.empty()) continue;
    std::vector<std::string> fields = Fields(content);
    if (fields.size() != header.size()) {
      return base::InvalidArgument("line {}: {} fields, the header has {}", line, fields.size(), header.size());
    }
    const Row row(columns, std::move(fields));
    if (row.Get("InstanceType").empty()) continue;  // the price of a GPU alone, without an instance
    for (const auto& [column, capacity] : {std::pair{"Price", "on-demand"}, std::pair{"SpotPrice", "spot"}}) {
      const absl::Status status = AddPrice(row, column, capacity, provider, line, out);
      if (!status.ok()) left_out.push_back(status);
    }
  }
  if (out.empty() && !left_out.empty()) return left_out.front();
  return out;
}

}  // namespace medley::sched
