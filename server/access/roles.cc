#include "server/access/roles.h"

#include <algorithm>
#include <iterator>

namespace traind {
namespace {

struct NamedRole {
  const char* name;
  Role role;
};

constexpr NamedRole kRoles[] = {{"viewer", Role::kViewer},
                                {"user", Role::kUser},
                                {"admin", Role::kAdmin},
                                {"worker", Role::kWorker}};

struct Entry {
  absl::string_view method;
  Need need;
};

constexpr Need kOpen = {true, Role::kViewer, false};
constexpr Need kViewer = {false, Role::kViewer, false};
// One file takes many calls.
constexpr Need kUserPart = {false, Role::kUser, false};
constexpr Need kUser = {false, Role::kUser};
constexpr Need kAdmin = {false, Role::kAdmin};
constexpr Need kWorker = {false, Role::kWorker};

constexpr Entry kNeeds[] = {
    {"/grpc.health.v1.Health/Check", kOpen},
    {"/grpc.health.v1.Health/Watch", kOpen},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", kViewer},
    {"/traind.v1.TrainingService/GetJob", kViewer},
    {"/traind.v1.TrainingService/ListJobs", kViewer},
    {"/traind.v1.TrainingService/WatchJob", kViewer},
    {"/traind.v1.TrainingService/GetMetrics", kViewer},
    {"/traind.v1.TrainingService/GetEvents", kViewer},
    {"/traind.v1.TrainingService/FetchArtifact", kViewer},
    {"/traind.v1.TrainingService/GetLogs", kViewer},
    {"/traind.v1.TrainingService/GetSpec", kViewer},
    {"/traind.v1.TrainingService/ListTrials", kViewer},
    {"/traind.v1.TrainingService/ListWorkers", kViewer},
    {"/traind.v1.TrainingService/ListQuotas", kViewer},
    {"/traind.v1.TrainingService/Submit", kUser},
    {"/traind.v1.TrainingService/SubmitBatch", kUser},
    {"/traind.v1.TrainingService/Plan", kUser},
    {"/traind.v1.TrainingService/Upload", kUserPart},
    {"/traind.v1.TrainingService/UploadParts", kUser},
    {"/traind.v1.TrainingService/FinishJob", kUser},
    {"/traind.v1.TrainingService/PauseJob", kUser},
    {"/traind.v1.TrainingService/ResumeJob", kUser},
    {"/traind.v1.TrainingService/UpdateJob", kUser},
    {"/traind.v1.TrainingService/ProposeTrial", kUser},
    {"/traind.v1.TrainingService/Predict", kUser},
    {"/traind.v1.TrainingService/PredictRows", kUser},
    {"/traind.v1.TrainingService/CancelJob", kUser},
    {"/traind.v1.TrainingService/DeleteJob", kUser},
    {"/traind.v1.TrainingService/PinJob", kUser},
    {"/traind.v1.TrainingService/CollectGarbage", kAdmin},
    {"/traind.v1.TrainingService/SetQuota", kAdmin},
    {"/traind.v1.TrainingService/RemoveQuota", kAdmin},
    {"/traind.v1.TrainingService/UpdateWorker", kAdmin},
    {"/traind.v1.WorkerService/Attach", kWorker},
    {"/traind.v1.FileService/CompareFolder", kWorker},
    {"/traind.v1.FileService/ListFiles", kWorker},
    {"/traind.v1.FileService/GetFile", kWorker},
    {"/traind.v1.FileService/OfferFile", kWorker},
    {"/traind.v1.FileService/PutFile", kWorker},
    {"/traind.v1.FileService/DropCheckpoints", kWorker},
};

}  // namespace

std::string RoleName(Role role) {
  return std::find_if(std::begin(kRoles), std::end(kRoles),
                      [role](const NamedRole& named) { return named.role == role; })
      ->name;
}

std::optional<Role> RoleFromName(absl::string_view name) {
  for (const NamedRole& named : kRoles) {
    if (name == named.name) return named.role;
  }
  return std::nullopt;
}

std::optional<Need> NeedOf(absl::string_view method) {
  for (const Entry& entry : kNeeds) {
    if (entry.method == method) return entry.need;
  }
  return std::nullopt;
}

bool Satisfies(Role has, Role needed) {
  if (has == Role::kWorker || needed == Role::kWorker) return has == needed;
  return has >= needed;
}

}  // namespace traind
