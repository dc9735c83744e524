// Stands in for trainrank and trainprep: speaks their protocol and does what the
// task's spec says, {"script": ["started", "progress", ...]}; a rank r > 0 follows
// "script<r>" where there is one. Words, done in order:
//   started probe progress epoch checkpoint    send that
//   fold fold:time    FoldSaved, not last, or the last one stopped by time
//   train:N           N Progress, 10 ms apart; ends early at a Stop, which ends the script
//                     with the last FoldSaved (predict) and Finished
//   train             the same without end
//   flood:N           N Progress at once
//   deaf              sends Progress without end and reads nothing
//   hang              stops itself (SIGSTOP)
//   signal:N exit:N   dies
//   fail:REASON:TEXT  Failed
//   stderr:TEXT stdout:TEXT  print
//   child:FILE        leaves a child behind, whose pid it writes into FILE
// A script that runs out is Finished. PREPARE without a script: TableReady,
// FloorReady, Finished.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/time/time.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "worker/rank_protocol/line_channel.h"
#include "worker/rank_protocol/messages.h"

namespace {

namespace rp = traind::rank_protocol;

constexpr absl::Duration kStep = absl::Milliseconds(10);

class FakeRank {
 public:
  void Run() {
    bool prepared = false;
    rp::Ready ready;
    ready.pid = getpid();
    ready.engine = "fake-1";
    ready.device = getenv("CUDA_VISIBLE_DEVICES");
    // A prepare says nothing before its task; one that did would be ignored.
    Send(ready);
    while (!prepared) {
      const rp::ToProcess message = Read(absl::InfiniteDuration());
      if (const auto* train = std::get_if<rp::Train>(&message)) {
        attempt_ = train->attempt;
        fold_ = train->fold;
        RunScript(train->spec_json, train->rank, {});
        Send(ready);
      } else if (const auto* prepare = std::get_if<rp::Prepare>(&message)) {
        attempt_ = prepare->attempt;
        RunScript(prepare->spec_json, 0, {"table", "floor"});
        prepared = true;
      }
    }
  }

 private:
  template <class M>
  void Send(M message) {
    if (!channel_.WriteLine(rp::Encode(rp::FromProcess(message)), absl::Seconds(30)).ok()) exit(0);
  }

  // Exit and the end of input end the process; a timeout gives Exit back.
  rp::ToProcess Read(absl::Duration timeout) {
    const auto line = channel_.ReadLine(timeout);
    if (absl::IsDeadlineExceeded(line.status())) return rp::Exit{};
    if (!line.ok()) exit(0);
    auto message = rp::DecodeToProcess(*line);
    if (!message.ok()) exit(4);
    if (std::holds_alternative<rp::Exit>(*message)) exit(0);
    return *std::move(message);
  }

  void RunScript(const std::string& spec, int rank, std::vector<std::string> script) {
    const nlohmann::json json = nlohmann::json::parse(spec, nullptr, false);
    std::string key = "script";
    if (json.is_object() && json.contains(absl::StrCat("script", rank))) {
      key = absl::StrCat("script", rank);
    }
    if (json.is_object() && json.contains(key)) {
      script = json[key].get<std::vector<std::string>>();
    }
    for (const std::string& word : script) {
      if (!Do(word)) return;
    }
    Send(rp::Finished{attempt_});
  }

  // false: the task is over.
  bool Do(const std::string& word) {
    const std::vector<std::string> parts = absl::StrSplit(word, absl::MaxSplits(':', 1));
    const std::string& verb = parts[0];
    const std::string argument = parts.size() > 1 ? parts[1] : "";
    int number = 0;
    (void)absl::SimpleAtoi(argument, &number);
    if (verb == "started") Send(rp::Started{{10, "fp32", 32, 100, 0, 0, ""}, attempt_});
    if (verb == "probe") Send(rp::Probe{{0.01, 0.02, 20, 0.1, 0.1}, attempt_});
    if (verb == "progress") Send(rp::Progress{{++step_, 0.5, 0.7, 0.001, 100, 3200, 0}, attempt_});
    if (verb == "epoch") Send(rp::Epoch{{++epoch_, 100, 0.5, 0.6, 0.9, 0.9, 1, 0.1}, attempt_});
    if (verb == "checkpoint") {
      Send(rp::CheckpointSaved{{step_, 1, "checkpoint-1.json", "ab", 10, 0.9, 5}, attempt_});
    }
    if (verb == "table") {
      rp::TableReady table;
      table.attempt = attempt_;
      table.table = "cache/fake.table";
      Send(table);
    }
    if (verb == "floor") Send(rp::FloorReady{{"prior", 0.5, "aa", "bb"}, attempt_});
    if (verb == "fold") {
      traind::StopCause cause = traind::StopCause::kNone;
      traind::EnumField(&cause, NamesOf(cause)).set_name(argument);
      SendFold(cause);
    }
    for (int i = 0; verb == "flood" && i < number; ++i) Do("progress");
    if (verb == "train") return Train(parts.size() > 1 ? number : -1);
    while (verb == "deaf") {
      Do("progress");
      usleep(10'000);
    }
    if (verb == "hang") raise(SIGSTOP);
    if (verb == "signal") raise(number);
    if (verb == "exit") _exit(number);
    if (verb == "stderr") std::cerr << argument << std::endl;
    if (verb == "stdout") std::cout << argument << std::endl;
    if (verb == "child") LeaveChild(argument);
    if (verb == "fail") {
      const std::vector<std::string> why = absl::StrSplit(argument, absl::MaxSplits(':', 1));
      Send(rp::Failed{attempt_, traind::AttemptEndReasonByName(why[0]), why.back()});
      return false;
    }
    return true;
  }

  void LeaveChild(const std::string& file) {
    const pid_t pid = fork();
    if (pid > 0) std::ofstream(file) << pid << std::endl;
    while (pid == 0) pause();
  }

  void SendFold(traind::StopCause stopped_by) {
    rp::FoldSaved fold;
    fold.attempt = attempt_;
    fold.fold = fold_;
    fold.last = stopped_by != traind::StopCause::kNone;
    fold.stopped_by = stopped_by;
    fold.complete =
        stopped_by == traind::StopCause::kEpochs || stopped_by == traind::StopCause::kPatience;
    fold.score = 0.9;
    fold.oof = "oof.npy";
    fold.oof_sha256 = "cd";
    Send(fold);
  }

  bool Train(int steps) {
    for (int i = 0; steps < 0 || i < steps; ++i) {
      Do("progress");
      const rp::ToProcess message = Read(kStep);
      const auto* stop = std::get_if<rp::Stop>(&message);
      if (stop == nullptr) continue;
      if (stop->predict) SendFold(traind::CauseOf(stop->reason));
      if (!stop->predict) Do("checkpoint");
      Send(rp::Finished{attempt_});
      return false;
    }
    return true;
  }

  rp::LineChannel channel_{dup(0), dup(1)};
  int64_t attempt_ = 0;
  int64_t step_ = 0;
  int epoch_ = 0;
  int fold_ = 0;
};

}  // namespace

// With FAKE_BROKEN_GPU set to its UUID, a GPU cannot be used.
int CheckDevice() {
  const char* const broken = getenv("FAKE_BROKEN_GPU");
  if (broken == nullptr || std::string(broken) != getenv("CUDA_VISIBLE_DEVICES")) return 0;
  std::cerr << "the NVIDIA driver on your system is too old" << std::endl;
  return 1;
}

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "check-device") return CheckDevice();
  FakeRank().Run();
}
