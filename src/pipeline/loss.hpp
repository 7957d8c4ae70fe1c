// What is known of the error of what this process encodes with a loss, for the statistics.
#pragma once

#include <optional>

#include "codec/spec.hpp"
#include "core/asked.hpp"
#include "core/region.hpp"
#include "core/status.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

struct Runtime;

/// Of a message, or of the result of a reduction; errors are absolute.
struct Loss {
  bool is_any = false;               ///< is there one, as far as the codec tells?
  std::optional<double> bound = {};  ///< on each finite element; empty: none is known here
  double measured = 0;               ///< the largest, where it was measured

  /// Of elements of `device`, or of the host, encoded with what became of the spec `asked`. A
  /// device may find a relative bound itself; then it is not known.
  static Loss of(const Spec& asked, const Spec& resolved, int device, double measured);

  /// As Outcome::bound has it.
  double announced_bound() const { return is_any ? bound.value_or(Outcome::unknown) : 0; }
};

/// Tells it in a row of the record.
void note(trace::Row& row, const Loss& loss);

/// Is what is encoded with such a spec measured? Where the program's user wants that, and no bound
/// tells it.
bool measures_error(const Runtime& runtime, const Spec& spec);

/// Measures what encoding `region` with `spec` loses: encodes and decodes it once more, on the
/// host, whose codecs write the bytes that devices do. Waits for a device that has to copy. Returns
/// a status.
Status measure_error(Runtime& runtime, const Spec& spec, const Region& region, double& error);

}  // namespace mpress::engine
