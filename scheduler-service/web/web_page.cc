#include "scheduler-service/web/web_page.h"

#include "common/base/embedded_file.h"
#include "common/base/status.h"
#include "common/document/parse.h"

MEDLEY_EMBEDDED(web_files);
MEDLEY_EMBEDDED(web_examples);

namespace medley::sched {
namespace {

constexpr char kJson[] = "application/json";

std::string TypeOf(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  return "text/javascript; charset=utf-8";
}

}  // namespace

absl::StatusOr<WebPage> WebPage::Make() {
  WebPage page;
  for (const base::EmbeddedFile& file : medley_embedded_web_files()) {
    const std::string path = file.name == "index.html" ? "/" : "/" + std::string(file.name);
    page.files_.push_back({path, TypeOf(file.name), file.bytes});
  }
  std::string names;
  for (const base::EmbeddedFile& file : medley_embedded_web_examples()) {
    const std::string name(file.name.substr(0, file.name.rfind('.')));
    const auto tree = document::Parse(file.bytes);
    if (!tree.ok()) return base::Annotate(tree.status(), name);
    page.files_.push_back({"/examples/" + name + ".json", kJson, page.made_.emplace_back(tree->dump())});
    names += (names.empty() ? "\"" : ", \"") + name + "\"";
  }
  page.files_.push_back({"/examples/index.json", kJson, page.made_.emplace_back("[" + names + "]\n")});
  return page;
}

}  // namespace medley::sched
