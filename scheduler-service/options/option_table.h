// A planner's table of options: what each is called, and the field of the planner's struct that it sets.
//
//   const OptionTable<SearchOptions>& Table() {
//     static const auto table = OptionTable<SearchOptions>()
//         .Integer("restarts", &SearchOptions::restarts, 1, 10'000, "random starts");
//     return table;
//   }
//
// Defaults are those of the struct. Thread-safe when built.
#pragma once

#include <absl/status/statusor.h>
#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "scheduler-service/options/check_options.h"
#include "scheduler-service/options/option.h"

namespace medley::sched {

template <typename T>
class OptionTable {
 public:
  // `computed`: the default in words, of a planner that computes it where the field is left as it is.
  OptionTable&& Integer(std::string_view name, int T::*field, int least, int most, std::string_view description,
                        std::string_view computed = {}) && {
    return std::move(*this).Add(
        {name,
         OptionKind::kInteger,
         static_cast<double>(least),
         static_cast<double>(most),
         {},
         DefaultOf(field, computed),
         description},
        [field](const model::OptionValue& value, T& out) { out.*field = static_cast<int>(std::get<double>(value)); });
  }
  OptionTable&& Number(std::string_view name, double T::*field, double least, double most, std::string_view description,
                       std::string_view computed = {}) && {
    return std::move(*this).Add(
        {name, OptionKind::kNumber, least, most, {}, DefaultOf(field, computed), description},
        [field](const model::OptionValue& value, T& out) { out.*field = std::get<double>(value); });
  }
  // `values`: what each choice means; the first is the default.
  template <typename V>
  OptionTable&& Choice(std::string_view name, V T::*field, std::vector<std::pair<std::string_view, V>> values,
                       std::string_view description) && {
    std::vector<std::string_view> names;
    for (const auto& [choice, meaning] : values) names.push_back(choice);
    const std::string first(names.front());
    return std::move(*this).Add({name, OptionKind::kChoice, 0, 0, std::move(names), first, description},
                                [field, values = std::move(values)](const model::OptionValue& value, T& out) {
                                  for (const auto& [choice, meaning] : values) {
                                    if (choice == std::get<std::string>(value)) out.*field = meaning;
                                  }
                                });
  }

  Options options() const { return options_; }

  // What a request gives, in the defaults of the struct. Errors: those of CheckOptions.
  absl::StatusOr<T> Read(std::string_view planner, const model::OptionValues& given) const {
    MEDLEY_RETURN_IF_ERROR(CheckOptions(planner, options_, given));
    T out;
    for (size_t i = 0; i < options_.size(); ++i) {
      const auto value = given.find(std::string(options_[i].name));
      if (value != given.end()) set_[i](value->second, out);
    }
    return out;
  }

 private:
  using Set = std::function<void(const model::OptionValue&, T&)>;

  OptionTable&& Add(Option option, Set set) && {
    options_.push_back(std::move(option));
    set_.push_back(std::move(set));
    return std::move(*this);
  }
  template <typename V>
  static std::string DefaultOf(V T::*field, std::string_view computed) {
    return computed.empty() ? fmt::format("{}", T().*field) : std::string(computed);
  }

  std::vector<Option> options_;
  std::vector<Set> set_;  // of the option with the same index
};

}  // namespace medley::sched
