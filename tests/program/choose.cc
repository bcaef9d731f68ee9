#include "tests/program/choose.h"

#include <algorithm>

#include "common/base/status.h"

namespace medley::test_program {

absl::StatusOr<std::string> FilterOf(std::string_view program, const std::vector<NamedTest>& tests,
                                     const std::vector<Case>& cases, std::string_view filter) {
  const std::string_view name = program.substr(program.rfind('/') + 1);  // the whole where there is no '/'
  const auto test = std::ranges::find(tests, name, &NamedTest::name);
  std::string left(filter);
  if (test == tests.end()) return left;
  bool excludes = left.find('-') != std::string::npos;  // what follows is excluded
  bool any = false;
  for (const Case& c : cases) {
    if (std::ranges::any_of(test->files, [&](std::string_view file) { return c.file.ends_with(file); })) {
      any = true;
      continue;
    }
    left += (excludes ? ":" : "-") + c.name;
    excludes = true;
  }
  if (!any) return base::NotFound("the program has no case of the files of {}", name);
  return left;
}

}  // namespace medley::test_program
