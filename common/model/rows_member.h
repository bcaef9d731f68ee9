// The names of members that live in the process of another one: a trainer that has a shard of the embedding rows is two
// members of its job, of which the second keeps the shard. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace medley::model {

inline constexpr std::string_view kRowsSuffix = "/rows";  // no pod's name has a slash

// The member that keeps the shard of the trainer with this name.
inline std::string RowsMember(std::string_view trainer) { return std::string(trainer) + std::string(kRowsSuffix); }

// True of a name that RowsMember has made: the member is no process of its own, and takes no unit.
inline bool IsRowsMember(std::string_view member) { return member.ends_with(kRowsSuffix); }

// The process that is lost with the member: the trainer of a shard that lives in one, else the member itself.
inline std::string ProcessOf(std::string_view member) {
  if (IsRowsMember(member)) member.remove_suffix(kRowsSuffix.size());
  return std::string(member);
}

}  // namespace medley::model
