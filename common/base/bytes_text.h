#pragma once

#include <cstdint>
#include <string>

namespace traind {

// "512 bytes", "1.5 KiB", "3.0 GiB", for people.
std::string BytesText(int64_t bytes);

}  // namespace traind
