#include "worker/daemon/waiting_facts.h"

#include <absl/strings/str_replace.h>

#include <algorithm>
#include <variant>

#include "common/transfer/program_pack.h"

namespace traind::worker {
namespace {

bool NamesFiles(const Fact& fact) {
  return std::holds_alternative<facts::TableReady>(fact) ||
         std::holds_alternative<facts::FloorReady>(fact) ||
         std::holds_alternative<facts::CheckpointSaved>(fact) ||
         std::holds_alternative<facts::FoldSaved>(fact) || std::holds_alternative<Ended>(fact);
}

// The Job may be over once traind knows it, and then takes no log any more.
bool MayBeTheLast(const Fact& fact) {
  const auto* saved = std::get_if<facts::FoldSaved>(&fact);
  return std::holds_alternative<Ended>(fact) || (saved != nullptr && saved->last);
}

void UseNames(const PathNames& names, Fact& fact) {
  if (auto* table = std::get_if<facts::TableReady>(&fact)) {
    for (std::string& warning : table->warnings) absl::StrReplaceAll(names, &warning);
  } else if (auto* ended = std::get_if<Ended>(&fact)) {
    absl::StrReplaceAll(names, &ended->message);
  }
}

}  // namespace

void WaitingFacts::Started(const TaskStart& task, absl::Duration now) {
  Queue& queue = queues_[task.attempt];
  queue.since = now;
  SendRequest& request = queue.request;
  request.attempt = task.attempt;
  request.job = task.job;
  request.kind = task.kind;
  if (task.kind == TaskKind::kPrepare) request.spec_json = task.spec_json;
  if (RunsProgram(task)) {
    request.program_pack = ProgramPackPath(task.job, {task.fold, task.trial, task.attempt});
  }
}

const SendRequest* WaitingFacts::RequestOf(int64_t attempt) const {
  const auto found = queues_.find(attempt);
  return found == queues_.end() ? nullptr : &found->second.request;
}

std::vector<ReportAction> WaitingFacts::Brought(int64_t attempt, PathNames names, int64_t bytes,
                                                absl::Duration now) {
  const auto found = queues_.find(attempt);
  if (found == queues_.end()) return {};
  Queue& queue = found->second;
  queue.names = std::move(names);
  queue.transfers.fetched_bytes = bytes;
  queue.transfers.fetch_s = absl::ToDoubleSeconds(now - queue.since);
  return Add({attempt, queue.transfers});
}

std::vector<ReportAction> WaitingFacts::Add(ReportAction fact) {
  const auto found = queues_.find(fact.attempt);
  if (found == queues_.end()) return {std::move(fact)};
  Queue& queue = found->second;
  UseNames(queue.names, fact.fact);
  if (const auto* table = std::get_if<facts::TableReady>(&fact.fact)) {
    queue.request.table = table->table;
  }
  if (!NamesFiles(fact.fact)) {
    if (queue.facts.empty()) return {std::move(fact)};
    if (std::holds_alternative<facts::Progress>(fact.fact)) return {};
  }
  queue.facts.push_back(std::move(fact));
  return {};
}

int64_t WaitingFacts::Published(const std::string& job) {
  for (auto& [attempt, queue] : queues_) {
    if (queue.request.job != job || queue.request.kind != TaskKind::kPredict) continue;
    queue.published = true;
    return attempt;
  }
  return 0;
}

std::optional<SendRequest> WaitingFacts::NextSend(int64_t attempt, absl::Duration now) {
  const auto found = queues_.find(attempt);
  if (found == queues_.end()) return std::nullopt;
  Queue& queue = found->second;
  if (queue.sends || (queue.facts.empty() && !queue.published)) return std::nullopt;
  queue.sends = true;
  queue.published = false;
  queue.covered = queue.facts.size();
  queue.since = now;
  queue.request.with_log = std::any_of(queue.facts.begin(), queue.facts.end(),
                                       [](const auto& f) { return MayBeTheLast(f.fact); });
  return queue.request;
}

std::vector<ReportAction> WaitingFacts::Sent(int64_t attempt, bool ok, int64_t bytes,
                                             absl::Duration now) {
  const auto found = queues_.find(attempt);
  if (found == queues_.end()) return {};
  Queue& queue = found->second;
  queue.sends = false;
  std::vector<ReportAction> told;
  if (bytes > 0) {
    queue.transfers.sent_bytes += bytes;
    queue.transfers.send_s += absl::ToDoubleSeconds(now - queue.since);
    told.push_back({attempt, queue.transfers});
  }
  for (; !queue.facts.empty(); queue.facts.pop_front()) {
    ReportAction& fact = queue.facts.front();
    const bool covered = queue.covered > 0;
    if (covered) --queue.covered;
    if (!covered && NamesFiles(fact.fact)) break;
    const bool lost = !ok && NamesFiles(fact.fact) && !std::holds_alternative<Ended>(fact.fact);
    if (!lost) told.push_back(std::move(fact));
  }
  const bool over = !told.empty() && std::holds_alternative<Ended>(told.back().fact);
  if (over) queues_.erase(found);
  return told;
}

std::vector<int64_t> WaitingFacts::Attempts() const {
  std::vector<int64_t> attempts;
  for (const auto& [attempt, queue] : queues_) {
    if (!queue.facts.empty()) attempts.push_back(attempt);
  }
  return attempts;
}

std::set<std::string> WaitingFacts::Jobs() const {
  std::set<std::string> jobs;
  for (const auto& [attempt, queue] : queues_) jobs.insert(queue.request.job);
  return jobs;
}

}  // namespace traind::worker
