#include "kube/schema/formats.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include "common/base/clock.h"

namespace medley::kube {

bool HasFormat(std::string_view format, const std::string& text) {
  static constexpr char kOctet[] = "(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])";
  if (format == "date-time") return base::ParseTime(text).ok();
  if (format == "date") return RE2::FullMatch(text, "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])");
  if (format == "ipv4") return RE2::FullMatch(text, fmt::format("({0}\\.){{3}}{0}", kOctet));
  if (format == "ipv6") return RE2::FullMatch(text, "[0-9a-fA-F:]*:[0-9a-fA-F:.]*");
  if (format == "cidr") return RE2::FullMatch(text, "[0-9a-fA-F:.]+/[0-9]{1,3}");
  if (format == "uuid" || format == "uuid4") {
    return RE2::FullMatch(text, "(?i)[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}");
  }
  if (format == "byte") return RE2::FullMatch(text, "([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}(==)?|[A-Za-z0-9+/]{3}=?)?");
  if (format == "duration") {
    return RE2::FullMatch(text, "[-+]?([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h|d|w| )+)+|0");
  }
  if (format == "email") return RE2::FullMatch(text, "[^@\\s]+@[^@\\s]+");
  if (format == "hostname") return RE2::FullMatch(text, "[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?");
  if (format == "uri") return RE2::FullMatch(text, "[A-Za-z][A-Za-z0-9+.-]*:[^\\s]*");
  return true;
}

}  // namespace medley::kube
