#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "client/exit_codes.h"
#include "client/fetch_file.h"
#include "client/fetch_results.h"
#include "client/verbs.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

// The bytes go through a file, so that nothing is printed before the digest is checked.
int FetchToStdout(const Arguments& arguments, Environment& environment, TrainingClient& client,
                  const std::string& id, absl::Duration limit) {
  std::error_code error;
  std::string folder = (std::filesystem::temp_directory_path(error) / "trainctl.XXXXXX").string();
  if (error || mkdtemp(folder.data()) == nullptr) {
    return ReportError(environment, absl::InternalError("cannot make a temporary folder"));
  }
  auto cleanup = absl::MakeCleanup([&] { std::filesystem::remove_all(folder, error); });
  const std::string path = folder + "/artifact";
  const auto file = FetchToFile(client, id, arguments.artifact, path, limit);
  if (!file.ok()) return ReportError(environment, file.status());
  std::ifstream in(path, std::ios::binary);
  if (file->bytes > 0) environment.out << in.rdbuf();
  environment.out.flush();
  if (!in || !environment.out) {
    return ReportError(environment, absl::DataLossError("stdout did not take the whole file"));
  }
  return kExitOk;
}

// Copies what the Job's program has left. A folder that the user named may have files already,
// which are replaced; one that happens to have the Job's id may not.
int FetchProgramFiles(const Arguments& arguments, Environment& environment, TrainingClient& client,
                      const std::string& id, absl::Duration limit) {
  if (arguments.to == "-") {
    environment.err << "trainctl: " << Printable(id)
                    << " has files of a program; name a folder for them: --out DIR\n";
    return kExitUsage;
  }
  std::error_code error;
  if (arguments.to.empty() && std::filesystem::exists(id, error)) {
    environment.err << "trainctl: " << Printable(id)
                    << " exists here; to replace files in it: --out " << Printable(id) << "\n";
    return kExitUsage;
  }
  const std::string folder =
      std::filesystem::absolute(arguments.to.empty() ? id : arguments.to, error)
          .lexically_normal()
          .string();
  const bool is_new = !std::filesystem::exists(folder, error);
  const auto fetched = FetchResults(client, id, folder, limit);
  if (!fetched.ok()) {
    if (is_new) rmdir(folder.c_str());  // if nothing has come
    return ReportError(environment, fetched.status());
  }
  if (arguments.json) {
    environment.out << "{\n  \"job\": " << JsonString(id) << ",\n  \"path\": " << JsonString(folder)
                    << ",\n  \"files\": " << fetched->files << ",\n  \"bytes\": " << fetched->bytes
                    << "\n}\n";
  } else {
    environment.out << Printable(folder, 4096) << "\n";
    environment.err << fetched->files << (fetched->files == 1 ? " file, " : " files, ")
                    << fetched->bytes << " bytes, digest verified\n";
  }
  return kExitOk;
}

}  // namespace

int RunFetch(const Arguments& arguments, Environment& environment) {
  const std::string name = arguments.artifact.empty() ? "predictions.csv" : arguments.artifact;
  const std::string to = arguments.to.empty() ? name : arguments.to;
  if (arguments.to.empty() && name.find('/') != std::string::npos) {
    environment.err
        << "trainctl: the name has a folder in it; name the file to write with --to FILE\n";
    return kExitUsage;
  }
  if (to == "-" && arguments.json) {
    environment.err << "trainctl: --to - and -o json would both write to stdout\n";
    return kExitUsage;
  }
  TrainingClient client = MakeClient(arguments, environment);
  const auto job = client.GetJob(arguments.job);
  if (!job.ok()) return ReportError(environment, job.status());
  const absl::Duration limit = arguments.timeout.value_or(absl::InfiniteDuration());
  if (arguments.artifact.empty() && !job->program_results().empty()) {
    return FetchProgramFiles(arguments, environment, client, job->id(), limit);
  }
  std::error_code error;
  // A file that the user named is replaced; a file that happens to have the default name is not.
  if (arguments.to.empty() && std::filesystem::exists(to, error)) {
    environment.err << "trainctl: " << Printable(to) << " exists here; to replace it: --to "
                    << Printable(to) << "\n";
    return kExitUsage;
  }
  if (to == "-") return FetchToStdout(arguments, environment, client, job->id(), limit);
  const auto file = FetchToFile(client, job->id(), arguments.artifact, to, limit);
  if (!file.ok()) return ReportError(environment, file.status());
  const std::string path = std::filesystem::absolute(to, error).lexically_normal().string();
  if (arguments.json) {
    environment.out << "{\n  \"job\": " << JsonString(job->id())
                    << ",\n  \"name\": " << JsonString(name)
                    << ",\n  \"path\": " << JsonString(path) << ",\n  \"bytes\": " << file->bytes
                    << ",\n  \"sha256\": " << JsonString(file->sha256) << "\n}\n";
  } else {
    environment.out << Printable(path, 4096) << "\n";
    environment.err << file->bytes << " bytes, digest verified\n";
  }
  return kExitOk;
}

}  // namespace traind
