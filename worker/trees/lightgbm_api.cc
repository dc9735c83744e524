#include "worker/trees/lightgbm_api.h"

#include <absl/base/thread_annotations.h>
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>

#include <filesystem>
#include <memory>

#include "common/base/durable_file.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "worker/trees/tree_library.h"

namespace traind {
namespace {

void LogLine(const char* text) { TRAIND_LOG(INFO) << absl::StripAsciiWhitespace(text); }

// The C interface tells no version; the wheel's file does.
std::string VersionOf(const std::string& library) {
  const std::filesystem::path wheel = std::filesystem::path(library).parent_path().parent_path();
  const absl::StatusOr<std::string> text = ReadFile((wheel / "VERSION.txt").string());
  return std::string(absl::StripAsciiWhitespace(text.value_or("")));
}

absl::StatusOr<std::unique_ptr<const LightgbmApi>> Open() {
  ASSIGN_OR_RETURN(const OpenedLibrary library, OpenTreeLibrary(kLightgbmLibrary));
  RETURN_IF_ERROR(CheckTreeVersion(kLightgbmLibrary, library.path(), VersionOf(library.path())));
  auto api = std::make_unique<LightgbmApi>();
#define FIND(Name) RETURN_IF_ERROR(library.Find("LGBM_" #Name, api->Name))
  FIND(GetLastError);
  FIND(RegisterLogCallback);
  FIND(DatasetCreateFromMat);
  FIND(DatasetSetField);
  FIND(DatasetSetFeatureNames);
  FIND(DatasetFree);
  FIND(BoosterCreate);
  FIND(BoosterLoadModelFromString);
  FIND(BoosterFree);
  FIND(BoosterAddValidData);
  FIND(BoosterUpdateOneIter);
  FIND(BoosterUpdateOneIterCustom);
  FIND(BoosterGetPredict);
  FIND(BoosterPredictForMat);
  FIND(BoosterSaveModelToString);
  FIND(BoosterMerge);
  FIND(BoosterGetNumFeature);
  FIND(BoosterGetNumClasses);
#undef FIND
  RETURN_IF_ERROR(api->Check(api->RegisterLogCallback(LogLine), "starting"));
  return api;
}

}  // namespace

absl::Status LightgbmApi::Check(int result, absl::string_view what) const {
  if (result == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("LightGBM, ", what, ": ", GetLastError()));
}

absl::StatusOr<const LightgbmApi*> LoadLightgbm() {
  static absl::Mutex mutex(absl::kConstInit);
  static const LightgbmApi* loaded ABSL_GUARDED_BY(mutex) = nullptr;
  const absl::MutexLock lock(&mutex);
  if (loaded == nullptr) {
    ASSIGN_OR_RETURN(std::unique_ptr<const LightgbmApi> api, Open());
    loaded = api.release();
  }
  return loaded;
}

}  // namespace traind
