#include "common/job_rules/travelling_files.h"

#include "common/base/job_layout.h"

namespace traind {
namespace {

struct Place {
  const char* field;
  std::string* path;
  NamedFile::Kind kind = NamedFile::kFile;
};

std::vector<Place> PlacesIn(plain::JobSpec& spec) {
  const bool has_media = spec.data.image || spec.data.volume;
  const NamedFile::Kind media = has_media ? NamedFile::kMedia : NamedFile::kFile;
  std::vector<Place> places = {{"data.train", &spec.data.train, media},
                               {"data.test", &spec.data.test, media}};
  if (spec.predict) places.push_back({"predict.data", &spec.predict->data, NamedFile::kMedia});
  if (spec.data.text) places.push_back({"data.text.model_file", &spec.data.text->model_file});
  if (spec.data.image && spec.data.image->labels) {
    places.push_back({"data.image.labels", &*spec.data.image->labels});
  }
  if (spec.data.image && spec.data.image->test_labels) {
    places.push_back({"data.image.test_labels", &*spec.data.image->test_labels});
  }
  if (spec.model.script) places.push_back({"model.script.file", &spec.model.script->file});
  if (spec.model.pretrained) {
    places.push_back({"model.pretrained.file", &spec.model.pretrained->file});
  }
  if (spec.run) {
    places.push_back({"run.folder", &spec.run->folder, NamedFile::kProgram});
    places.push_back({"run.sample_submission", &spec.run->sample_submission});
  }
  if (spec.model.command) {
    places.push_back({"model.command.code", &spec.model.command->code, NamedFile::kProgram});
    places.push_back({"model.command.sample_submission", &spec.model.command->sample_submission});
  }
  return places;
}

}  // namespace

std::vector<NamedFile> TravellingFiles(const plain::JobSpec& spec) {
  std::vector<NamedFile> files;
  plain::JobSpec copy = spec;
  for (const Place& place : PlacesIn(copy)) {
    if (!place.path->empty()) files.push_back({place.field, *place.path, place.kind});
  }
  return files;
}

std::vector<std::string> CachedFiles(const plain::JobSpec& spec, const std::string& table) {
  std::vector<std::string> files;
  if (!table.empty() && !spec.run) {
    files.push_back(table);
    if (spec.data.image) files.push_back(ImageCacheOf(table));
    if (spec.data.volume) files.push_back(VolumesOfTable(table));
  }
  if (spec.model.script) files.push_back(ScriptCachePath(spec.model.script->sha256));
  if (spec.model.pretrained) files.push_back(WeightsCachePath(spec.model.pretrained->sha256));
  return files;
}

std::string ModelsFrom(const plain::JobSpec& spec) {
  if (spec.serve) return spec.serve->from;
  return spec.predict ? spec.predict->from : "";
}

std::vector<std::string> MediaColumns(const plain::DataSpec& data) {
  if (data.image) return {data.image->column};
  if (data.volume) return {data.volume->image, data.volume->mask};
  return {};
}

void SetTravellingFile(plain::JobSpec& spec, const std::string& field, const std::string& path) {
  for (const Place& place : PlacesIn(spec)) {
    if (field == place.field) *place.path = path;
  }
}

}  // namespace traind
