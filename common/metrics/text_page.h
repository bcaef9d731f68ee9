// A page of the text exposition format, written family by family: for values that live elsewhere and are
// only looked at when somebody scrapes, so that a series is gone as soon as what it told of is gone.
//
//   TextPage page;
//   page.Family("medley_job_loss", TextPage::Kind::kGauge, "Mean loss of the last steps");
//   page.Sample({{"namespace", "default"}, {"job", "adult"}}, 0.31);
//   std::string text = page.Take();
//
// A family without samples writes nothing. Families of one name must not be written twice on one page.
// Not synchronised. Owner: whoever answers a scrape.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace medley::metrics {

// In the order in which they are written.
using LabelPairs = std::vector<std::pair<std::string_view, std::string_view>>;

class TextPage {
 public:
  enum class Kind { kCounter, kGauge, kSummary };

  void Family(std::string_view name, Kind kind, std::string_view help);
  // `suffix`: "_sum" or "_count" of a summary. Values of labels may hold any character.
  void Sample(const LabelPairs& labels, double value, std::string_view suffix = "");
  // The page; empties it.
  std::string Take();

 private:
  std::string name_;
  std::string header_;  // of the family, until it has a sample
  std::string text_;
};

}  // namespace medley::metrics
