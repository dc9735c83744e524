#include "tests/simulation/world.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

namespace traind::simulation {

namespace {

uint64_t Mix(uint64_t z) {  // splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

// Mixed twice, or neighbouring seeds would be one sequence, shifted by one.
Chance::Chance(uint64_t seed) : state_(Mix(Mix(seed + 0x2545f4914f6cdd1du) + seed)) {}

uint64_t Chance::Next() { return Mix(state_ += 0x9e3779b97f4a7c15u); }

double Chance::Uniform(double low, double high) {
  return low + (high - low) * static_cast<double>(Next() >> 11) * 0x1.0p-53;
}

int Chance::Int(int low, int high) {
  return low + static_cast<int>(Next() % static_cast<uint64_t>(high - low + 1));
}

double Chance::LogUniform(double low, double high) {
  return std::exp(Uniform(std::log(low), std::log(high)));
}

double Chance::HeavyTail() {
  const double body = Uniform(0.85, 1.2);
  return Happens(0.02) ? body * std::min(20.0, 1 / std::sqrt(Uniform(0.003, 1))) : body;
}

void World::At(absl::Time at, std::function<void()> what) {
  queue_.push({std::max(at, now_), next_sequence_++, std::move(what)});
}

void World::Run(absl::Time end) {
  while (!queue_.empty() && queue_.top().at <= end) {
    Item item = queue_.top();
    queue_.pop();
    now_ = item.at;
    item.what();
  }
}

nlohmann::json& World::Record(const char* kind) {
  history.push_back({{"t", Micros(now_)}, {"kind", kind}});
  return history.back();
}

bool Disk::HasFloor(const std::string& job) const {
  const auto it = files_.find(job);
  return it != files_.end() && it->second.floor;
}

absl::StatusOr<PublishedPrediction> Disk::Publish(const PublishRequest& request, bool has_test,
                                                  absl::Time stamp) {
  if (full) return absl::ResourceExhaustedError("disk full");
  Files& files = files_[request.job];
  for (const Member& member : request.members) {
    const auto same =
        std::find_if(files.members.begin(), files.members.end(), [&](const Member& m) {
          return m.fold == member.fold && m.trial == member.trial && m.seed == member.seed;
        });
    if (same == files.members.end()) {
      files.members.push_back(member);
    } else if (std::make_pair(member.complete, member.attempt) >
               std::make_pair(same->complete, same->attempt)) {
      *same = member;
    }
  }
  if (files.members.empty() && !files.floor) return absl::NotFoundError("no floor and no member");
  PublishedPrediction next;
  next.members = files.members;
  const auto complete = std::count_if(next.members.begin(), next.members.end(),
                                      [](const Member& m) { return !IsExtra(m) && m.complete; });
  next.quality = next.members.empty()                                  ? Quality::kFloor
                 : complete == request.spec_folds && !request.plan_cut ? Quality::kFull
                                                                       : Quality::kDegraded;
  next.at = stamp;
  if (!has_test) {
    next.quality = Quality::kNone;
    return next;
  }
  const auto key = [](const PublishedPrediction& p) {
    std::string text = absl::StrCat(static_cast<int>(p.quality));
    for (const Member& m : p.members) absl::StrAppend(&text, " ", m.attempt, m.complete, m.oof);
    return text;
  };
  if (files.standing && key(*files.standing) == key(next)) return *files.standing;
  next.number = files.standing ? files.standing->number + 1 : 1;
  next.path = absl::StrCat("jobs/", request.job, "/prediction-", next.number, "/predictions.csv");
  next.changed = true;
  files.standing = next;
  nlohmann::json& record = world_->Record("published");
  record["job"] = request.job;
  record["number"] = next.number;
  record["quality"] = static_cast<int>(next.quality);
  return next;
}

std::optional<PublishedPrediction> Disk::Standing(const std::string& job) const {
  const auto it = files_.find(job);
  return it == files_.end() ? std::nullopt : it->second.standing;
}

}  // namespace traind::simulation
