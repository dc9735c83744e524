#include "common/data/table/parquet.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "common/base/run_program.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

// The path where deploy/parquet.sh installs the plug-in, unless the environment names another.
std::string Plugin() {
  const char* named = std::getenv("TRAIND_PARQUET");
  if (named != nullptr && *named != '\0') return named;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    const passwd* user = getpwuid(getuid());
    home = user == nullptr ? "/" : user->pw_dir;
  }
  return absl::StrCat(home, "/.local/share/traind/parquet/traind-parquet");
}

}  // namespace

absl::Status CheckParquetPlugin() {
  if (access(Plugin().c_str(), X_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this is a Parquet table, and the plug-in that reads such tables is not installed: run "
      "deploy/parquet.sh");
}

absl::StatusOr<std::string> ParquetToCsv(const std::string& path, const MappedFile& file,
                                         absl::Duration patience) {
  constexpr size_t kMostBytes = size_t{16} << 30;
  RETURN_IF_ERROR(CheckParquetPlugin());
  ASSIGN_OR_RETURN(ProgramRun run,
                   RunProgram({Plugin(), file.PathForOthers()}, patience, kMostBytes));
  if (WIFEXITED(run.ended) && WEXITSTATUS(run.ended) == 0) return std::move(run.output);
  // If the plug-in failed, its output is one line with the reason, unless it broke off within the
  // table.
  const absl::string_view why = absl::StripSuffix(run.output, "\n");
  const bool told = !why.empty() && why.find('\n') == why.npos;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", told ? why : "the plug-in for Parquet broke off"));
}

}  // namespace traind
