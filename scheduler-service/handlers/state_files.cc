#include "scheduler-service/handlers/state_files.h"

#include <fmt/core.h>

#include <system_error>

#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::sched {
namespace {

constexpr std::string_view kMagic = "medley-state 1 ";
constexpr int64_t kMaxStateBytes = int64_t{256} << 20;

std::string Header(std::string_view bytes) { return fmt::format("{}{}\n", kMagic, base::HashHex(bytes)); }

}  // namespace

StateFiles::StateFiles(std::filesystem::path folder, metrics::Registry& metrics)
    : folder_(std::move(folder)), metrics_(metrics) {}

absl::Status StateFiles::Open() const {
  if (folder_.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return base::ErrnoStatus(error.value(), "state folder " + folder_.string());
  return base::Annotate(base::WriteFileAtomic(folder_ / "writable", ""), "state folder");
}

std::optional<std::string> StateFiles::Load(const std::string& name) const {
  if (folder_.empty()) return std::nullopt;
  auto file = base::ReadFile(folder_ / name, kMaxStateBytes);
  if (absl::IsNotFound(file.status())) return std::nullopt;
  if (!file.ok()) {
    Damaged(name, file.status());
    return std::nullopt;
  }
  const size_t line = file->find('\n');
  if (line == std::string::npos || file->substr(0, line + 1) != Header(std::string_view(*file).substr(line + 1))) {
    Damaged(name, base::MakeStatus(absl::StatusCode::kDataLoss, "the checksum does not match"));
    return std::nullopt;
  }
  return file->substr(line + 1);
}

void StateFiles::Save(const std::string& name, std::string_view bytes) const {
  if (folder_.empty()) return;
  const absl::Status status = base::WriteFileAtomic(folder_ / name, Header(bytes) + std::string(bytes));
  if (status.ok()) return;
  base::log::Error("writing a state file failed", {{"file", name}, {"error", base::ToString(status)}});
  metrics_.GetCounter("medley_state_write_errors_total", "State files that could not be written", {{"file", name}})
      .Increment();
}

void StateFiles::Damaged(const std::string& name, const absl::Status& why) const {
  base::log::Error("a state file is damaged, starting without it", {{"file", name}, {"error", base::ToString(why)}});
  metrics_.GetCounter("medley_state_damaged_total", "State files that could not be used", {{"file", name}}).Increment();
}

}  // namespace medley::sched
