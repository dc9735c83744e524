// The one border between the domain's values and proto/job.proto.
#pragma once

#include <absl/time/time.h>
#include <google/protobuf/timestamp.pb.h>

#include <string>

#include "proto/job.pb.h"
#include "proto/training_service.pb.h"
#include "server/domain/job.h"
#include "server/domain/quota.h"
#include "server/reports/job_report.h"

namespace traind {

// Values of a Job's message that are not in the Job itself.
struct JobContext {
  std::string state_dir;  // absolute: paths in messages are too
  absl::Time now;         // as the control loop counts it
  bool brief = false;     // for lists: no decisions, attempts, live figures
};

v1::Job ToProto(const Job& job, const JobContext& context);
v1::Report ToProto(const JobReport& report);
v1::Plan ToProto(const Plan& plan);
v1::Decision ToProto(const Decision& decision);
v1::QuotaState ToProto(const QuotaState& state);
v1::MetricPoint ToProto(int64_t sequence, const MetricPoint& point);
google::protobuf::Timestamp ToProto(absl::Time time);
google::protobuf::Duration ToProto(absl::Duration duration);

}  // namespace traind
