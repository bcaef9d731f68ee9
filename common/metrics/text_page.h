// Writes a page of the text exposition format, family by family, from values that are kept elsewhere. The page is
// written anew at each scrape, so the series of a deleted object disappear at once.
//
//   TextPage page;
//   page.Family("medley_job_loss", TextPage::Kind::kGauge, "Mean loss of the last steps");
//   page.Sample({{"namespace", "default"}, {"job", "adult"}}, 0.31);
//   std::string text = page.Take();
//
// A family without samples writes nothing. Do not write two families of the same name on one page.
// Not thread-safe. Owner: the handler of the scrape.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace medley::metrics {

// Labels are written in this order.
using LabelPairs = std::vector<std::pair<std::string_view, std::string_view>>;

class TextPage {
 public:
  enum class Kind { kCounter, kGauge, kSummary };

  void Family(std::string_view name, Kind kind, std::string_view help);
  // `suffix`: "_sum" or "_count" of a summary. Label values may contain any character; they are escaped.
  void Sample(const LabelPairs& labels, double value, std::string_view suffix = "");
  // Returns the page and empties it.
  std::string Take();

 private:
  std::string name_;
  std::string header_;  // of the current family, until its first sample is written
  std::string text_;
};

}  // namespace medley::metrics
