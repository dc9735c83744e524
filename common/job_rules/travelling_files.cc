#include "common/job_rules/travelling_files.h"

#include "common/job_rules/user_program.h"

namespace traind {
namespace {

struct Place {
  const char* field;
  std::string* path;
};

std::vector<Place> PlacesIn(plain::JobSpec& spec) {
  std::vector<Place> places = {{"data.train", &spec.data.train}, {"data.test", &spec.data.test}};
  if (spec.data.text) places.push_back({"data.text.model_file", &spec.data.text->model_file});
  return places;
}

}  // namespace

std::vector<NamedFile> TravellingFiles(const plain::JobSpec& spec) {
  std::vector<NamedFile> files;
  plain::JobSpec copy = spec;
  for (const Place& place : PlacesIn(copy)) {
    if (!place.path->empty()) files.push_back({place.field, *place.path});
  }
  return files;
}

void SetTravellingFile(plain::JobSpec& spec, const std::string& field, const std::string& path) {
  for (const Place& place : PlacesIn(spec)) {
    if (field == place.field) *place.path = path;
  }
}

std::string WhyFolderIsNeeded(const plain::JobSpec& spec) {
  if (UserProgramOf(spec)) return "it runs a program";
  if (spec.predict || spec.serve) return "it uses the models of another Job";
  if (spec.data.image) return "it reads images";
  if (spec.data.volume) return "it reads volumes";
  if (spec.model.script) return "it has a model of the user's own";
  if (spec.model.pretrained) return "it starts from pretrained weights";
  return "";
}

}  // namespace traind
