#include "common/job_rules/travelling_files.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace traind {
namespace {

plain::JobSpec TableSpec() {
  plain::JobSpec spec;
  spec.data.train = "/data/train.csv";
  spec.data.test = "/data/test.csv";
  return spec;
}

TEST(TravellingFilesTest, TablesAndATokenizerTravel) {
  plain::JobSpec spec = TableSpec();
  spec.data.text = plain::TextSpec();
  spec.data.text->model_file = "/data/words.model";
  const std::vector<NamedFile> files = TravellingFiles(spec);
  ASSERT_EQ(files.size(), 3u);
  for (const NamedFile& file : files) SetTravellingFile(spec, file.field, "/own/" + file.field);
  EXPECT_EQ(spec.data.train, "/own/data.train");
  EXPECT_EQ(spec.data.test, "/own/data.test");
  EXPECT_EQ(spec.data.text->model_file, "/own/data.text.model_file");
}

TEST(TravellingFilesTest, AFileThatIsNotNamedDoesNotTravel) {
  plain::JobSpec spec = TableSpec();
  spec.data.test.clear();
  EXPECT_EQ(TravellingFiles(spec).size(), 1u);
  SetTravellingFile(spec, "output", "/own/output");
  EXPECT_EQ(spec.output, "");
}

TEST(TravellingFilesTest, MediaModulesAndWeightsTravel) {
  plain::JobSpec images = TableSpec(), volumes = TableSpec();
  images.data.image = plain::ImageSpec();
  images.data.image->labels = "/data/labels.npy";
  volumes.data.volume = plain::VolumeSpec();
  volumes.model.script = plain::ScriptSpec();
  volumes.model.script->file = "/data/model.pt";
  volumes.model.script->sha256 = "12ab";
  volumes.model.pretrained = plain::PretrainedSpec();
  volumes.model.pretrained->file = "/data/weights.safetensors";
  volumes.model.pretrained->sha256 = "34cd";
  for (plain::JobSpec& spec : std::vector<plain::JobSpec>{images, volumes}) {
    for (const NamedFile& file : TravellingFiles(spec)) {
      const bool media = file.field == "data.train" || file.field == "data.test";
      EXPECT_EQ(file.kind == NamedFile::kMedia, media) << file.field;
      SetTravellingFile(spec, file.field, "/own/" + file.field);
    }
    for (const NamedFile& file : TravellingFiles(spec)) EXPECT_EQ(file.path, "/own/" + file.field);
  }
  EXPECT_EQ(TravellingFiles(images).size(), 3u);
  EXPECT_EQ(TravellingFiles(volumes).size(), 4u);
  using Strings = std::vector<std::string>;
  EXPECT_EQ(MediaColumns(images.data), Strings{"file"});
  EXPECT_EQ(MediaColumns(volumes.data), (Strings{"image", "mask"}));
  EXPECT_EQ(CachedFiles(images, "cache/t.table"), (Strings{"cache/t.table", "cache/t.images"}));
  EXPECT_EQ(
      CachedFiles(volumes, "cache/t.table"),
      (Strings{"cache/t.table", "cache/t.volumes", "cache/12ab.pt", "cache/34cd.safetensors"}));
}

TEST(TravellingFilesTest, TheFolderOfAProgramAndItsSampleTravel) {
  plain::JobSpec program, command = TableSpec();
  program.run = plain::RunSpec();
  program.run->folder = "/home/ann/code";
  program.run->sample_submission = "/data/sample.csv";
  command.model.command = plain::CommandSpec();
  command.model.command->code = "/home/ann/code";
  const std::vector<NamedFile> of_run = TravellingFiles(program),
                               of_model = TravellingFiles(command);
  ASSERT_EQ(of_run.size(), 2u);
  EXPECT_EQ(of_run[0].field, "run.folder");
  EXPECT_EQ(of_run[0].kind, NamedFile::kProgram);
  EXPECT_EQ(of_run[1].kind, NamedFile::kFile);
  EXPECT_EQ(of_model.back().field, "model.command.code");
  EXPECT_EQ(of_model.back().kind, NamedFile::kProgram);
  SetTravellingFile(program, "run.folder", "/own/code");
  SetTravellingFile(command, "model.command.code", "/own/code");
  EXPECT_EQ(program.run->folder + command.model.command->code, "/own/code/own/code");
}

TEST(TravellingFilesTest, LaterFilesTravel) {
  plain::JobSpec predict, serve;
  predict.predict = plain::PredictSpec();
  predict.predict->from = "a";
  predict.predict->data = "/data/later.csv";
  serve.serve = plain::ServeSpec();
  serve.serve->from = "b";
  EXPECT_EQ(ModelsFrom(predict) + ModelsFrom(serve) + ModelsFrom(TableSpec()), "ab");
  ASSERT_EQ(TravellingFiles(predict).size(), 1u);
  EXPECT_EQ(TravellingFiles(predict)[0].field, "predict.data");
  SetTravellingFile(predict, "predict.data", "/own/later.csv");
  EXPECT_EQ(predict.predict->data, "/own/later.csv");
}

}  // namespace
}  // namespace traind
