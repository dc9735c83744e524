// trainctl's process: its environment and its signals.
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "client/cli.h"
#include "client/exit_codes.h"

namespace {

std::atomic<bool> interrupted{false};
std::atomic<bool> held{false};
// Written before the handler can run with another text; read by the handler.
char farewell[512];
std::atomic<size_t> farewell_bytes{0};

extern "C" void OnInterrupt(int) {
  // The second Ctrl-C always ends the process.
  if (held.load() && !interrupted.exchange(true)) return;
  const ssize_t ignored = write(STDERR_FILENO, farewell, farewell_bytes.load());
  (void)ignored;
  _exit(traind::kExitInterrupted);
}

void HoldInterrupts(bool hold, const std::string& text) {
  farewell_bytes = 0;
  const size_t bytes = std::min(text.size(), sizeof farewell);
  std::memcpy(farewell, text.data(), bytes);
  farewell_bytes = bytes;
  held = hold;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Follows the order in which the C library looks for the locale.
bool LocaleIsUtf8() {
  std::string locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (locale.empty()) locale = Variable(name);
  }
  for (char& c : locale) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

std::string ConfigFile() {
  if (const std::string file = Variable("TRAINCTL_CONFIG"); !file.empty()) return file;
  const std::string home = Variable("HOME"), config = Variable("XDG_CONFIG_HOME");
  if (!config.empty()) return config + "/trainctl/config.yaml";
  return home.empty() ? "" : home + "/.config/trainctl/config.yaml";
}

traind::TerminalSize ErrSize() {
  winsize size{};
  traind::TerminalSize terminal;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.columns = size.ws_col;
    if (size.ws_row > 0) terminal.rows = size.ws_row;
  }
  return terminal;
}

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  sigaction(SIGINT, &action, nullptr);

  traind::Environment environment{std::cin, std::cout, std::cerr, traind::SystemClock()};
  const std::string term = Variable("TERM");
  const bool dumb = term.empty() || term == "dumb";
  environment.out_is_terminal = isatty(STDOUT_FILENO) != 0;
  environment.err_is_terminal = isatty(STDERR_FILENO) != 0 && !dumb;
  environment.color_wished = !dumb && Variable("NO_COLOR").empty();
  environment.utf8 = LocaleIsUtf8();
  environment.err_size = ErrSize;
  environment.interrupted = &interrupted;
  environment.hold_interrupts = HoldInterrupts;
  environment.default_server = Variable("TRAINCTL_SERVER");
  environment.default_context = Variable("TRAINCTL_CONTEXT");
  environment.config_file = ConfigFile();
  return traind::RunTrainctl(std::vector<std::string>(argv + 1, argv + argc), environment);
}
