#include "server/admin.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "server/access/audit_chain.h"
#include "server/access/token_book.h"
#include "server/access/worker_owners.h"
#include "server/archive/archive.h"
#include "server/archive/file_mirror.h"
#include "server/archive/follower.h"
#include "server/config.h"
#include "server/objects/s3_objects.h"
#include "server/retention/scrub.h"
#include "server/standalone.h"
#include "server/store/maintenance.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolders[] = {"jobs", "cache"};

absl::Status SystemError(const std::error_code& error, const std::string& what) {
  return ErrnoStatus(error.value(), what);
}

std::string Database(const std::string& dir) { return absl::StrCat(dir, "/", kDatabaseFile); }

// Syncs everything that was written to the file system of a folder.
absl::Status SyncAll(const std::string& dir) {
  const int fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, dir);
  const int failed = syncfs(fd) == 0 ? 0 : errno;
  close(fd);
  return failed == 0 ? absl::OkStatus() : ErrnoStatus(failed, absl::StrCat("cannot sync ", dir));
}

// Copies a file, a link or a folder without its content, unless it is there. A file that is deleted
// meanwhile is left out.
absl::Status CopyEntry(const fs::path& from, const fs::path& to) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(from, error);
  if (fs::is_directory(status)) return MakeDirs(to.string());
  if (fs::is_symlink(status)) {
    fs::copy_symlink(from, to, error);
  } else if (fs::is_regular_file(status)) {
    fs::copy_file(from, to, error);
  } else {
    return absl::OkStatus();
  }
  // A name that is replaced while its folder is read may appear in it twice.
  if (!error || error == std::errc::no_such_file_or_directory || error == std::errc::file_exists) {
    return absl::OkStatus();
  }
  return SystemError(error, absl::StrCat("cannot copy ", from.string()));
}

// Copies a folder below `from` to the same place below `to`. What a process is writing just now is
// left out.
absl::Status CopyFolder(const std::string& from, const std::string& to, const std::string& folder) {
  const fs::path root = fs::path(from) / folder;
  RETURN_IF_ERROR(MakeDirs(absl::StrCat(to, "/", folder)));
  std::error_code error;
  fs::recursive_directory_iterator entry(root, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (absl::StrContains(entry->path().filename().string(), kTemporaryMark)) continue;
    // Not fs::relative(), which follows links.
    RETURN_IF_ERROR(CopyEntry(entry->path(), to / entry->path().lexically_relative(from)));
  }
  if (!error || error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  return SystemError(error, absl::StrCat("cannot read ", root.string()));
}

// Returns a line of kBackupList for each regular file of a backup.
absl::StatusOr<std::string> ListFiles(const std::string& backup) {
  std::string list;
  for (const auto& entry : fs::recursive_directory_iterator(backup)) {
    if (!fs::is_regular_file(entry.symlink_status())) continue;
    ASSIGN_OR_RETURN(const FileDigest digest, DigestFile(entry.path().string()));
    absl::StrAppend(&list, digest.sha256, "  ", entry.path().lexically_relative(backup).string(),
                    "\n");
  }
  return list;
}

absl::Status CheckStanding(const std::string& dir, std::vector<std::string>* wrong) {
  ASSIGN_OR_RETURN(const std::vector<StandingFile> files, ReadStandingFiles(Database(dir)));
  for (const StandingFile& file : files) {
    // The folder of a Job may have been removed by hand.
    if (!fs::exists(fs::path(dir) / JobDir(file.job))) continue;
    const auto digest = DigestFile(absl::StrCat(dir, "/", file.path));
    if (!digest.ok()) {
      wrong->push_back(absl::StrCat("job ", file.job, ": ", digest.status().message()));
    } else if (digest->sha256 != file.sha256) {
      wrong->push_back(absl::StrCat("job ", file.job, ": ", file.path, " is damaged"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckList(const std::string& backup) {
  const auto list = ReadFile(absl::StrCat(backup, "/", kBackupList));
  if (absl::IsNotFound(list.status())) {
    return absl::DataLossError(absl::StrCat(backup, " has no ", kBackupList, ": it is not whole"));
  }
  RETURN_IF_ERROR(list.status());
  for (const absl::string_view line : absl::StrSplit(*list, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> entry = absl::StrSplit(line, "  ");
    const auto digest = DigestFile(absl::StrCat(backup, "/", entry.second));
    if (!digest.ok() || digest->sha256 != entry.first) {
      return absl::DataLossError(
          absl::StrCat(backup, "/", entry.second, " is missing or damaged; nothing was restored"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNoDatabase(const std::string& state_dir) {
  if (!fs::exists(Database(state_dir))) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      Database(state_dir), " exists; move it and its -wal, -shm and -mark away first"));
}

bool IsEmpty(const std::string& dir) {
  std::error_code error;
  return !fs::exists(dir, error) || fs::is_empty(dir, error);
}

int Report(const absl::Status& status, const std::string& done) {
  if (!status.ok()) {
    std::cerr << "traind: error: " << status.message() << "\n";
    return kExitError;
  }
  std::cout << done << "\n";
  return kExitOk;
}

int ReportCheck(const std::string& state_dir) {
  auto wrong = CheckState(state_dir);
  if (!wrong.ok()) return Report(wrong.status(), "");
  for (const std::string& job : JobsOnDisk(state_dir)) {
    for (const DamagedFile& file : FindDamage(state_dir, job, [](int64_t) { return true; })) {
      if (!file.manifest.empty()) wrong->push_back(Text(file));
    }
  }
  for (const std::string& line : *wrong) std::cout << line << "\n";
  if (wrong->empty()) std::cout << state_dir << " is sound\n";
  return wrong->empty() ? kExitOk : kExitError;
}

int ReportAudit(const std::string& state_dir, const std::string& noted) {
  const auto check = CheckAuditLog(state_dir, noted);
  if (!check.ok()) return Report(check.status(), "");
  std::string text = absl::StrCat(check->lines, " lines of the audit log follow from each other");
  if (check->unchained > 0) {
    absl::StrAppend(&text, ", but for the first ", check->unchained, ", of an earlier version");
  }
  return Report(absl::OkStatus(),
                absl::StrCat(text, "; the digest of the last one is ", check->digest));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckState(const std::string& state_dir) {
  ASSIGN_OR_RETURN(std::vector<std::string> wrong, CheckDatabase(Database(state_dir)));
  // A damaged database need not tell its Predictions.
  if (const absl::Status checked = CheckStanding(state_dir, &wrong); !checked.ok()) {
    wrong.emplace_back(checked.message());
  }
  if (const auto audit = CheckAuditLog(state_dir, ""); !audit.ok()) {
    wrong.emplace_back(audit.status().message());
  }
  return wrong;
}

absl::Status BackUp(const std::string& state_dir, const std::string& backup) {
  if (!IsEmpty(backup)) {
    return absl::FailedPreconditionError(absl::StrCat(backup, " exists and is not empty"));
  }
  RETURN_IF_ERROR(MakeDirs(backup));
  // The database goes first: the files that it names are there and stay for a while.
  RETURN_IF_ERROR(CopyDatabase(Database(state_dir), Database(backup)));
  for (const char* const folder : kFolders) {
    RETURN_IF_ERROR(CopyFolder(state_dir, backup, folder));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> wrong, CheckState(backup));
  if (!wrong.empty()) return absl::DataLossError(wrong[0]);
  ASSIGN_OR_RETURN(const std::string list, ListFiles(backup));
  RETURN_IF_ERROR(SyncAll(backup));
  return WriteFileDurably(absl::StrCat(backup, "/", kBackupList), list);
}

absl::Status Restore(const std::string& backup, const std::string& state_dir) {
  RETURN_IF_ERROR(CheckList(backup));
  RETURN_IF_ERROR(MakeDirs(state_dir));
  ASSIGN_OR_RETURN(const FileLock lock, FileLock::Acquire(absl::StrCat(state_dir, "/", kLockFile)));
  RETURN_IF_ERROR(CheckNoDatabase(state_dir));
  for (const char* const folder : kFolders) {
    RETURN_IF_ERROR(CopyFolder(backup, state_dir, folder));
  }
  // The database appears last and whole: a restore that was killed can be repeated.
  const std::string copy = absl::StrCat(Database(state_dir), kTemporaryMark, "restored");
  std::error_code error;
  fs::copy_file(Database(backup), copy, fs::copy_options::overwrite_existing, error);
  if (error) return SystemError(error, absl::StrCat("cannot copy ", Database(backup)));
  RETURN_IF_ERROR(SkipAttempts(copy));
  RETURN_IF_ERROR(SyncAll(state_dir));
  return RenameDurably(copy, Database(state_dir));
}

absl::Status RestoreArchive(const std::string& artifacts, const std::string& state_dir) {
  ASSIGN_OR_RETURN(const auto objects, OpenObjects(artifacts, ObjectUse::kRead));
  ASSIGN_OR_RETURN(const Archive archive, Archive::Open(objects));
  RETURN_IF_ERROR(MakeDirs(state_dir));
  ASSIGN_OR_RETURN(const FileLock lock, FileLock::Acquire(absl::StrCat(state_dir, "/", kLockFile)));
  RETURN_IF_ERROR(CheckNoDatabase(state_dir));
  const std::string copy = absl::StrCat(Database(state_dir), kTemporaryMark, "restored");
  Follower follower(&archive, absl::StrCat(copy, "-following"));
  RETURN_IF_ERROR(follower.CatchUp());
  // As in BackUp, the database comes before the files that it names.
  if (objects->is_folder()) {
    for (const char* const folder : {"jobs", "cache", kUploadsDir}) {
      RETURN_IF_ERROR(CopyFolder(artifacts, state_dir, folder));
    }
  } else {
    RETURN_IF_ERROR(FileMirror(objects, state_dir, &SystemClock()).Get(false));
  }
  for (const char* const name : {kTokenFile, kWorkerOwnersFile, kAuditFile, kOlderAuditFile}) {
    const auto content = objects->Read(Archive::FileKey(name));
    if (absl::IsNotFound(content.status())) continue;
    RETURN_IF_ERROR(content.status());
    RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(state_dir, "/", name), *content));
  }
  RETURN_IF_ERROR(follower.Finish(copy));
  RETURN_IF_ERROR(SkipAttempts(copy));
  RETURN_IF_ERROR(SyncAll(state_dir));
  return RenameDurably(copy, Database(state_dir));
}

int RunAdmin(int argc, char** argv) {
  std::string state_dir, folder, noted;
  CLI::App app("traind admin - copies and checks state folders");
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* about, const char* folder_about) {
    CLI::App* const command = app.add_subcommand(name, about);
    command->add_option("--state", state_dir, "the state folder")->required();
    if (folder_about != nullptr) {
      command->add_option("FOLDER", folder, folder_about)->required();
    }
    return command;
  };
  const CLI::App* const backup =
      add("backup", "Copy a state folder, also while traind uses it", "a new folder for the copy");
  const CLI::App* const restore =
      add("restore", "Make a state folder of a backup", "the folder of the backup");
  add("fsck", "Check the database, the standing predictions and the audit log", nullptr);
  CLI::App* const audit =
      add("audit", "Check that no line of the audit log was changed or removed", nullptr);
  audit->add_option("--noted", noted, "a digest that this command has told earlier");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (*backup) {
    return Report(BackUp(state_dir, folder), absl::StrCat("backed up to ", folder));
  }
  if (*restore) {
    return Report(Restore(folder, state_dir), absl::StrCat("restored to ", state_dir));
  }
  if (*audit) return ReportAudit(state_dir, noted);
  return ReportCheck(state_dir);
}

}  // namespace traind
