#include "common/job_rules/travelling_files.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(WhyFolderIsNeeded(spec), "");
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

TEST(TravellingFilesTest, JobsThatReadMoreThanTablesNeedTheFolder) {
  plain::JobSpec images = TableSpec(), volumes = TableSpec(), script = TableSpec(),
                 weights = TableSpec(), program, command = TableSpec(), predict = TableSpec();
  images.data.image = plain::ImageSpec();
  volumes.data.volume = plain::VolumeSpec();
  script.model.script = plain::ScriptSpec();
  weights.model.pretrained = plain::PretrainedSpec();
  program.run = plain::RunSpec();
  program.run->command = {"true"};
  command.model.command = plain::CommandSpec();
  command.model.command->train = {"true"};
  predict.predict = plain::PredictSpec();
  for (const plain::JobSpec& spec : {images, volumes, script, weights, program, command, predict}) {
    EXPECT_NE(WhyFolderIsNeeded(spec), "");
  }
}

}  // namespace
}  // namespace traind
