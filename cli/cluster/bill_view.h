// `medley explain --bill`: what a job has cost by category, beside what its first plan promised. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/goodput/bill.h"
#include "kube/object.h"

namespace medley::cli {

// The lines of a report about the TrainingJob. One line that says so when nothing was paid yet.
std::vector<std::string> BillLines(const kube::Object& job);

// "81.3 % useful training; start-up 10.2 %, evaluation 5.0 %": the share of training and the largest others. Empty:
// nothing was paid.
std::string BillSentence(const goodput::Bill& bill);

}  // namespace medley::cli
