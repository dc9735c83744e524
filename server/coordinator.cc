#include "server/coordinator.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <unistd.h>

#include <set>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/host_port.h"
#include "common/base/job_layout.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "server/http/session.h"
#include "server/store/maintenance.h"

namespace traind {
namespace {

constexpr absl::Duration kLockPatience = absl::Seconds(1);
// Workers reconnect by themselves, so their streams need no time to end.
constexpr absl::Duration kServerGrace = absl::Milliseconds(500);

std::string UniqueId() {
  return absl::StrCat(getpid(), "-", absl::ToUnixNanos(SystemClock().WallNow()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(const Config& config,
                                                                const StandbyCalls& standby) {
  const std::string lock_path = absl::StrCat(config.state_dir, "/", kLockFile);
  auto lock = FileLock::Acquire(lock_path);
  // A traind that was just killed may not be gone yet.
  const absl::Duration give_up = SystemClock().MonotonicNow() + kLockPatience;
  while (absl::IsAborted(lock.status()) && SystemClock().MonotonicNow() < give_up) {
    absl::SleepFor(absl::Milliseconds(20));
    lock = FileLock::Acquire(lock_path);
  }
  if (absl::IsAborted(lock.status())) {
    return absl::AbortedError(absl::StrCat("another traind uses the state folder ",
                                           config.state_dir, ": ", lock.status().message()));
  }
  RETURN_IF_ERROR(lock.status());
  std::unique_ptr<Coordinator> coordinator(new Coordinator(*std::move(lock)));
  if (!config.artifacts.empty()) RETURN_IF_ERROR(coordinator->TakeArchive(config, standby));
  RETURN_IF_ERROR(coordinator->Load(config));
  RETURN_IF_ERROR(coordinator->Listen(config));
  return coordinator;
}

Coordinator::~Coordinator() { Stop(absl::ZeroDuration()); }

absl::Status Coordinator::TakeArchive(const Config& config, const StandbyCalls& standby) {
  TenureOptions options;
  options.artifacts = config.artifacts;
  options.state_dir = config.state_dir;
  options.standby = config.standby;
  options.times.ttl = config.takeover_after;
  options.files = {kTokenFile, kWorkerOwnersFile, kEndHookFile};
  options.logs = {{kAuditFile, kOlderAuditFile}};
  options.fold = FoldLog;
  options.waits = standby.waits;
  options.stop = standby.stop;
  ASSIGN_OR_RETURN(tenure_, Tenure::Begin(std::move(options), &SystemClock()));
  archive_ =
      std::make_unique<ArchiveWriter>(tenure_->archive(), tenure_->holder(), tenure_->begun());
  return absl::OkStatus();
}

absl::Status Coordinator::fatal() const {
  RETURN_IF_ERROR(loop_->fatal());
  return tenure_ == nullptr ? absl::OkStatus() : tenure_->Check();
}

absl::Status Coordinator::Load(const Config& config) {
  SqliteStoreOptions store;
  store.accept_loss = config.accept_loss;
  store.archive = archive_.get();
  store.skip_attempts = tenure_ != nullptr && tenure_->copied();
  if (tenure_ != nullptr) {
    store.before_archive = [this](const std::vector<std::string>& jobs) {
      tenure_->GiveFilesOf(jobs);
    };
  }
  ASSIGN_OR_RETURN(store_,
                   SqliteStore::Open(absl::StrCat(config.state_dir, "/", kDatabaseFile), store));
  LoopOptions options;
  options.state_dir = config.state_dir;
  options.core.standalone = config.standalone;
  options.core.max_owner_jobs = config.owner_jobs;
  options.core.max_owner_slots = config.owner_slots;
  if (config.preempt_after) options.core.preempt_after = *config.preempt_after;
  ASSIGN_OR_RETURN(loop_, ControlLoop::Create(options, store_.get(), &SystemClock()));
  for (const Quota& quota : config.quotas) {
    SetQuota event;
    event.quota = quota;
    ASSIGN_OR_RETURN(event.history, store_->UsageSince(loop_->Now() - quota.period));
    loop_->Post(std::move(event));
  }
  if (!config.tls_dir.empty()) {
    gate_ = std::make_unique<Gate>(config.state_dir);
    worker_owners_ = std::make_unique<WorkerOwners>(
        config.state_dir, [this](const std::string& name) { return gate_->tokens().Knows(name); });
  }
  if (config.own_user_only) {
    grpc_users_ = std::make_unique<LocalUsers>(HostOf(config.listen));
    http_users_ = std::make_unique<LocalUsers>(HostOf(config.http));
  }
  // Specs may also name files that clients have sent.
  std::vector<std::string> roots = config.data_roots;
  const std::string uploads = absl::StrCat(config.files_dir(), "/", kUploadsDir);
  roots.push_back(uploads);
  intake_ = std::make_unique<Intake>(roots, config.scripts, config.programs, config.program_owners,
                                     uploads);
  WorkerGatewayOptions gateway;
  gateway.lease = options.core.lease;
  gateway.coordinator_id = UniqueId();
  gateway.epoch = tenure_ == nullptr ? 0 : tenure_->begun().epoch;
  gateway.data_roots = std::move(roots);
  gateway.gate = gate_.get();
  if (gate_ != nullptr) {
    gateway.claim = [this](const std::string& worker, const std::string& token) {
      return worker_owners_->Claim(worker, token);
    };
  }
  gateway_ = std::make_unique<GrpcWorkerGateway>(
      gateway, &SystemClock(), [this](Event event) { loop_->Post(std::move(event)); },
      [this](const std::string& job, AckCommand ack) {
        loop_->AdoptPrediction(job, std::move(ack));
      });
  const auto find_job = [this](const std::string& id) -> std::shared_ptr<const Job> {
    if (auto job = loop_->views().Find(id).job) return job;
    absl::StatusOr<Job> ended = store_->GetJob(id);
    return ended.ok() ? std::make_shared<const Job>(*std::move(ended)) : nullptr;
  };
  const bool linked = config.files_dir() != config.state_dir;
  files_ = linked
               ? std::make_unique<GrpcFileService>(config.files_dir(), find_job, config.state_dir)
               : std::make_unique<GrpcFileService>(config.state_dir, find_job);
  if (gate_ != nullptr) {
    files_->TakeFromOwnWorkers(
        [this](const grpc::ServerContextBase& context, const std::string& worker) -> absl::Status {
          ASSIGN_OR_RETURN(const Caller caller, CallerOf(context, {gate_.get(), nullptr}));
          return worker_owners_->Claim(worker, caller.name);
        });
  }
  CollectorOptions retention;
  retention.state_dir = config.state_dir;
  retention.shared = !config.standalone || linked;
  retention.limits = config.retention;
  retention.log = kWorkerLogFile;
  retention.disk_share = config.disk_share;
  collector_ = std::make_unique<Collector>(retention, loop_.get(), store_.get());
  ScrubberOptions scrub;
  scrub.state_dir = config.state_dir;
  scrub.every = config.scrub_every;
  scrubber_ = std::make_unique<Scrubber>(
      scrub,
      [this](const std::string& id) {
        const std::shared_ptr<const Job> job = loop_->views().Find(id).job;
        return job != nullptr && !IsTerminal(job->state);
      },
      [this](const DamagedFile& file) {
        TRAIND_LOG(WARNING) << Text(file);
        loop_->Post(FileDamaged{file.job, absl::StrCat(file.path, ": ", file.why)});
      });
  calls_ =
      std::make_unique<TrainingCalls>(config.state_dir, loop_.get(), store_.get(), intake_.get(),
                                      gateway_.get(), collector_.get(), config.submit_rate);
  service_ =
      std::make_unique<TrainingService>(calls_.get(), CallChecks{gate_.get(), grpc_users_.get()});
  return absl::OkStatus();
}

absl::Status Coordinator::Listen(const Config& config) {
  loop_->Start(gateway_.get());
  collector_->Start();
  scrubber_->Start();
  end_hook_ = std::make_unique<EndHook>(config.state_dir, config.on_end, &loop_->views(),
                                        store_.get(), calls_.get());
  RETURN_IF_ERROR(end_hook_->Start());
  std::vector<grpc::Service*> services = {service_.get()};
  if (!config.standalone) services.insert(services.end(), {gateway_.get(), files_.get()});
  const PortSecurity security = {config.tls_dir, gate_.get()};
  ASSIGN_OR_RETURN(server_, GrpcServer::Listen(config.listen, services,
                                               {v1::TrainingService::service_full_name()},
                                               gate_ == nullptr ? nullptr : &security));
  if (grpc_users_ != nullptr) grpc_users_->ListenAt(server_->port());
  if (!config.http.empty()) {
    HttpGatewayOptions http;
    http.address = config.http;
    http.names = config.http_hosts;
    http.data_root = config.data_roots.front();
    http.grpc_figures = [this] { return service_->figures(); };
    http.tls_dir = config.http_tls ? config.tls_dir : "";
    if (gate_ != nullptr) {
      http.tokens = true;
      http.admit = [this](const std::string& rpc, const HttpRequest& request) {
        return gate_->Admit(TrainingMethod(rpc), AuthorizationOf(request), false,
                            SystemClock().WallNow());
      };
      http.record = [this](const Caller& caller, const std::string& rpc, const std::string& subject,
                           const absl::Status& outcome) {
        gate_->Record(caller, rpc, subject, outcome, SystemClock().WallNow());
      };
    } else if (http_users_ != nullptr) {
      http.admit = [this](const std::string&,
                          const HttpRequest& request) -> absl::StatusOr<Caller> {
        RETURN_IF_ERROR(http_users_->Check(request.peer));
        return Caller();
      };
    }
    ASSIGN_OR_RETURN(http_, HttpGateway::Start(http, calls_.get(), loop_.get()));
    if (http_users_ != nullptr) http_users_->ListenAt(http_->port());
  }
  if (!config.standalone) return absl::OkStatus();

  ASSIGN_OR_RETURN(worker_server_,
                   GrpcServer::ListenOnSocket(config.state_dir, kWorkerSocket, {gateway_.get()}));
  supervisor_ = std::make_unique<WorkerSupervisor>(
      WorkerProcessOptions{config.worker_binary, config.state_dir, config.slots,
                           config.worker_labels},
      [this] {
        const uint64_t session = gateway_->newest_session();
        // Workers that have attached, and those that an earlier traind gave work to.
        std::set<std::string> workers;
        for (const v1::WorkerInfo& worker : gateway_->Workers()) workers.insert(worker.id());
        for (const auto& job : loop_->views().Active()) {
          for (const Attempt& attempt : job->attempts) workers.insert(attempt.worker);
        }
        for (const std::string& worker : workers) loop_->Post(WorkerDied{worker, session});
      },
      [this] { return gateway_->heartbeats(); });
  return supervisor_->Start();
}

void Coordinator::Stop(absl::Duration grace) {
  if (loop_ == nullptr) return;
  const bool sound = fatal().ok();
  if (supervisor_ != nullptr) supervisor_->StopWatching();
  if (server_ != nullptr && grace > absl::ZeroDuration()) {
    loop_->Post(ShutdownRequested{});
    if (supervisor_ != nullptr) {
      if (!gateway_->WaitForNone(grace)) {
        TRAIND_LOG(WARNING) << "the Worker has not ended within " << absl::FormatDuration(grace);
      }
      supervisor_->WaitForEnd(absl::Seconds(2));
    }
  }
  loop_->views().Close();  // ends watchers' streams
  if (end_hook_ != nullptr) end_hook_->Stop();
  if (http_ != nullptr) http_->Stop();
  if (server_ != nullptr) server_->Stop(kServerGrace);
  if (worker_server_ != nullptr) worker_server_->Stop(kServerGrace);
  collector_->Stop();
  scrubber_->Stop();
  loop_->Stop();
  http_.reset();
  server_.reset();
  worker_server_.reset();
  service_.reset();
  end_hook_.reset();
  calls_.reset();
  collector_.reset();
  files_.reset();
  gateway_.reset();
  loop_.reset();
  store_.reset();
  archive_.reset();
  // Everything is written, so another traind need not wait.
  if (tenure_ != nullptr && sound) tenure_->Release();
  tenure_.reset();
}

}  // namespace traind
