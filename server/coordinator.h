// Puts traind together: state lock, store, control loop, gRPC services, the standalone Worker.
// State is loaded first; the ports open last.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <string>

#include "server/access/gate.h"
#include "server/access/local_users.h"
#include "server/access/worker_owners.h"
#include "server/archive/archive_writer.h"
#include "server/archive/tenure.h"
#include "server/config.h"
#include "server/end_hook.h"
#include "server/http/gateway.h"
#include "server/intake/intake.h"
#include "server/loop/control_loop.h"
#include "server/retention/collector.h"
#include "server/retention/scrub.h"
#include "server/rpc/file_service.h"
#include "server/rpc/grpc_server.h"
#include "server/rpc/training_calls.h"
#include "server/rpc/training_service.h"
#include "server/rpc/worker_gateway.h"
#include "server/standalone.h"
#include "server/store/sqlite_store.h"

namespace traind {

// What main tells, and is asked, while a standby waits.
struct StandbyCalls {
  // Once: another traind, on that host, is at work.
  std::function<void(const std::string& host)> waits = [](const std::string&) {};
  std::function<bool()> stop = [] { return false; };
};

// Owns all parts of traind.
// Threads: confined to one.
class Coordinator {
 public:
  // Errors: Aborted (another traind uses the state folder, or the artifacts), Unavailable (the port
  // is taken), Cancelled (a standby was told to stop), those of SqliteStore::Open.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(const Config& config,
                                                            const StandbyCalls& standby = {});
  ~Coordinator();

  int port() const { return server_->port(); }
  // 0: there is no HTTP port.
  int http_port() const { return http_ == nullptr ? 0 : http_->port(); }
  // OK until the store has failed for good, or the archive may be another one's.
  absl::Status fatal() const;
  // See ControlLoop.
  absl::Duration SinceLastTurn() const { return loop_->SinceLastTurn(); }

  // Saves checkpoints, publishes, ends the Workers and their Ranks within `grace`, and stores
  // everything. Call it once.
  void Stop(absl::Duration grace);

 private:
  explicit Coordinator(FileLock lock) : lock_(std::move(lock)) {}
  absl::Status TakeArchive(const Config& config, const StandbyCalls& standby);
  absl::Status Load(const Config& config);
  absl::Status Listen(const Config& config);

  FileLock lock_;
  std::unique_ptr<Tenure> tenure_;          // null: no archive
  std::unique_ptr<ArchiveWriter> archive_;  // likewise
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<ControlLoop> loop_;
  std::unique_ptr<Intake> intake_;
  std::unique_ptr<GrpcWorkerGateway> gateway_;
  std::unique_ptr<GrpcFileService> files_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<Scrubber> scrubber_;
  std::unique_ptr<TrainingCalls> calls_;
  std::unique_ptr<EndHook> end_hook_;
  std::unique_ptr<TrainingService> service_;
  std::unique_ptr<Gate> gate_;                   // null: no TLS
  std::unique_ptr<WorkerOwners> worker_owners_;  // null: no TLS
  // The users who may call at the ports for clients; null: any user of this machine may.
  std::unique_ptr<LocalUsers> grpc_users_, http_users_;
  std::unique_ptr<HttpGateway> http_;          // null: --http off
  std::unique_ptr<GrpcServer> server_;         // for clients, and for Workers unless standalone
  std::unique_ptr<GrpcServer> worker_server_;  // standalone: on worker.sock
  std::unique_ptr<WorkerSupervisor> supervisor_;
};

}  // namespace traind
