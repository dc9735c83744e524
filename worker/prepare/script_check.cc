#include "worker/prepare/script_check.h"

#include <absl/strings/str_cat.h>
#include <signal.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "common/base/run_program.h"
#include "common/base/status_macros.h"
#include "worker/task/failure.h"

namespace traind {
namespace {

// The codes of missing and unseen values, which precede the categories (see RowEncoder).
constexpr int64_t kCodesBefore = 2;

std::vector<std::string> Arguments(const ScriptCheck& check, const Table& table) {
  const TableSchema& schema = table.schema();
  int64_t numeric = 0;
  std::vector<std::string> cardinalities;
  for (const Column& column : schema.features) {
    if (column.floor_only) continue;
    if (column.kind == ColumnKind::kNumeric) {
      ++numeric;
    } else {
      cardinalities.push_back(
          absl::StrCat(static_cast<int64_t>(column.categories.size()) + kCodesBefore));
    }
  }
  const bool classes = schema.target_kind == TargetKind::kClasses;
  if (check.past_is_input) numeric += 2 * static_cast<int64_t>(schema.targets());
  std::vector<std::string> arguments = {
      check.program,
      "try-script",
      check.path,
      check.sha256,
      absl::StrCat(numeric),
      absl::StrCat(check.window),
      absl::StrCat(classes ? schema.classes.size() : schema.targets())};
  arguments.insert(arguments.end(), cardinalities.begin(), cardinalities.end());
  return arguments;
}

absl::Status Wrong(const ScriptCheck& check, absl::string_view what) {
  return UserError(absl::StrCat("model.script: ", check.path, ": ", what));
}

}  // namespace

absl::Status CheckScript(const ScriptCheck& check, const Table& table, absl::Duration patience) {
  constexpr size_t kMostBytes = 1 << 16;
  const auto run = RunProgram(Arguments(check, table), patience, kMostBytes);
  if (absl::IsDeadlineExceeded(run.status())) {
    return Wrong(check, absl::StrCat("did not finish a few rows within ",
                                     absl::FormatDuration(patience), ": does it loop for ever?"));
  }
  RETURN_IF_ERROR(run.status());
  const auto line = nlohmann::json::parse(run->output, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) {
    const bool by_time = WIFSIGNALED(run->ended) && WTERMSIG(run->ended) == SIGXCPU;
    return Wrong(check, by_time
                            ? "needs more than ten seconds for a few rows: does it loop for ever?"
                            : "the process that tried it ended without an answer");
  }
  if (line.contains("error") && line["error"].is_string()) {
    return UserError(line["error"].get<std::string>());
  }
  return absl::OkStatus();
}

}  // namespace traind
