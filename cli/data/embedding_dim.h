// The width of the rows of embedding tables that fits the columns of a table. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace medley::cli {

// For one column with so many values: 1.6 n^0.56, from 2 to 50. The rule of the library fastai (its emb_sz_rule), with
// the bound of its earlier versions.
int EmbeddingDim(int64_t values);

// One width for all columns, because they share a table: the largest of theirs, rounded up to a multiple of 4.
// `values`: how many each column has. 8 without columns.
int SharedEmbeddingDim(std::span<const int64_t> values);

}  // namespace medley::cli
