// Which cases of a program that several tests share belong to one of them. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

namespace medley::test_program {

struct NamedTest {
  std::string_view name;                // of the link by which the program is started
  std::vector<std::string_view> files;  // relative to the root of the repository
};

// The tests of this program. Defined by a source that medley_test_program generates.
const std::vector<NamedTest>& TestsOfThisProgram();

struct Case {
  std::string name;  // SUITE.CASE, as in a filter
  std::string file;  // in which it is; absolute or relative to the root
};

// The filter of GoogleTest that leaves of `filter` the cases that the test named `program` has. A path may stand before
// that name. A name that no test has means all of them. Errors: NotFound where none of its files has a case.
absl::StatusOr<std::string> FilterOf(std::string_view program, const std::vector<NamedTest>& tests,
                                     const std::vector<Case>& cases, std::string_view filter);

}  // namespace medley::test_program
