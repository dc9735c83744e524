// The resolved spec of a Job in its row of the database. Most of its bytes are the same in all
// specs, and with them a page would have room for one Job alone.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Returns what is stored of a text: the byte 1, and then in turn bytes of its own and a piece of a
// dictionary, as numbers: how many bytes and they themselves; where the piece begins and how long
// it is. The last piece may be missing.
// Threads: safe, here and below.
std::string PackSpec(absl::string_view text);

// Makes the text of what is stored. What does not begin with the byte 1 is the text itself, as an
// earlier version has stored it. DataLoss: it is damaged.
absl::Status UnpackSpec(std::string& text);

}  // namespace traind
