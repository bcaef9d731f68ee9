#include "tests/integration/worker/chaos.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "common/base/testing/temp_dir.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;

// The file is absent where the job removes the checkpoint at the same time.
void ChangeFile(const fs::path& file, uint64_t how, uint64_t where) {
  std::error_code error;
  const auto bytes = static_cast<uint64_t>(fs::file_size(file, error));
  if (error) return;
  if (how == 0) fs::resize_file(file, where % bytes, error);
  if (how == 1) fs::remove(file, error);
  if (how == 2) {
    std::fstream in_place(file, std::ios::in | std::ios::out | std::ios::binary);
    in_place.seekg(static_cast<std::streamoff>(where % bytes));
    const int byte = in_place.get();
    in_place.seekp(static_cast<std::streamoff>(where % bytes));
    in_place.put(static_cast<char>(byte ^ 1));
  }
  if (how == 3) {
    fs::remove(file, error);
    fs::create_directory(file, error);
  }
  if (how == 4) {
    fs::remove(file, error);
    fs::create_symlink("absent", file, error);
  }
}

constexpr base::nanoseconds kLongestStart = base::seconds(120);

constexpr const char* kHow[] = {"cut off", "removed", "a byte changed", "a folder instead",
                                "a link to nothing instead"};

}  // namespace

void Chaos::Begin() {
  job_.StartCoordinator(term_);
  job_.Apply(shapes_[0], "start");
  // Else a job that starts slowly, as one that loads LibTorch, or any on a busy machine, would not train, or have no
  // checkpoint, while the chaos lasts.
  const base::SteadyTime end = clock_.Steady() + kLongestStart;
  const auto begun = [this] { return damage_ ? !Complete().empty() : job_.Steps() > 0; };
  while (!begun() && !job_.Ended() && clock_.Steady() < end) Wait(0, true);
}

void Chaos::Act() {
  ++actions_;
  if (job_.Ended()) over_ = true;
  if (over_) return;
  if (damage_ && random_.Below(3) == 0) {
    Damage();
    return Wait(random_.Below(1200), true);
  }
  switch (random_.Below(10)) {
    case 0:
      KillCoordinator();
      break;
    case 1:
      Stop(JobHarness::CoordinatorName(term_));
      break;
    case 8:
    case 9:
      HandOver();
      break;
    case 2:
    case 3:
      if (const std::string member = AnyMember(); !member.empty()) Stop(member);
      break;
    case 4:
    case 5:
      Apply("chaos");
      break;
    default:  // as many as a machine may have had
      for (uint64_t left = 1 + random_.Below(3); left > 0; --left) KillMember();
  }
  Wait(random_.Below(1200), true);
}

void Chaos::Wait(uint64_t milliseconds, bool poll) {
  const base::SteadyTime end = clock_.Steady() + base::milliseconds(milliseconds);
  const size_t share = length_.steps() * static_cast<size_t>(actions_) / static_cast<size_t>(length_.actions + 1);
  do {
    EXPECT_TRUE(!poll || job_.Poll()) << "a process failed for good" << job_.AllLogs();
    clock_.SleepFor(base::milliseconds(20), {});
  } while (clock_.Steady() < end && job_.Steps() < share);
}

std::string Chaos::AnyMember() {
  EXPECT_TRUE(job_.Poll()) << "a process failed for good" << job_.AllLogs();
  const std::vector<std::string> members = job_.Running();
  return members.empty() ? "" : members[random_.Below(members.size())];
}

void Chaos::KillMember() {
  const std::string member = AnyMember();
  if (member.empty()) return;
  job_.Kill(member);
  ++counts_.kills;
}

void Chaos::KillCoordinator() {
  job_.Kill(JobHarness::CoordinatorName(term_));
  job_.StartCoordinator(term_);
  ++counts_.coordinators;
}

// Another coordinator takes over. The old one, the new one or both may be killed at any moment of it; the new one is
// started again, as by a kubelet.
void Chaos::HandOver() {
  const std::string old = JobHarness::CoordinatorName(term_++);
  job_.StartCoordinator(term_);
  job_.Follow(term_);
  ++counts_.hand_overs;
  const uint64_t what = random_.Below(5);
  if (what > 2) return;
  Wait(random_.Below(600), false);
  if (what != 0) job_.Kill(old);
  if (what != 1) job_.Kill(JobHarness::CoordinatorName(term_));
  if (what != 1) job_.StartCoordinator(term_);
  counts_.coordinators += what == 2 ? 2 : 1;
}

// SIGSTOP for a while: the process does not notice, the others may take it for lost.
void Chaos::Stop(const std::string& name) {
  job_.Pause(name);
  Wait(random_.Below(2500), false);
  job_.Resume(name);
  ++counts_.stops;
}

void Chaos::Apply(const char* reason) {
  const JobShape& shape = shapes_[random_.Below(shapes_.size())];
  ++counts_.plans;
  if (!damage_) return job_.Apply(shape, reason);
  over_ = !job_.TryApply(shape, reason);  // where all checkpoints were damaged, the job may have failed just now
}

std::vector<fs::path> Chaos::Complete() const {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator at(job_.checkpoints(), error), end; !error && at != end; at.increment(error)) {
    if (!at->path().filename().string().starts_with("step-")) continue;
    std::error_code absent;
    const auto written = fs::last_write_time(at->path() / "manifest.json", absent);
    if (!absent) found.emplace_back(written, at->path());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> folders;
  for (auto& [written, folder] : found) folders.push_back(std::move(folder));
  return folders;
}

void Chaos::DamageOne(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename() != "manifest.json") files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  const uint64_t what = random_.Below(10);
  const uint64_t how = random_.Below(std::size(kHow));
  const uint64_t where = random_.Next();
  damaged_.insert(folder);
  story_ += "\n  " + folder.filename().string() + ": ";
  if (what == 0 || files.empty()) {
    base::RemoveTempDir(folder);
    story_ += "removed";
    return;
  }
  const fs::path file = what < 4 ? folder / "manifest.json" : files[where % files.size()];
  ChangeFile(file, how, where / 64);
  story_ += file.filename().string() + " " + kHow[how];
}

void Chaos::Damage() {
  const bool all = random_.Below(3) == 0;
  const bool at_once = random_.Below(2) == 0;
  const std::vector<fs::path> complete = Complete();
  for (const fs::path& folder : complete) {
    if (!damaged_.contains(folder)) DamageOne(folder);
    if (!all) break;
  }
  (all ? counts_.losses : counts_.damages) += complete.empty() ? 0 : 1;
  const std::vector<fs::path> left = Complete();
  if (!complete.empty() &&
      std::ranges::all_of(left, [this](const fs::path& folder) { return damaged_.contains(folder); })) {
    may_fail_ = true;
  }
  if (at_once) LoseEveryProcess();  // else the next checkpoint may be complete before one is needed
}

void Chaos::LoseEveryProcess() {
  job_.Kill(JobHarness::CoordinatorName(term_));
  for (const std::string& member : job_.Running()) {
    job_.Kill(member);
    ++counts_.kills;
  }
  job_.StartCoordinator(term_);
  ++counts_.coordinators;
}

std::pair<uint64_t, uint64_t> ChaosSeeds(uint64_t otherwise) {
  std::pair<uint64_t, uint64_t> seeds{1, otherwise};
  if (const char* text = std::getenv("MEDLEY_CHAOS_SEEDS"); text != nullptr) {
    char* end = nullptr;
    seeds.second = std::strtoull(text, &end, 10);
    if (*end == '-') {
      seeds.first = seeds.second;
      seeds.second = std::strtoull(end + 1, nullptr, 10);
    }
  }
  if (const char* text = std::getenv("MEDLEY_CHAOS_FIRST_SEED"); text != nullptr) {
    seeds.first = std::strtoull(text, nullptr, 10);
  }
  return seeds;
}

}  // namespace medley::worker
