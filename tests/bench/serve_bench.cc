// Asks a Job's models for rows from several clients at once and prints what that gave, as one
// JSON line. Each client has a connection of its own and one call under way. The first
// call, which loads the models, is told apart.
//   serve_bench --server 127.0.0.1:7070 --job JOB --rows FILE.csv
#include <absl/strings/str_format.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/durable_file.h"
#include "common/data/table/csv.h"
#include "proto/training_service.grpc.pb.h"

namespace traind {
namespace {

struct Flags {
  std::string server = "127.0.0.1:7070", job, rows;
  int calls = 2000, clients = 1, rows_per_call = 1;
};

absl::Status ReadRows(const std::string& path, v1::PredictRowsRequest& all) {
  const auto text = ReadFile(path);
  if (!text.ok()) return text.status();
  const auto header = ReadCsvHeader(*text, path);
  if (!header.ok()) return header.status();
  all.mutable_columns()->Add(header->begin(), header->end());
  CsvReader reader(*text, path, DelimiterOf(*text, path));
  while (true) {
    const auto any = reader.Next();
    if (!any.ok()) return any.status();
    if (!*any) return absl::OkStatus();
    if (reader.rows() == 1) continue;  // the header
    v1::RowValues& row = *all.add_rows();
    for (const absl::string_view field : reader.fields()) row.add_values(std::string(field));
  }
}

class Client {
 public:
  explicit Client(const Flags& flags) : flags_(flags) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    stub_ = v1::TrainingService::NewStub(
        grpc::CreateCustomChannel(flags.server, grpc::InsecureChannelCredentials(), arguments));
  }
  // How long it took; the call's error is kept.
  absl::Duration Ask(const v1::PredictRowsRequest& all, int first) {
    v1::PredictRowsRequest request;
    request.set_id(flags_.job);
    *request.mutable_columns() = all.columns();
    for (int i = 0; i < flags_.rows_per_call; ++i) {
      *request.add_rows() = all.rows((first + i) % all.rows_size());
    }
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::PredictRowsReply reply;
    const absl::Time begin = absl::Now();
    const grpc::Status status = stub_->PredictRows(&context, request, &reply);
    if (!status.ok()) error_ = status.error_message();
    members_ = reply.members_size();
    return absl::Now() - begin;
  }
  const std::string& error() const { return error_; }
  int members() const { return members_; }

 private:
  const Flags& flags_;
  std::unique_ptr<v1::TrainingService::Stub> stub_;
  std::string error_;
  int members_ = 0;
};

int Run(const Flags& flags) {
  v1::PredictRowsRequest all;
  if (const absl::Status read = ReadRows(flags.rows, all); !read.ok() || all.rows_size() == 0) {
    std::fprintf(stderr, "serve_bench: %s\n", std::string(read.message()).c_str());
    return 1;
  }
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < flags.clients; ++i) clients.push_back(std::make_unique<Client>(flags));
  const absl::Duration first = clients[0]->Ask(all, 0);
  for (const auto& client : clients) client->Ask(all, 0);  // connects
  std::vector<std::vector<absl::Duration>> took(clients.size());
  std::vector<std::thread> threads;
  const absl::Time start = absl::Now();
  for (size_t i = 0; i < clients.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int call = 0; call < flags.calls / flags.clients; ++call) {
        took[i].push_back(clients[i]->Ask(all, call * flags.rows_per_call));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double wall_s = absl::ToDoubleSeconds(absl::Now() - start);
  std::vector<absl::Duration> sorted;
  for (const auto& some : took) sorted.insert(sorted.end(), some.begin(), some.end());
  std::sort(sorted.begin(), sorted.end());
  for (const auto& client : clients) {
    if (client->error().empty()) continue;
    std::fprintf(stderr, "serve_bench: %s\n", client->error().c_str());
    return 1;
  }
  const auto at_ms = [&](double share) {
    const auto last = static_cast<double>(sorted.size() - 1);
    return absl::ToDoubleMilliseconds(sorted[static_cast<size_t>(share * last)]);
  };
  const auto calls = static_cast<double>(sorted.size());
  std::printf("%s\n", absl::StrFormat(
                          R"({"bench": "serve", "clients": %d, "rows_per_call": %d, "models": %d, )"
                          R"("calls": %d, "first_ms": %.1f, "p50_ms": %.3f, "p99_ms": %.3f, )"
                          R"("max_ms": %.2f, "rows_per_s": %.0f})",
                          flags.clients, flags.rows_per_call, clients[0]->members(), sorted.size(),
                          absl::ToDoubleMilliseconds(first), at_ms(0.5), at_ms(0.99), at_ms(1),
                          calls * flags.rows_per_call / wall_s)
                          .c_str());
  return 0;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  traind::Flags flags;
  CLI::App app("Latency of rows predicted at once");
  app.add_option("--server", flags.server, "HOST:PORT of traind")->capture_default_str();
  app.add_option("--job", flags.job, "whose models")->required();
  app.add_option("--rows", flags.rows, "CSV file of rows to ask for")->required();
  app.add_option("--calls", flags.calls, "in all")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000'000));
  app.add_option("--clients", flags.clients, "at the same time")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--rows-per-call", flags.rows_per_call, "")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  CLI11_PARSE(app, argc, argv);
  return traind::Run(flags);
}
