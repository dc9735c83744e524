// Submits a Job, follows it to its end and writes the answer.
//
//   train SERVER SPEC.yaml OUTPUT.csv
#include <traind/client/training_client.h>
#include <traind/common/spec/yaml_spec.h>

#include <absl/time/clock.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace {

using traind::JobWatch;
namespace v1 = traind::v1;

// Exits with what is wrong, where something is.
template <typename Result>
Result Must(absl::StatusOr<Result> result) {
  if (result.ok()) return *std::move(result);
  std::cerr << result.status() << "\n";
  std::exit(1);
}

v1::JobSpec ReadSpecFile(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  traind::SpecReadOptions options;
  options.file = path;
  options.base_dir = std::filesystem::absolute(path).parent_path();
  options.now = absl::Now();
  traind::SpecReadResult read = traind::ReadSpec(text.str(), options);
  for (const traind::SpecProblem& problem : read.problems) std::cerr << problem.ToString() << "\n";
  if (!read.problems.empty()) std::exit(2);
  return read.spec;
}

bool IsOver(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_SUCCEEDED || job.state() == v1::JOB_STATE_FAILED ||
         job.state() == v1::JOB_STATE_CANCELLED;
}

// Follows the Job, also over a restart of traind.
v1::Job Follow(traind::TrainingClient& client, v1::Job job) {
  traind::Backoff backoff;
  while (!IsOver(job)) {
    const auto watch = client.WatchJob(job.id(), job.version());
    JobWatch::Event event = JobWatch::Event::kNothing;
    while (event != JobWatch::Event::kEnded) {
      event = watch->Next(absl::Seconds(1), job);
      if (event != JobWatch::Event::kJob) continue;
      backoff.Reset();
      std::cout << job.id() << " " << v1::JobState_Name(job.state());
      if (job.scores().has_oof()) std::cout << "  out of fold " << job.scores().oof();
      std::cout << std::endl;
    }
    if (!watch->status().ok() && !traind::IsConnectionLoss(watch->status())) {
      Must<v1::Job>(watch->status());
    }
    if (!IsOver(job)) absl::SleepFor(backoff.Next());
  }
  return job;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: train SERVER SPEC.yaml OUTPUT.csv\n";
    return 2;
  }
  traind::TrainingClient::Options options;
  options.server = argv[1];
  traind::TrainingClient client(options, traind::SystemClock());
  v1::SubmitRequest request;
  *request.mutable_spec() = ReadSpecFile(argv[2]);
  // A call that is repeated with the same id, as after a broken connection, makes no second Job.
  request.set_request_id("example-" + std::to_string(absl::ToUnixMicros(absl::Now())));
  const v1::Job job = Follow(client, Must(client.Submit(request)).job());
  if (job.state() != v1::JOB_STATE_SUCCEEDED) {
    std::cerr << job.end_message() << "\n";
    return 1;
  }
  std::ofstream out(argv[3], std::ios::binary);
  Must(client.FetchArtifact(job.id(), "predictions.csv", absl::Minutes(1),
                            [&](absl::string_view bytes) {
                              out << bytes;
                              return out ? absl::OkStatus() : absl::UnknownError("cannot write");
                            }));
  std::cout << job.predictions().rows() << " rows in " << argv[3] << "\n";
}
