// Groups whose ranks are threads of the test, over real loopback sockets.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/file.h"
#include "common/base/testing/temp_dir.h"
#include "common/certificates/job_certificates.h"
#include "worker/collective/group.h"

namespace medley::worker {

// Longer than any test may last: a wait that only its timeout would end is reported as a test that hangs.
inline constexpr base::milliseconds kForever{3'600'000};

// The certificates of a job.
class Certificates {
 public:
  explicit Certificates(const std::string& uid) : folder_(base::MakeTempDir("medley-group").value()) {
    base::SystemClock clock;
    const certificates::KeyPair ca = certificates::MakeJobAuthority(uid, clock.Now()).value();
    const certificates::KeyPair own = certificates::IssueForJob(ca, uid, clock.Now(), std::chrono::hours(1)).value();
    tls_ = {folder_ / "ca.crt", folder_ / "identity.pem", certificates::JobName(uid)};
    EXPECT_EQ(base::WriteFileAtomic(tls_.authority, ca.certificate), absl::OkStatus());
    EXPECT_EQ(base::WriteFileAtomic(tls_.identity, own.certificate + own.key), absl::OkStatus());
  }
  ~Certificates() { base::RemoveTempDir(folder_); }
  const GroupTls& tls() const { return tls_; }

 private:
  const std::filesystem::path folder_;
  GroupTls tls_;
};

[[maybe_unused]] inline const auto g_ignored = std::signal(SIGPIPE, SIG_IGN);  // as the worker does

enum class Transport { kPlain, kTls, kSharedMemory, kSharedMemoryWithTls };

inline bool SharesMemory(Transport transport) {
  return transport == Transport::kSharedMemory || transport == Transport::kSharedMemoryWithTls;
}

inline std::optional<GroupTls> Tls(Transport transport) {
  static const Certificates certificates("4f1c0a9e-58a3-4c52-9d4e-0c6a7c1f2b3d");
  const bool encrypted = transport == Transport::kTls || transport == Transport::kSharedMemoryWithTls;
  return encrypted ? std::optional(certificates.tls()) : std::nullopt;
}

// Calls `body` on all ranks of a group, each a thread.
inline void RunRanks(Transport transport, int size, const std::function<void(Group&)>& body,
                     base::milliseconds timeout = kForever, std::optional<GroupTls> tls = std::nullopt) {
  MemoryStore store;
  GroupOptions options{.name = "test",
                       .address = "127.0.0.1",
                       .connect_timeout = base::milliseconds(60'000),
                       .timeout = timeout,
                       .tls = tls.has_value() ? tls : Tls(transport),
                       .share_memory = SharesMemory(transport)};
  for (int rank = 0; rank < size; ++rank) options.members.push_back("member-" + std::to_string(rank));
  std::latch end(size);  // destroying a group makes the others fail, so all ranks wait for each other
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      GroupOptions mine = options;
      mine.rank = rank;
      auto group = Group::Connect(mine, store, {});
      EXPECT_TRUE(group.ok()) << group.status();
      if (group.ok()) body(**group);
      end.arrive_and_wait();
    });
  }
}

}  // namespace medley::worker
