// What a message takes of the processor of a unit at each end. A pure value.
#pragma once

#include <algorithm>

namespace medley::model {

// A unit that computes with many bytes between two messages finds neither the code nor the buffers of messages in
// the processor's caches, and messages evict what it computes with. So a message costs more there than in a row.
// In between it is in proportion.
struct MessageCost {
  double amid_computation = 0;  // seconds, where `computed_bytes` or more are computed with between two messages
  double in_a_row = 0;          // where nothing is computed
  double computed_bytes = 0;    // 0: a message always costs the same

  double Seconds(double bytes_between_messages) const {
    if (bytes_between_messages >= computed_bytes) return amid_computation;
    return in_a_row + (amid_computation - in_a_row) * std::max(0.0, bytes_between_messages) / computed_bytes;
  }
};

// Converts a Link or a Resource. What is not known of messages in a row is as amid computation, and none of them costs
// more.
template <class T>
MessageCost MessageCostOf(const T& of) {
  const double amid = of.processor_seconds_per_message, row = of.processor_seconds_per_message_in_a_row;
  if (row <= 0 || row >= amid || of.computed_bytes_per_message <= 0) return {amid, amid, 0};
  return {amid, row, of.computed_bytes_per_message};
}

// What one device computes with between two of its messages, in the mean: each micro-batch passes twice through the
// parameters of its dense layers and their gradients. `messages`: that it sends and receives in a step.
inline double BytesBetweenMessages(double parameter_bytes, int micro_batches, double messages) {
  constexpr double kPasses = 2, kWithGradients = 2;
  return messages > 0 ? kPasses * kWithGradients * parameter_bytes * micro_batches / messages : 0;
}

}  // namespace medley::model
