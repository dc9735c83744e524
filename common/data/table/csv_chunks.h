// Reads a CSV file in parts, on several threads if asked, with the same result as reading it from
// beginning to end.
//
// A part is assumed to begin behind the first line end of its megabyte. The assumption is wrong if
// a quoted field contains that line end; this is known once the part before has been read, and then
// the part is read again. So the parts depend on the bytes alone, never on the number of threads.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <functional>
#include <string>

#include "common/data/table/csv.h"

namespace traind {

struct CsvChunks {
  absl::string_view bytes;  // all of the file
  std::string name;         // what errors call it
  char delimiter = ',';
  CsvPlace first;   // where the first data row begins
  int threads = 1;  // at least 1
  size_t chunk_bytes = 1 << 20;

  // How many parts are in memory at a time; each is read into its own slot.
  int slots() const { return threads == 1 ? 1 : 2 * threads; }

  // Empties the slot and reads the rows that begin before `stop` into it. The reader counts rows
  // and lines from the part's beginning (from the file's only when a part is read again for its
  // error message).
  // Threads: calls for different slots may run at once.
  std::function<absl::Status(int slot, CsvReader& reader, size_t stop)> parse;
  // Appends the rows of the slot to the result; called for one part after the other, on the thread
  // of ReadCsvChunks. `base`: where the part begins in the file.
  std::function<absl::Status(int slot, const CsvPlace& base)> append;
};

// Errors: the first error of parse or append that reading from beginning to end would meet.
absl::Status ReadCsvChunks(const CsvChunks& chunks);

}  // namespace traind
