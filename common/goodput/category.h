// The categories of paid unit-seconds, and a coordinator's account of them. Values and pure functions; thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace medley::goodput {

enum class Category {
  kWaiting,     // paid, but of no use yet: the unit, or another one that the job needs to begin, has no node
  kStartUp,     // from the node until the unit is in force: image, process, data, profile
  kDataWait,    // of training: waiting for samples
  kTraining,    // useful
  kCheckpoint,  // training stands still for a checkpoint, the last one and the finished model included
  kEvaluation,
  kMove,      // training stands still while the job changes to another plan
  kRecovery,  // training stands still after a loss
  kLost,      // training whose steps were rolled back
  kIdle       // not needed: standing by, or after the end of the job
};
inline constexpr size_t kCategoryCount = 10;
inline constexpr std::array<Category, kCategoryCount> kCategories = {
    Category::kWaiting,    Category::kStartUp, Category::kDataWait, Category::kTraining, Category::kCheckpoint,
    Category::kEvaluation, Category::kMove,    Category::kRecovery, Category::kLost,     Category::kIdle};

std::string_view ToString(Category category);  // "dataWait", as in status.goodput and in metrics
std::optional<Category> ParseCategory(std::string_view name);

// An amount for each category: seconds, or USD.
class Amounts {
 public:
  double& operator[](Category category) { return values_[static_cast<size_t>(category)]; }
  double operator[](Category category) const { return values_[static_cast<size_t>(category)]; }
  double Sum() const;
  Amounts& operator+=(const Amounts& other);
  bool operator==(const Amounts&) const = default;

 private:
  std::array<double, kCategoryCount> values_{};
};

// The pool of a coordinator's own pod in accounts and bills.
inline constexpr char kCoordinatorPool[] = "";

// What a coordinator knows: for how long units were in force, and what they did meanwhile. Cumulative since the job's
// first generation under this id. Seconds may leave a category for another one, when steps are lost.
struct Account {
  std::string id;             // of the journal that holds it; empty: no generation was in force yet
  int64_t first_samples = 0;  // committed when it began: of the checkpoint, or 0
  int64_t samples = 0;        // committed now
  // Unit-seconds by pool. kCoordinatorPool: seconds of the job, which are those of its coordinator. Never kWaiting nor
  // kStartUp.
  std::map<std::string, Amounts> pools;
  bool operator==(const Account&) const = default;
};

}  // namespace medley::goodput
