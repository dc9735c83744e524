// Everything that trainctl uses of its surroundings, so that tests can replace it.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <istream>
#include <ostream>
#include <string>

#include "common/base/clock.h"

namespace traind {

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};

// Threads: confined to one, except `interrupted`, which a signal handler sets.
struct Environment {
  std::istream& in;
  std::ostream& out;  // data
  std::ostream& err;  // progress, hints, errors
  const Clock& clock;
  bool out_is_terminal = false;
  bool err_is_terminal = false;      // and understands cursor movement
  bool color_wished = true;          // neither NO_COLOR nor TERM=dumb
  bool utf8 = false;                 // the locale's characters
  std::string default_server = "";   // $TRAINCTL_SERVER
  std::string default_context = "";  // $TRAINCTL_CONTEXT
  std::string config_file = "";      // empty: there is none
  // Called at every redraw, because the window may change its size.
  std::function<TerminalSize()> err_size = [] { return TerminalSize(); };
  // The space of the disk that has a folder; capacity 0: it cannot be told.
  std::function<std::filesystem::space_info(const std::filesystem::path&)> disk_space =
      [](const std::filesystem::path& folder) {
        std::error_code error;
        const std::filesystem::space_info space = std::filesystem::space(folder, error);
        return error ? std::filesystem::space_info{} : space;
      };
  // Set when Ctrl-C is pressed while interrupts are held.
  std::atomic<bool>* interrupted = nullptr;
  // While interrupts are held, a first Ctrl-C only sets `interrupted`. Else it prints `farewell`
  // and ends the process with exit code 130.
  std::function<void(bool held, const std::string& farewell)> hold_interrupts =
      [](bool, const std::string&) {};

  // Returns the same surroundings with another stdout, which is no terminal.
  Environment WithOut(std::ostream& other) const {
    Environment copy{in, other, err, clock};
    copy.err_is_terminal = err_is_terminal;
    copy.color_wished = color_wished;
    copy.utf8 = utf8;
    copy.default_server = default_server;
    copy.default_context = default_context;
    copy.config_file = config_file;
    copy.err_size = err_size;
    copy.disk_space = disk_space;
    copy.interrupted = interrupted;
    copy.hold_interrupts = hold_interrupts;
    return copy;
  }
};

}  // namespace traind
