// What trainctl knows of the world around it, so that tests can be that world.
#pragma once

#include <atomic>
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

// Threads: confined to one, but for `interrupted`, which a signal handler sets.
struct Environment {
  std::istream& in;
  std::ostream& out;  // data
  std::ostream& err;  // progress, hints, errors
  const Clock& clock;
  bool out_is_terminal = false;
  bool err_is_terminal = false;  // one that understands cursor movement
  bool color_wished = true;      // neither NO_COLOR nor TERM=dumb
  std::string default_server = "127.0.0.1:7070";
  // Asked at every redraw: the window may change.
  std::function<TerminalSize()> err_size = [] { return TerminalSize(); };
  // Ctrl-C was pressed, while interrupts are held.
  std::atomic<bool>* interrupted = nullptr;
  // Held: a first Ctrl-C only sets `interrupted`. Not held: it ends the process
  // with exit code 130, saying `farewell`.
  std::function<void(bool held, const std::string& farewell)> hold_interrupts =
      [](bool, const std::string&) {};
};

}  // namespace traind
