#include "common/goodput/category.h"

#include <numeric>

namespace medley::goodput {
namespace {

constexpr std::array<std::string_view, kCategoryCount> kNames = {
    "waiting", "startUp", "dataWait", "training", "checkpoint", "evaluation", "move", "recovery", "lost", "idle"};

}  // namespace

std::string_view ToString(Category category) { return kNames[static_cast<size_t>(category)]; }

std::optional<Category> ParseCategory(std::string_view name) {
  for (const Category category : kCategories) {
    if (ToString(category) == name) return category;
  }
  return std::nullopt;
}

double Amounts::Sum() const { return std::accumulate(values_.begin(), values_.end(), 0.0); }

Amounts& Amounts::operator+=(const Amounts& other) {
  for (size_t i = 0; i < kCategoryCount; ++i) values_[i] += other.values_[i];
  return *this;
}

}  // namespace medley::goodput
