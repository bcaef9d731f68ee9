// An HttpFetcher that returns the result of a function and records the requests.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "scheduler-service/feeds/http_fetcher.h"

namespace medley::sched {

// Not thread-safe.
class FakeFetcher final : public HttpFetcher {
 public:
  using Answer = std::function<absl::StatusOr<FetchReply>(const FetchRequest& request)>;

  // `requests` must outlive the fetcher, which a feed owns.
  FakeFetcher(Answer answer, std::vector<FetchRequest>& requests) : answer_(std::move(answer)), requests_(requests) {}

  absl::StatusOr<FetchReply> Fetch(const FetchRequest& request, std::stop_token) override {
    requests_.push_back(request);
    return answer_(request);
  }

 private:
  const Answer answer_;
  std::vector<FetchRequest>& requests_;
};

}  // namespace medley::sched
