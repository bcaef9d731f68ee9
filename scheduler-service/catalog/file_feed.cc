#include "scheduler-service/catalog/file_feed.h"

#include <optional>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "scheduler-service/catalog/price_file.h"

namespace medley::sched {
namespace {

constexpr size_t kMaxWarnings = 10;
constexpr int64_t kMaxFeedBytes = int64_t{64} << 20;

class FileFeed final : public Feed {
 public:
  FileFeed(std::string name, std::filesystem::path path, base::nanoseconds period)
      : name_(std::move(name)), path_(std::move(path)), period_(period) {}

  const std::string& name() const override { return name_; }

  FeedTraits traits() const override {
    FeedTraits traits;
    traits.period = period_;
    traits.ttl = traits.on_demand_ttl = base::nanoseconds(0);
    traits.authoritative = true;
    return traits;
  }

  FetchResult Fetch(base::WallTime now, std::stop_token) override {
    const auto text = base::ReadFile(path_, kMaxFeedBytes);
    if (!text.ok()) return Error(text.status());
    const uint64_t hash = base::Hash64(*text);
    if (good_hash_ == hash) return {Unchanged(), {}};
    std::vector<absl::Status> left_out;
    auto entries = ParsePriceFile(*text, path_.filename().string(), now, &left_out);
    if (!entries.ok()) return Error(entries.status());
    good_hash_ = hash;
    Snapshot snapshot;
    snapshot.entries = std::move(*entries);
    snapshot.warnings = Few(std::move(left_out));
    return {std::move(snapshot), {}};
  }

 private:
  // The first ones, and how many there are: a file may have a million.
  std::vector<absl::Status> Few(std::vector<absl::Status> left_out) const {
    const size_t all = left_out.size();
    if (all <= kMaxWarnings) return left_out;
    left_out.resize(kMaxWarnings);
    left_out.push_back(base::InvalidArgument("{} prices of {} are left out in all", all, path_.string()));
    return left_out;
  }

  FetchResult Error(const absl::Status& status) {
    good_hash_.reset();  // report the next good content as a snapshot, even if it is the same as before
    return {base::Annotate(status, fmt::format("price file {}", path_.string())), {}};
  }

  const std::string name_;
  const std::filesystem::path path_;
  const base::nanoseconds period_;
  std::optional<uint64_t> good_hash_;  // of the content of the last good snapshot
};

}  // namespace

std::unique_ptr<Feed> MakeFileFeed(const std::string& name, std::filesystem::path path, base::nanoseconds period) {
  return std::make_unique<FileFeed>(name, std::move(path), period);
}

absl::StatusOr<std::unique_ptr<Feed>> MakeFileFeedFrom(const std::string& name, document::Reader options) {
  const std::string path = options.RequiredString("path");
  MEDLEY_RETURN_IF_ERROR(options.Finish());
  return MakeFileFeed(name, path, std::chrono::seconds(2));
}

}  // namespace medley::sched
