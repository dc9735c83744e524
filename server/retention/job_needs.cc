#include "server/retention/job_needs.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <vector>

#include "common/base/job_layout.h"

namespace traind {
namespace {

std::string KeyOfTable(const std::string& table) {
  const std::string name = table.substr(table.rfind('/') + 1);
  return name.substr(0, name.find('.'));
}

void AddMember(const Member& member, absl::flat_hash_set<std::string>* folders) {
  folders->insert(AttemptFolder(member.oof));
  folders->insert(AttemptFolder(member.test));
}

}  // namespace

JobAtWork NeedsOf(const Job& job) {
  JobAtWork needs;
  needs.id = job.id;
  needs.from = job.spec.from;
  needs.models_from = job.spec.models_from;
  if (!job.table.table.empty()) needs.table = KeyOfTable(job.table.table);
  const bool trains = !job.tasks.empty() && !UsesModels(job.tasks[0].kind);
  needs.reads_data = trains && job.table.table.empty();
  if (job.spec.cache_read) needs.reuses = job.spec.cache_key;
  return needs;
}

std::string AttemptFolder(absl::string_view path) {
  const std::vector<absl::string_view> parts = absl::StrSplit(path, absl::MaxSplits('/', 2));
  return parts.size() < 3 ? std::string() : absl::StrCat(parts[0], "/", parts[1]);
}

absl::flat_hash_set<std::string> NeededFolders(const Job& job,
                                               const PublishedPrediction* standing) {
  absl::flat_hash_set<std::string> folders;
  for (const Task& task : job.tasks) {
    // It may hold a checkpoint that traind was not told of.
    if (task.kind == TaskKind::kTrain) folders.insert(absl::StrCat("attempts/", task.attempt));
    if (task.member) AddMember(*task.member, &folders);
    if (!task.checkpoint) continue;
    absl::string_view manifest = task.checkpoint->manifest;
    absl::ConsumePrefix(&manifest, JobDir(job.id) + "/");
    folders.insert(AttemptFolder(manifest));
  }
  if (job.prediction) {
    for (const Member& member : job.prediction->members) AddMember(member, &folders);
  }
  if (standing != nullptr) {
    for (const Member& member : standing->members) AddMember(member, &folders);
  }
  return folders;
}

}  // namespace traind
