#include "worker/coordinator/core/activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "common/model/rows_member.h"
#include "worker/coordinator/core/state.h"

namespace medley::worker {
namespace {

using goodput::Category;

constexpr size_t kMarks = 16;
// A clock that was set must not make units that are in force for years.
constexpr double kLongestAbsence = 86400;
constexpr base::seconds kReconnecting{3};  // in which members come back to a coordinator that was started again

double ToUnix(base::WallTime time) { return base::ToSeconds(time.time_since_epoch()); }

// The coordinator waits for its last checkpoint, the finished model or the journal, and leases no step meanwhile.
bool Saves(const CoreState& view) {
  if (view.checkpoints.failure && view.checkpoints.failure->paused()) return true;
  if (training::AllCommitted(view)) return true;
  const Ledger& ledger = *view.training.ledger;
  return ledger.leased() == ledger.committed() && (view.checkpoints.pending || view.checkpoints.writing);
}

Category CategoryOf(const CoreState& view) {
  const GenerationsState& generations = view.generations;
  if (generations.mode == Mode::kHalting && view.hand_over.adopting) return Category::kMove;
  if (generations.mode != Mode::kTraining) return Category::kRecovery;
  const bool switching = generations.next && generations.next->switching;
  const bool shows_model = generations.active->restored_step > 0 || (switching && generations.next->restored_step > 0);
  if (view.evaluation.pending || shows_model) return Category::kEvaluation;
  if (switching) return generations.next->recovery ? Category::kRecovery : Category::kMove;
  return Saves(view) ? Category::kCheckpoint : Category::kTraining;
}

}  // namespace

std::optional<Activity> ActivityNow(const CoreState& view) {
  const GenerationsState& generations = view.generations;
  if (view.ending.over() || view.hand_over.handed_over || generations.from == 0 || view.meters.activity.resumes()) {
    return std::nullopt;
  }
  Activity activity{CategoryOf(view), {}, {}};
  if (generations.active) {
    for (const auto& [name, member] : generations.active->members) {
      if (!member.awaited && !model::IsRowsMember(name)) ++activity.units[member.peer.slot().pool()];
    }
  }
  for (const auto& [name, member] : view.members.all) {
    if (member.released || model::IsRowsMember(name)) continue;
    const bool in_force = generations.active && generations.active->members.contains(name);
    if (in_force) continue;
    if (!generations.active) ++activity.units[member.hello.pool()];  // they wait for the checkpoint to be restored
    if (generations.active && standing_by::StandsBy(view, name)) ++activity.standbys[member.hello.pool()];
  }
  return activity;
}

void ActivityMeter::Restore(const job::v1::UnitAccount& account, bool suspended, const CommittedStep& line,
                            base::WallTime now) {
  resumes_ = suspended;
  line_ = line;
  if (account.id().empty()) return;
  account_.id = account.id();
  account_.first_samples = account.first_samples();
  for (const job::v1::PoolSeconds& pool : account.pools()) {
    goodput::Amounts& amounts = account_.pools[pool.pool()];
    for (const auto& [name, seconds] : pool.seconds()) {
      if (const auto category = goodput::ParseCategory(name)) amounts[*category] = std::max(0.0, seconds);
    }
  }
  for (const job::v1::PoolSeconds& trained : account.trained()) {
    if (marks_.empty() || marks_.back().step != trained.step()) marks_.push_back({trained.step(), {}});
    const auto seconds = trained.seconds().find(std::string(goodput::ToString(Category::kTraining)));
    if (seconds != trained.seconds().end()) marks_.back().seconds[trained.pool()] = seconds->second;
  }
  if (!marks_.empty()) last_ = marks_.back();
  const base::WallTime at(std::chrono::duration_cast<base::WallTime::duration>(
      base::seconds(account.at().seconds()) + base::nanoseconds(account.at().nanos())));
  journal_at_ = std::min(at, now);
  restored_at_ = now;
}

std::optional<std::string> ActivityMeter::Hold(Instant now, const std::optional<Activity>& activity, int64_t step) {
  std::optional<std::string> line;
  if (activity != before_) {
    line = fmt::format(
        "activity {} since={:.3f} step={} units=", activity ? goodput::ToString(activity->category) : "none",
        ToUnix(started_ ? held_until_wall_ : now.wall), step);
    const char* comma = "";
    for (const auto& [pool, count] : activity ? activity->units : std::map<std::string, int>()) {
      *line += fmt::format("{}{}:{}", std::exchange(comma, ","), pool, count);
    }
    for (const auto& [pool, count] : activity ? activity->standbys : std::map<std::string, int>()) {
      *line += fmt::format("{}{}:{}:idle", std::exchange(comma, ","), pool, count);
    }
    before_ = activity;
  }
  if (started_ && now.steady > held_until_ && activity && !account_.id.empty()) {
    const double seconds = base::ToSeconds(now.steady - held_until_);
    for (const auto& [pool, count] : activity->units) account_.pools[pool][activity->category] += seconds * count;
    for (const auto& [pool, count] : activity->standbys) account_.pools[pool][Category::kIdle] += seconds * count;
    account_.pools[goodput::kCoordinatorPool][activity->category] += seconds;
  }
  held_until_ = started_ ? std::max(held_until_, now.steady) : now.steady;
  held_until_wall_ = now.wall;
  started_ = true;
  return line;
}

void ActivityMeter::Begin(base::WallTime now, int64_t step, int64_t samples) {
  resumes_ = false;
  journal_at_.reset();
  away_.clear();
  returned_.clear();
  if (!account_.id.empty()) return;
  account_.id = fmt::format("{:.6f}", ToUnix(now));
  account_.first_samples = samples;
  last_ = {step, {}};
  marks_.assign(1, last_);
}

void ActivityMeter::Returned(const std::string& member, const std::string& pool, Category category, base::WallTime now,
                             bool knew) {
  if (!journal_at_ || account_.id.empty() || !returned_.insert(member).second) return;
  const base::WallTime since = knew ? *journal_at_ : restored_at_;
  const double seconds = std::clamp(base::ToSeconds(now - since), 0.0, kLongestAbsence);
  account_.pools[pool][category] += seconds;
  if (category != Category::kRecovery) return;
  away_[pool].seconds += seconds;
  ++away_[pool].members;
}

bool ActivityMeter::JustRestored(base::WallTime now) const {
  return journal_at_ && now - restored_at_ <= kReconnecting;
}

void ActivityMeter::Waited(const std::string& pool, const job::v1::Progress& progress) {
  Move(pool, Category::kTraining, Category::kDataWait, progress.data_seconds());
  Move(pool, Category::kTraining, Category::kCheckpoint, progress.checkpoint_seconds());
}

void ActivityMeter::Committed(base::SteadyTime now, int64_t step, std::span<const int64_t> saves) {
  const Mark before = std::exchange(last_, {step, Trained()});
  const auto is_new = [this](int64_t mark) { return marks_.empty() || mark > marks_.back().step; };
  for (const int64_t save : saves) {
    if (!is_new(save) || save < before.step || save > step) continue;
    marks_.push_back({save, save == before.step ? before.seconds : last_.seconds});
  }
  if (now - marked_at_ >= mark_interval_) {
    marked_at_ = now;
    if (is_new(step)) marks_.push_back(last_);
  }
  if (marks_.size() > kMarks) Thin(saves);
}

void ActivityMeter::SetBack(int64_t step) {
  if (marks_.empty()) return;
  if (step > last_.step && !away_.empty()) {
    TrainedMeanwhile(step);
  } else if (step <= last_.step) {
    const Seconds kept = TrainedAt(step);
    for (const auto& [pool, trained] : Trained()) {
      const auto known = kept.find(pool);
      Move(pool, Category::kTraining, Category::kLost, trained - (known == kept.end() ? 0 : known->second));
    }
  }
  while (marks_.size() > 1 && marks_.back().step > step) marks_.pop_back();
  last_ = {step, Trained()};
}

// Up to `step`, between the journal and this coordinator.
void ActivityMeter::TrainedMeanwhile(int64_t step) {
  // Until the last line of steps.jsonl. Without one as long as a step took before. The members were away no shorter.
  const bool known = journal_at_ && line_.step > last_.step;
  const double until_line = known ? std::max(0.0, base::ToSeconds(line_.at - *journal_at_)) : 0;
  const auto steps = static_cast<double>(last_.step - marks_.front().step);
  double longest = until_line;
  for (const auto& [pool, away] : std::exchange(away_, {})) {
    const double trained = last_.seconds[pool] - marks_.front().seconds[pool];
    const double each = steps > 0 ? std::max(0.0, trained) / steps : 0;
    const double seconds = known ? until_line * away.members : each * static_cast<double>(step - last_.step);
    const double moved = std::min(away.seconds, seconds);
    Move(pool, Category::kRecovery, Category::kTraining, moved);
    longest = std::max(longest, moved / std::max(1, away.members));
  }
  account_.pools[goodput::kCoordinatorPool][Category::kTraining] += longest;  // the one before led it
}

void ActivityMeter::Fill(base::WallTime now, bool durable, job::v1::UnitAccount& out) const {
  out.set_id(account_.id);
  out.set_first_samples(account_.first_samples);
  const auto nanos = std::chrono::duration_cast<base::nanoseconds>(now.time_since_epoch()).count();
  out.mutable_at()->set_seconds(nanos / 1'000'000'000);
  out.mutable_at()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  for (const auto& [pool, amounts] : account_.pools) {
    job::v1::PoolSeconds& to = *out.add_pools();
    to.set_pool(pool);
    for (const Category category : goodput::kCategories) {
      if (amounts[category] > 0) (*to.mutable_seconds())[std::string(goodput::ToString(category))] = amounts[category];
    }
  }
  if (!durable) return;
  const auto add = [&](const Mark& mark) {
    for (const auto& [pool, seconds] : mark.seconds) {
      job::v1::PoolSeconds& to = *out.add_trained();
      to.set_pool(pool);
      to.set_step(mark.step);
      (*to.mutable_seconds())[std::string(goodput::ToString(Category::kTraining))] = seconds;
    }
    if (mark.seconds.empty()) out.add_trained()->set_step(mark.step);
  };
  for (const Mark& mark : marks_) add(mark);
  if (!marks_.empty() && last_.step > marks_.back().step) add(last_);
}

ActivityMeter::Seconds ActivityMeter::Trained() const {
  Seconds trained;
  for (const auto& [pool, amounts] : account_.pools) trained[pool] = amounts[Category::kTraining];
  return trained;
}

// Between two marks, steps take equally long.
ActivityMeter::Seconds ActivityMeter::TrainedAt(int64_t step) const {
  const auto after = std::find_if(marks_.begin(), marks_.end(), [&](const Mark& mark) { return mark.step > step; });
  const Mark& upper = after == marks_.end() ? last_ : *after;
  const Mark& lower = after == marks_.begin() ? marks_.front() : *std::prev(after);
  if (upper.step <= lower.step) return upper.seconds;
  const double part =
      std::clamp(static_cast<double>(step - lower.step) / static_cast<double>(upper.step - lower.step), 0.0, 1.0);
  Seconds between;
  for (const auto& [pool, seconds] : upper.seconds) {
    const auto from = lower.seconds.find(pool);
    const double begin = from == lower.seconds.end() ? 0 : from->second;
    between[pool] = begin + part * (seconds - begin);
  }
  return between;
}

void ActivityMeter::Move(const std::string& pool, Category from, Category to, double seconds) {
  const auto found = account_.pools.find(pool);
  if (found == account_.pools.end() || !(seconds > 0)) return;
  const double moved = std::min(seconds, found->second[from]);
  found->second[from] -= moved;
  found->second[to] += moved;
}

// Half as many, twice as far apart. The first and the last stay, and those of saves.
void ActivityMeter::Thin(std::span<const int64_t> saves) {
  std::deque<Mark> kept;
  for (size_t i = 0; i < marks_.size(); ++i) {
    const bool is_save = std::ranges::find(saves, marks_[i].step) != saves.end();
    if (i % 2 == 0 || i + 1 == marks_.size() || is_save) kept.push_back(std::move(marks_[i]));
  }
  marks_ = std::move(kept);
  mark_interval_ *= 2;
}

}  // namespace medley::worker
