// Reads a CSV file in parts, on several threads where asked, with the result of
// reading it from beginning to end.
//
// A part begins behind the first line end of its megabyte. That is a row's
// beginning unless a quoted field holds the line end; whether it was shows when
// the part before has been read, and then the part is read again. So parts
// depend on the bytes alone, never on the number of threads.
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

  // How many parts are held at a time: one is read into each slot below it.
  int slots() const { return threads == 1 ? 1 : 2 * threads; }

  // Empties the slot and reads rows into it that begin before `stop`. The reader
  // counts rows and lines from the part's beginning (from the file's only where a
  // part is read again for the sake of its error).
  // Threads: calls for different slots may run at once.
  std::function<absl::Status(int slot, CsvReader& reader, size_t stop)> parse;
  // Takes what the slot holds; called for one part after the other, on the thread
  // of ReadCsvChunks. `base`: where the part begins in the file.
  std::function<absl::Status(int slot, const CsvPlace& base)> append;
};

// Errors: the first one of parse or append, as when read from beginning to end.
absl::Status ReadCsvChunks(const CsvChunks& chunks);

}  // namespace traind
