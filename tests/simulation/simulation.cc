#include "tests/simulation/simulation.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <memory>

#include "tests/simulation/clients.h"
#include "tests/simulation/fleet.h"
#include "tests/simulation/searches.h"
#include "tests/simulation/sim_collector.h"
#include "tests/simulation/sim_coordinator.h"
#include "tests/simulation/sim_worker.h"

namespace traind::simulation {
namespace {

// Once nothing goes wrong any more, all Jobs are over after so long, those without a deadline
// as well; one that is not has got stuck.
constexpr absl::Duration kGiveUp = absl::Minutes(5);

// Links that are broken come back within so long after that, and the ends of streams are noticed.
constexpr absl::Duration kLinksHeal = absl::Seconds(70);

class Scenario {
 public:
  Scenario(uint64_t seed, With with, Machines machines)
      : seed_(seed),
        world_(seed),
        of_after_(seed ^ 0xaf7e5),
        of_operator_(seed ^ 0x09e7a),
        of_power_(seed ^ 0x90e12),
        of_preemption_(seed ^ 0x93ee3),
        of_fleet_(seed ^ 0xf1ee7),
        of_limits_(seed ^ 0x11a17),
        disk_(&world_),
        with_(with),
        machines_(machines) {}
  Outcome Run();

 private:
  void ChoosePreemption();
  void ChooseLimits();
  std::string OwnerOf(const std::string& request) const;
  void MakeMachines();
  void MakeJobs();
  void MakeClients();
  void ChooseAfter(const std::string& request, int jobs, Spec& spec);
  // The Jobs of those requests that are not over; false: one of them is not acknowledged yet.
  bool FindAfter(const std::string& request, std::vector<std::string>& ids);
  void SubmitJob(const std::string& request, int tries);
  void SubmitConflict(const std::string& request);
  using MakeEvent = std::function<Event(CallId, const std::string& job)>;
  void Ask(const std::string& request, MakeEvent make, int tries);
  void MakeChanges(const std::string& request, absl::Duration at, bool bounded, double window);
  void ProposeTrials(const std::string& request, absl::Duration at, double window);
  void ChooseOperations();
  void SetMode(const std::string& worker, WorkerMode mode, absl::Duration grace);
  void FaultTick();
  void LosePower();
  void StopFaults();
  bool AllOver();
  // The gangs that all Workers have for it.
  int Gangs(const Spec& spec) const { return CountGangs(fleet_, spec); }

  const uint64_t seed_;
  World world_;
  // Chances of their own, so that the other choices stay those of a world without `after`,
  // operator, losses of power, preemption, labels and limits.
  Chance of_after_, of_operator_, of_power_, of_preemption_, of_fleet_, of_limits_;
  Disk disk_;
  const With with_;
  const Machines machines_;
  Faults faults_;
  CoreOptions options_;
  std::unique_ptr<SimCoordinator> coordinator_;
  std::unique_ptr<SimCollector> collector_;
  std::unique_ptr<Clients> clients_;  // null: nobody asks for more
  std::vector<std::unique_ptr<SimWorker>> workers_;
  std::map<std::string, JobTruth> truths_;
  std::map<std::string, std::string> acked_;               // request to job
  std::map<std::string, std::vector<std::string>> after_;  // requests that it waits for
  Fleet fleet_;
  bool faults_on_ = true;
  bool may_fail_ = false;
  bool operates_ = false;
  absl::Time last_due_;
};

// Folds take seconds here, so that what a cluster does in minutes happens faster.
void Scenario::ChoosePreemption() {
  Chance& chance = of_preemption_;
  if (machines_ == Machines::kFleet) {
    options_.preempt_after = absl::Seconds(chance.LogUniform(0.2, 1.5));
    options_.preempt_least_run = absl::Seconds(chance.LogUniform(0.1, 1.5));
    options_.preempt_pause = absl::Seconds(chance.LogUniform(1, 15));
    options_.preempt_grace = absl::Seconds(chance.LogUniform(0.2, 4));
    if (chance.Happens(0.03)) options_.preempt_after = absl::InfiniteDuration();
    return;
  }
  options_.preempt_after = absl::Seconds(chance.LogUniform(0.3, 8));
  options_.preempt_least_run = absl::Seconds(chance.LogUniform(0.1, 8));
  options_.preempt_pause = absl::Seconds(chance.LogUniform(1, 60));
  options_.preempt_grace = absl::Seconds(chance.LogUniform(0.5, 10));
  if (chance.Happens(0.15)) options_.preempt_after = absl::InfiniteDuration();
}

void Scenario::ChooseLimits() {
  if (machines_ != Machines::kLimited) return;
  options_.max_owner_slots = of_limits_.Int(1, 4);
}

// Two owners, where there is a limit for each.
std::string Scenario::OwnerOf(const std::string& request) const {
  if (machines_ != Machines::kLimited) return "local";
  return (request.back() - '0') % 2 == 0 ? "ada" : "bob";
}

void Scenario::MakeMachines() {
  Chance& chance = world_.chance;
  options_.lease = absl::Seconds(chance.Int(3, 15));
  coordinator_ = std::make_unique<SimCoordinator>(&world_, &disk_, &faults_, options_);
  const bool spanned = machines_ == Machines::kSpanned;
  if (machines_ == Machines::kFleet) {
    fleet_ = MakeFleet(of_fleet_);
  } else {
    const int workers = options_.standalone ? 1 : chance.Int(spanned ? 2 : 1, spanned ? 4 : 3);
    for (int i = 0; i < workers; ++i) fleet_.push_back(PlainWorker(chance.Int(1, 4), spanned));
  }
  for (size_t i = 0; i < fleet_.size(); ++i) {
    SimWorker::Options options;
    options.id = absl::StrCat("w", i);
    nlohmann::json& record = world_.Record("machine");
    record["worker"] = options.id;
    record.update(Described(fleet_[i]));
    options.standalone = options_.standalone;
    options.heartbeat = options_.lease / 5;
    options.lease = options_.lease;
    if (fleet_[i].reachable) options.address = absl::StrCat("10.0.0.", i + 1);
    options.slots = fleet_[i].slots;
    options.labels = fleet_[i].labels;
    workers_.push_back(std::make_unique<SimWorker>(&world_, &disk_, coordinator_.get(), &truths_,
                                                   &faults_, std::move(options)));
    coordinator_->AddWorker(workers_.back().get());
  }
}

void Scenario::MakeJobs() {
  Chance& chance = world_.chance;
  const bool fleet = machines_ == Machines::kFleet;
  const int jobs = !fleet && chance.Happens(0.45) ? 1 : chance.Int(2, 6);
  const bool burst = chance.Happens(0.3);
  std::map<std::string, absl::Time> due;
  nlohmann::json& record = world_.Record("seed");
  may_fail_ = faults_.any() || faults_.heavy_tails;
  record["faults"] = may_fail_;
  record["jobs"] = jobs;
  record["slots"] = SlotCounts(fleet_);
  record["standalone"] = options_.standalone;
  const absl::Duration preempted_by =
      options_.preempt_after + options_.preempt_least_run + options_.preempt_grace;
  const bool preempts = preempted_by != absl::InfiniteDuration();
  record["preempted_by"] = preempts ? absl::ToInt64Microseconds(preempted_by) : -1;
  record["preempt_pause"] = absl::ToInt64Microseconds(options_.preempt_pause);
  record["preempt_least_run"] = absl::ToInt64Microseconds(options_.preempt_least_run);
  record["preempt_grace"] = absl::ToInt64Microseconds(options_.preempt_grace);
  record["owner_slots"] = options_.max_owner_slots;
  for (int i = 0; i < jobs; ++i) {
    const std::string request = absl::StrCat("r", i);
    absl::Duration at = absl::Seconds(burst || jobs == 1 ? 1.0 : chance.Uniform(0.5, 20));
    // Later Jobs, which are of higher classes, find the slots taken.
    if (fleet) at = absl::Seconds(0.8 + i * of_fleet_.Uniform(0.2, 4));
    // The users' choices are made here, so that they are the same whatever follows.
    const bool twice = chance.Happens(0.2), conflict = chance.Happens(0.05);
    const bool finish = chance.Happens(0.1), cancel = chance.Happens(0.06);
    const bool changes = chance.Happens(0.15);
    const double patience = chance.LogUniform(0.5, 30);
    JobTruth truth = MakeTruth(
        request, {SlotCounts(fleet_), machines_ == Machines::kSpanned, world_.wall()}, chance);
    if (fleet) AskOfFleet(fleet_, i, truth, of_fleet_);
    if (machines_ == Machines::kLimited) {
      truth.spec.slots = std::min(truth.spec.slots, options_.max_owner_slots);
      truth.spec.priority = of_limits_.Int(0, 2);
    }
    const double window = truth.spec.budget ? absl::ToDoubleSeconds(*truth.spec.budget)
                          : truth.spec.deadline
                              ? absl::ToDoubleSeconds(*truth.spec.deadline - (world_.wall() + at))
                              : 1e6;
    const int gangs = Gangs(truth.spec);
    Spec of_one_slot = truth.spec;
    of_one_slot.slots = 1;
    ChooseAfter(request, i, truth.spec);
    const double model_s = truth.start_s * 1.3 + std::max(0.3, truth.step_s * 20) +
                           truth.evaluate_s + truth.step_s * static_cast<double>(truth.steps) +
                           2 * truth.predict_s;
    nlohmann::json& told = world_.Record("truth");
    told["request"] = request;
    told["window_s"] = window;
    told["floor_s"] = truth.read_s + truth.floor_s;
    told["first_model_s"] = model_s * std::max(1.0, truth.probe_error) + truth.read_s;
    told["predict_s"] = truth.predict_s;
    told["step_s"] = truth.step_s;
    told["fixed"] = truth.spec.policy == Policy::kFixed;
    told["whole_model_s"] =
        1.3 * truth.start_s + truth.predict_s +
        truth.spec.epochs * (truth.evaluate_s + truth.step_s * static_cast<double>(truth.steps));
    told["probe_error"] = truth.probe_error;
    told["bad_data"] = truth.bad_data;
    told["interrupted"] = finish || cancel || changes;
    told["changed"] = changes;
    told["reuses"] = truth.spec.cache_read;
    told["placeable"] = gangs > 0;
    told["too_large"] = gangs == 0 && Gangs(of_one_slot) > 0;
    told["gangs"] = gangs;
    told["asks"] = Described(truth.spec);
    told["alone"] = jobs == 1 && machines_ != Machines::kLimited;
    told["after"] = nlohmann::json::array();
    for (const std::string& before : after_[request]) told["after"].push_back(before);
    told["any_end"] = truth.spec.after_any_end;
    told["by_clock"] = truth.spec.deadline.has_value();
    absl::Time& end = due[request];
    end = world_.now() + at;
    for (const std::string& before : after_[request]) end = std::max(end, due[before]);
    end += absl::Seconds(std::min(window, 60.0));
    last_due_ = std::max(last_due_, end);
    truths_[request] = std::move(truth);
    world_.After(at, [this, request] { SubmitJob(request, 0); });
    if (twice) {
      world_.After(at + absl::Milliseconds(chance.Int(0, 3000)),
                   [this, request] { SubmitJob(request, 0); });
    }
    if (conflict) {
      world_.After(at + absl::Milliseconds(chance.Int(10, 300)),
                   [this, request] { SubmitConflict(request); });
    }
    if (finish || cancel) {
      world_.After(at + absl::Seconds(patience), [this, request, cancel] {
        Ask(
            request,
            [cancel](CallId call, const std::string& job) -> Event {
              if (cancel) return Cancel{call, job};
              return Finish{call, job};
            },
            0);
      });
    }
    if (changes) MakeChanges(request, at, window < 1e6, window);
    ProposeTrials(request, at, window);
  }
}

void Scenario::MakeClients() {
  if (machines_ != Machines::kAsked) return;
  collector_ = std::make_unique<SimCollector>(&world_, &disk_, coordinator_.get(), seed_ ^ 0xc011e);
  clients_ = std::make_unique<Clients>(&world_, &disk_, coordinator_.get(), collector_.get(),
                                       &truths_, &acked_, seed_ ^ 0xc11e7);
  std::vector<std::string> requests;
  for (const auto& [request, truth] : truths_) requests.push_back(request);
  clients_->Choose(requests, last_due_ + absl::Seconds(2));
  last_due_ = std::max(last_due_, clients_->last_due());
  collector_->Start();
}

// A client that proposes trials, and is gone after a while.
void Scenario::ProposeTrials(const std::string& request, absl::Duration at, double window) {
  for (const Proposal& of : ProposalsFor(truths_[request].spec, window, world_.chance)) {
    world_.After(at + of.after, [this, request, of] {
      Ask(
          request,
          [of](CallId call, const std::string& job) -> Event {
            return Propose{call, job, of.request_id, of.settings};
          },
          0);
    });
  }
}

// Waits for Jobs that come to an end.
void Scenario::ChooseAfter(const std::string& request, int jobs, Spec& spec) {
  spec.after_any_end = of_after_.Happens(0.5);
  for (int i = 0; i < jobs; ++i) {
    const std::string before = absl::StrCat("r", i);
    const Spec& other = truths_[before].spec;
    const bool ends = other.budget || other.deadline || Gangs(other) > 0;
    if (ends && of_after_.Happens(0.15)) after_[request].push_back(before);
  }
}

bool Scenario::FindAfter(const std::string& request, std::vector<std::string>& ids) {
  for (const std::string& before : after_[request]) {
    if (acked_.count(before) == 0) return false;
    const auto known = coordinator_->store().GetJob(acked_[before]);
    if (known.ok() && !IsTerminal(known->state)) ids.push_back(acked_[before]);
  }
  return true;
}

void Scenario::SubmitJob(const std::string& request, int tries) {
  const auto again = [this, request, tries] {
    if (tries < 40) {
      world_.After(absl::Milliseconds(world_.chance.Int(200, 1000)),
                   [this, request, tries] { SubmitJob(request, tries + 1); });
    }
  };
  const auto acked = [this, request](const std::string& id) {
    acked_[request] = id;
    nlohmann::json& record = world_.Record("submit_ack");
    record["request"] = request;
    record["job"] = id;
  };
  if (!coordinator_->up()) return again();
  const auto before = acked_.find(request);
  if (before != acked_.end() && !coordinator_->store().GetJob(before->second).ok()) return;
  // Intake looks into the store first, for Jobs that are over.
  const auto known = coordinator_->store().FindByRequest(OwnerOf(request), request);
  if (known.ok() && IsTerminal(known->state)) return acked(known->id);
  Job job;
  if (!FindAfter(request, job.after)) return again();
  job.id = absl::StrCat("job-", request);
  job.owner = OwnerOf(request);
  job.request_id = request;
  job.spec = truths_[request].spec;
  job.spec_sha256 = request;
  coordinator_->Call(
      [job](CallId call) -> Event {
        return Submit{call, job};
      },
      [acked, again](const Reply& reply) {
        if (reply.status.ok()) return acked(reply.job->id);
        if (absl::IsUnavailable(reply.status) || absl::IsResourceExhausted(reply.status)) {
          again();
        }
      });
}

void Scenario::SubmitConflict(const std::string& request) {
  // Only where the first one is known to be there, and not over.
  if (acked_.count(request) == 0 || !coordinator_->up()) return;
  const auto known = coordinator_->store().GetJob(acked_[request]);
  if (!known.ok() || IsTerminal(known->state)) return;
  Job job;
  job.id = absl::StrCat("other-", request);
  job.owner = OwnerOf(request);
  job.request_id = request;
  job.spec = truths_[request].spec;
  job.spec_sha256 = "another";
  coordinator_->Call(
      [job](CallId call) -> Event {
        return Submit{call, job};
      },
      [this, request](const Reply& reply) {
        if (absl::IsUnavailable(reply.status) || absl::IsResourceExhausted(reply.status)) {
          return;
        }
        nlohmann::json& record = world_.Record("conflict_ack");
        record["request"] = request;
        record["status"] = absl::StatusCodeToString(reply.status.code());
      });
}

void Scenario::Ask(const std::string& request, MakeEvent make, int tries) {
  if (acked_.count(request) == 0 || tries > 20) return;
  const std::string id = acked_[request];
  coordinator_->Call(
      [make, id](CallId call) { return make(call, id); },
      [this, request, make, tries](const Reply& reply) {
        if (!absl::IsUnavailable(reply.status) && !absl::IsResourceExhausted(reply.status)) {
          return;
        }
        world_.After(absl::Milliseconds(500),
                     [this, request, make, tries] { Ask(request, make, tries + 1); });
      });
}

// A pause, and perhaps its end; another deadline; another priority.
void Scenario::MakeChanges(const std::string& request, absl::Duration at, bool bounded,
                           double window) {
  Chance& chance = world_.chance;
  const double moment = std::min(window, 30.0) * chance.Uniform(0.05, 0.9);
  const double pause = std::min(window, 30.0) * chance.Uniform(0.05, 1);
  const bool resumes = !bounded || chance.Happens(0.8);
  const double factor = chance.LogUniform(0.5, 2);
  const int priority = chance.Int(-3, 3);
  if (chance.Happens(0.6)) {
    const auto ask = [this, request](auto event) {
      Ask(
          request,
          [event](CallId call, const std::string& job) mutable -> Event {
            event.call = call;
            event.job = job;
            return event;
          },
          0);
    };
    world_.After(at + absl::Seconds(moment), [ask] { ask(Pause()); });
    // A pause that was lost is no reason to leave out its end, nor the other way round.
    for (int i = 0; resumes && i < 3; ++i) {
      world_.After(at + absl::Seconds(moment + pause + 10 * i), [ask] { ask(Resume()); });
    }
    return;
  }
  world_.After(at + absl::Seconds(moment), [this, request, bounded, window, factor, priority] {
    Ask(
        request,
        [bounded, window, factor, priority](CallId call, const std::string& job) -> Event {
          Update update;
          update.call = call;
          update.job = job;
          update.priority = priority;
          if (bounded) update.budget = absl::Seconds(window * factor);
          return update;
        },
        0);
  });
  if (bounded) {
    last_due_ = std::max(last_due_, world_.now() + at + absl::Seconds(window * factor));
  }
}

// An operator cordons and drains Workers, and opens them again.
void Scenario::ChooseOperations() {
  Chance& chance = of_operator_;
  operates_ = may_fail_ && chance.Happens(0.3);
  if (!operates_) return;
  const int times = chance.Int(1, 4);
  for (int i = 0; i < times; ++i) {
    const std::string& worker =
        workers_[static_cast<size_t>(chance.Int(0, static_cast<int>(workers_.size()) - 1))]->id();
    const WorkerMode mode = chance.Happens(0.3) ? WorkerMode::kCordoned : WorkerMode::kDraining;
    const absl::Duration at = absl::Seconds(chance.Uniform(1, 30));
    const absl::Duration grace = absl::Seconds(
        mode == WorkerMode::kDraining && chance.Happens(0.7) ? chance.LogUniform(0.05, 10) : 0);
    const absl::Duration open = at + absl::Seconds(chance.LogUniform(0.5, 20));
    world_.After(at, [this, worker, mode, grace] { SetMode(worker, mode, grace); });
    world_.After(open,
                 [this, worker] { SetMode(worker, WorkerMode::kNone, absl::ZeroDuration()); });
  }
}

// Opening one is tried until it is done.
void Scenario::SetMode(const std::string& worker, WorkerMode mode, absl::Duration grace) {
  coordinator_->Call(
      [worker, mode, grace](CallId call) -> Event {
        return UpdateWorker{call, worker, mode, grace};
      },
      [this, worker, mode, grace](const Reply& reply) {
        if (reply.status.ok() || absl::IsNotFound(reply.status) || mode != WorkerMode::kNone) {
          return;
        }
        world_.After(absl::Milliseconds(500),
                     [this, worker, mode, grace] { SetMode(worker, mode, grace); });
      });
}

void Scenario::FaultTick() {
  if (!faults_on_) return;
  Chance& chance = world_.chance;
  for (auto& worker : workers_) {
    if (chance.Happens(faults_.worker_dies / 10)) {
      const bool returns = chance.Happens(faults_.worker_returns);
      const absl::Duration away = absl::Seconds(chance.LogUniform(0.1, 20));
      worker->Kill();
      if (returns) world_.After(away, [w = worker.get()] { w->StartProcess(); });
    } else if (chance.Happens(faults_.link_breaks / 10)) {
      const bool seen = !chance.Happens(faults_.half_open);
      const bool partition = chance.Happens(faults_.partitions);
      worker->BreakLink(
          seen, absl::Seconds(partition ? chance.Uniform(3, 30) : chance.Uniform(0.05, 1.5)));
    }
  }
  if (chance.Happens(faults_.coordinator_dies / 10)) {
    coordinator_->Kill();
    world_.After(absl::Seconds(chance.LogUniform(0.1, 10)), [this] { coordinator_->Start(); });
  }
  if (!disk_.full && chance.Happens(faults_.disk_full / 10)) {
    disk_.full = true;
    world_.Record("disk_full");
    world_.After(absl::Seconds(chance.Uniform(0.5, 3)), [this] {
      disk_.full = false;
      world_.Record("disk_ok");
    });
  }
  if (chance.Happens(faults_.wall_jumps / 10)) {
    world_.wall_offset += absl::Seconds(chance.Uniform(-30, 30));
  }
  if (of_power_.Happens(faults_.power_fails / 10)) LosePower();
  world_.After(absl::Seconds(1), [this] { FaultTick(); });
}

// Of all machines.
void Scenario::LosePower() {
  world_.Record("power_lost");
  coordinator_->Kill();
  for (auto& worker : workers_) worker->Kill();
  disk_.LosePower();
  const absl::Duration away = absl::Seconds(of_power_.LogUniform(0.5, 10));
  world_.After(away, [this] { coordinator_->Start(); });
  for (auto& worker : workers_) {
    world_.After(away + absl::Milliseconds(of_power_.Int(10, 500)),
                 [w = worker.get()] { w->StartProcess(); });
  }
}

// So that what is left can come to an end.
void Scenario::StopFaults() {
  faults_on_ = false;
  const bool heavy = faults_.heavy_tails;
  faults_ = Faults();
  faults_.heavy_tails = heavy;
  for (auto& worker : workers_) {
    if (!worker->alive()) worker->StartProcess();
  }
  world_.After(absl::Milliseconds(100), [this] { coordinator_->Start(); });
  world_.Record("calm");
  const absl::Duration healed = may_fail_ ? kLinksHeal : absl::Seconds(2);
  if (clients_ != nullptr) clients_->AskAtTheEnd(healed);
  if (!operates_) return;
  world_.After(absl::Seconds(1), [this] {
    for (auto& worker : workers_) SetMode(worker->id(), WorkerMode::kNone, absl::ZeroDuration());
  });
}

bool Scenario::AllOver() {
  if (clients_ != nullptr && !clients_->AllOver()) return false;
  for (const auto& [request, id] : acked_) {
    const auto job = coordinator_->store().GetJob(id);
    if (!job.ok()) continue;  // it was deleted
    const bool stuck = job->deadline == absl::InfiniteFuture() && Gangs(job->spec) == 0;
    if (!IsTerminal(job->state) && !stuck) return false;
  }
  return true;
}

Outcome Scenario::Run() {
  const bool any = machines_ == Machines::kAny || machines_ == Machines::kAsked;
  options_.standalone = world_.chance.Happens(0.6) && any;
  faults_ = DrawFaults(world_.chance, options_.standalone);
  if (faults_.any() && of_power_.Happens(0.15)) faults_.power_fails = of_power_.Uniform(0, 1);
  ChoosePreemption();
  ChooseLimits();
  if (with_ == With::kNoFaults) faults_ = Faults();
  disk_.slow = faults_.power_fails > 0;  // or hardly anything would be lost
  MakeMachines();
  MakeJobs();
  MakeClients();
  ChooseOperations();
  coordinator_->Start();
  for (auto& worker : workers_) worker->StartProcess();
  FaultTick();
  const absl::Time calm_at = last_due_ + absl::Seconds(5);
  world_.At(calm_at, [this] { StopFaults(); });
  absl::Time now = world_.now();
  const absl::Time give_up = calm_at + kGiveUp;
  do {
    now += absl::Seconds(5);
    world_.Run(now);
  } while (now < give_up && (now < calm_at + absl::Seconds(1) || !AllOver()));
  world_.Run(now + absl::Seconds(20));
  for (auto& worker : workers_) worker->RecordUnacknowledged();
  disk_.RecordStanding();
  world_.Record("end");
  Outcome outcome;
  outcome.history = std::move(world_.history);
  outcome.jobs = static_cast<int>(truths_.size());
  outcome.turns = coordinator_->turns();
  outcome.faults = may_fail_;
  return outcome;
}

}  // namespace

Outcome Simulate(uint64_t seed, With with, Machines machines) {
  return Scenario(seed, with, machines).Run();
}

uint64_t HashOf(const History& history) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const nlohmann::json& record : history) {
    for (const char c : record.dump()) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
  }
  return hash;
}

}  // namespace traind::simulation
