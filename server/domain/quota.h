// Device-seconds (slots x seconds) that an owner, or all Jobs with a label, may use.
#pragma once

#include <absl/time/time.h>

#include <map>
#include <string>
#include <tuple>

namespace traind {

// One of the two is set.
struct QuotaSubject {
  std::string owner;
  std::string label;  // "team=vision"

  bool operator<(const QuotaSubject& other) const {
    return std::tie(owner, label) < std::tie(other.owner, other.label);
  }
  bool operator==(const QuotaSubject& other) const {
    return owner == other.owner && label == other.label;
  }
  bool Covers(const std::string& of, const std::map<std::string, std::string>& labels) const {
    if (label.empty()) return of == owner;
    const size_t equals = label.find('=');
    const auto found = labels.find(label.substr(0, equals));
    return found != labels.end() && found->second == label.substr(equals + 1);
  }
};

struct Quota {
  QuotaSubject subject;
  absl::Duration allowance;  // device-seconds
  absl::Duration period;
  bool rolling = true;  // the period ends now; false: periods follow each other from `since`
  absl::Time since = absl::UnixEpoch();
};

// The use of one Attempt, from the record of Attempts.
struct AttemptUsage {
  std::string owner;
  std::map<std::string, std::string> labels;
  absl::Time start, end;
  int slots = 0;
};

struct QuotaState {
  Quota quota;
  double used_s = 0;  // in this period, running Attempts included
  double left_s = 0;
  absl::Time free_at = absl::InfinitePast();  // where nothing is left: when something is
  int warned_percent = 0;
};

}  // namespace traind
