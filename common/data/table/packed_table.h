// Reads a table that is packed by gzip, or as the one file of a ZIP archive.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>

namespace traind {

// Whether the bytes, the beginning of a file, are those of such a table. The first file of a ZIP
// archive must be one by its name: .csv, .tsv, .tab or .txt.
bool IsPackedTable(absl::string_view bytes);

// Unpacks a table piece by piece.
// Threads: confined to one.
class PackedTable {
 public:
  // bytes: a file of which IsPackedTable is true; the caller keeps them. whole: all of the file; if
  // not, its end counts as the end of the table. InvalidArgument: a ZIP archive is damaged, holds
  // another number of files than one, or packs it by another method than deflate.
  static absl::StatusOr<std::unique_ptr<PackedTable>> Open(absl::string_view bytes, bool whole,
                                                           const std::string& name);
  virtual ~PackedTable() = default;

  // Fills `out`, except at the end of the table. Returns the number of bytes. InvalidArgument names
  // the file: it is cut or damaged.
  virtual absl::StatusOr<size_t> Read(absl::Span<char> out) = 0;
  // The number of packed bytes that were read so far.
  virtual size_t taken() const = 0;
  // What errors call the table: the file's name, with that of the archive's file behind it.
  virtual const std::string& name() const = 0;
};

}  // namespace traind
