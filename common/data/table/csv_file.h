// A file as the readers of tables get it.
#pragma once

#include <absl/strings/string_view.h>

#include <string>
#include <vector>

namespace traind {

struct CsvFile {
  std::string name;                        // what errors call it
  absl::string_view bytes;                 // all of it; kept by the caller
  std::vector<std::string> warnings = {};  // of how the bytes were made of the user's file
  bool checked = false;                    // the bytes are known to be UTF-8 without a zero byte
};

}  // namespace traind
