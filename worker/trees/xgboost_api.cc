#include "worker/trees/xgboost_api.h"

#include <absl/base/thread_annotations.h>
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>

#include <memory>
#include <string>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "worker/trees/tree_library.h"

namespace traind {
namespace {

void LogLine(const char* text) { TRAIND_LOG(INFO) << absl::StripAsciiWhitespace(text); }

absl::StatusOr<std::unique_ptr<const XgboostApi>> Open() {
  ASSIGN_OR_RETURN(const OpenedLibrary library, OpenTreeLibrary(kXgboostLibrary));
  auto api = std::make_unique<XgboostApi>();
  RETURN_IF_ERROR(library.Find("XGBoostVersion", api->Version));
  int major = 0, minor = 0, patch = 0;
  api->Version(&major, &minor, &patch);
  RETURN_IF_ERROR(CheckTreeVersion(kXgboostLibrary, library.path(),
                                   absl::StrCat(major, ".", minor, ".", patch)));
  RETURN_IF_ERROR(library.Find("XGBGetLastError", api->GetLastError));
  RETURN_IF_ERROR(library.Find("XGBRegisterLogCallback", api->RegisterLogCallback));
  RETURN_IF_ERROR(library.Find("XGDMatrixCreateFromDense", api->MatrixCreateFromDense));
  RETURN_IF_ERROR(library.Find("XGDMatrixSetInfoFromInterface", api->MatrixSetInfo));
  RETURN_IF_ERROR(library.Find("XGDMatrixSetStrFeatureInfo", api->MatrixSetStrFeatureInfo));
  RETURN_IF_ERROR(library.Find("XGDMatrixFree", api->MatrixFree));
  RETURN_IF_ERROR(library.Find("XGBoosterCreate", api->BoosterCreate));
  RETURN_IF_ERROR(library.Find("XGBoosterFree", api->BoosterFree));
  RETURN_IF_ERROR(library.Find("XGBoosterSetParam", api->BoosterSetParam));
  RETURN_IF_ERROR(library.Find("XGBoosterUpdateOneIter", api->BoosterUpdateOneIter));
  RETURN_IF_ERROR(library.Find("XGBoosterTrainOneIter", api->BoosterTrainOneIter));
  RETURN_IF_ERROR(library.Find("XGBoosterPredictFromDMatrix", api->BoosterPredict));
  RETURN_IF_ERROR(library.Find("XGBoosterSaveModelToBuffer", api->BoosterSaveModel));
  RETURN_IF_ERROR(library.Find("XGBoosterLoadModelFromBuffer", api->BoosterLoadModel));
  RETURN_IF_ERROR(library.Find("XGBoosterSlice", api->BoosterSlice));
  RETURN_IF_ERROR(library.Find("XGBoosterSetAttr", api->BoosterSetAttr));
  RETURN_IF_ERROR(library.Find("XGBoosterBoostedRounds", api->BoosterBoostedRounds));
  RETURN_IF_ERROR(library.Find("XGBoosterGetNumFeature", api->BoosterGetNumFeature));
  RETURN_IF_ERROR(api->Check(api->RegisterLogCallback(LogLine), "starting"));
  return api;
}

}  // namespace

absl::Status XgboostApi::Check(int result, absl::string_view what) const {
  if (result == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("XGBoost, ", what, ": ", GetLastError()));
}

absl::StatusOr<const XgboostApi*> LoadXgboost() {
  static absl::Mutex mutex(absl::kConstInit);
  static const XgboostApi* loaded ABSL_GUARDED_BY(mutex) = nullptr;
  const absl::MutexLock lock(&mutex);
  if (loaded == nullptr) {
    ASSIGN_OR_RETURN(std::unique_ptr<const XgboostApi> api, Open());
    loaded = api.release();
  }
  return loaded;
}

}  // namespace traind
