// The embeddings of a program that can be tables of rows: a step reads and updates only the rows that it uses. Pure.
//
// They are those that the user's code made with sparse=True, if a sample's whole numbers are nothing but their rows:
// of each step's samples, these numbers are replaced by positions among the step's distinct rows
// (BlockCompute::SetRows).
#pragma once

#include <string>
#include <vector>

#include "worker/exported/program.h"

namespace medley::worker::cut {

struct Table {
  int node = 0;           // the call: "embedding" or "embedding_bag"
  std::string parameter;  // its weight: Input::name
  std::string input;      // of the model, whose numbers are rows: Input::name
};

struct Tables {
  std::vector<Table> tables;       // by node, ascending
  std::vector<std::string> notes;  // why embeddings with sparse=True are none
};

Tables FindTables(const exported::Program& program);

}  // namespace medley::worker::cut
