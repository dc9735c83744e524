#include "server/intake/epoch_work.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include "common/spec/spec_rules.h"

namespace traind {
namespace {

DataFile Table() {
  DataFile file;
  file.bytes = 6'000'000;
  file.header.assign(10, "column");
  return file;
}

// A resolved spec with that kind of network, on data of the kind that it takes.
v1::JobSpec SpecWith(const std::string& kind) {
  v1::JobSpec spec;
  spec.mutable_task()->set_type("classification");
  if (kind == "cnn") spec.mutable_data()->mutable_image();
  if (kind == "text") spec.mutable_data()->mutable_text()->add_columns("review");
  if (kind == "unet3d") spec.mutable_data()->mutable_volume();
  v1::ModelSpec& model = *spec.mutable_model();
  const google::protobuf::FieldDescriptor* field = model.GetDescriptor()->FindFieldByName(kind);
  model.GetReflection()->MutableMessage(&model, field);
  return ResolveSpec(std::move(spec));
}

TEST(EpochWorkTest, EveryKindOfNetworkHasWork) {
  const auto* kinds = v1::ModelSpec::descriptor()->FindOneofByName("architecture");
  for (int i = 0; i < kinds->field_count(); ++i) {
    const EpochWork work = EpochWorkOf(SpecWith(kinds->field(i)->name()), Table(), {1000, 0});
    EXPECT_GT(work.samples, 0) << kinds->field(i)->name();
    EXPECT_GT(work.multiplications, 0) << kinds->field(i)->name();
  }
}

TEST(EpochWorkTest, RowsAndFilesAreCounted) {
  EXPECT_EQ(EpochWorkOf(SpecWith("mlp"), Table(), {}).samples, 100'000);
  EXPECT_EQ(EpochWorkOf(SpecWith("cnn"), Table(), {1000, 0}).samples, 1000);
  v1::JobSpec volumes = SpecWith("unet3d");
  volumes.mutable_train()->mutable_patches()->set_per_volume(3);
  EXPECT_EQ(EpochWorkOf(volumes, Table(), {1000, 0}).samples, 1500);
}

TEST(EpochWorkTest, MembersAndEmbeddedNumbersAreMoreWork) {
  v1::JobSpec spec = SpecWith("mlp");
  v1::MlpSpec& mlp = *spec.mutable_model()->mutable_mlp();
  mlp.clear_hidden();
  mlp.add_hidden(64);
  const double usual = EpochWorkOf(spec, Table(), {}).multiplications;
  mlp.set_ensemble_members(8);
  EXPECT_DOUBLE_EQ(EpochWorkOf(spec, Table(), {}).multiplications, 8 * usual);
  mlp.mutable_numeric_embedding()->set_size(4);
  EXPECT_DOUBLE_EQ(EpochWorkOf(spec, Table(), {}).multiplications, 4 * 8 * usual);
}

TEST(EpochWorkTest, ANamedResnetIsWorkByItsDepthAndTheImagesArea) {
  v1::JobSpec spec = SpecWith("cnn");
  spec.mutable_model()->mutable_cnn()->set_architecture("resnet50");
  spec.mutable_data()->mutable_image()->set_size(224);
  EXPECT_DOUBLE_EQ(EpochWorkOf(spec, Table(), {1000, 0}).multiplications, 4.09e9);
  spec.mutable_data()->mutable_image()->set_size(112);
  EXPECT_DOUBLE_EQ(EpochWorkOf(spec, Table(), {1000, 0}).multiplications, 4.09e9 / 4);
}

TEST(EpochWorkTest, AnswersBySeveralViewsTakeAsManyPassesByTheirPixels) {
  v1::JobSpec spec = SpecWith("cnn");
  v1::CnnSpec& cnn = *spec.mutable_model()->mutable_cnn();
  const EpochWork once = EpochWorkOf(spec, Table(), {1000, 0});
  EXPECT_EQ(once.views, 1);
  cnn.set_mirror(true);
  EXPECT_EQ(EpochWorkOf(spec, Table(), {1000, 0}).views, 2);
  cnn.set_view_shift(0.1);
  for (const double scale : {1.0, 2.0, 0.5}) cnn.add_view_scales(scale);
  const EpochWork work = EpochWorkOf(spec, Table(), {1000, 0});
  EXPECT_EQ(work.views, 2 * 5 * 5.25);
  EXPECT_EQ(work.multiplications, once.multiplications) << "a step sees the image alone";
  const Measured fast = GuessSpeed(once), slow = GuessSpeed(work);
  EXPECT_DOUBLE_EQ(slow.predict_s, work.views * fast.predict_s);
  EXPECT_DOUBLE_EQ(slow.evaluate_s, work.views * fast.evaluate_s);
  EXPECT_EQ(slow.step_s, fast.step_s);
}

TEST(EpochWorkTest, EachMirroredAxisDoublesThePassesOfVolumes) {
  v1::JobSpec spec = SpecWith("unet3d");
  EXPECT_EQ(EpochWorkOf(spec, Table(), {1000, 0}).views, 1);
  for (const char* axis : {"depth", "height", "width"}) {
    spec.mutable_model()->mutable_unet3d()->add_mirror(axis);
  }
  EXPECT_EQ(EpochWorkOf(spec, Table(), {1000, 0}).views, 8);
}

TEST(EpochWorkTest, PatchesOfImagesAreOneSliceDeep) {
  const v1::JobSpec spec = SpecWith("unet3d");
  v1::JobSpec flat = spec;
  flat.mutable_train()->mutable_patches()->set_size(0, 1);
  const double of_images = EpochWorkOf(spec, Table(), {1000, 0, true}).multiplications;
  EXPECT_EQ(of_images, EpochWorkOf(flat, Table(), {1000, 0}).multiplications);
  EXPECT_LT(of_images, EpochWorkOf(spec, Table(), {1000, 0}).multiplications / 16);
}

TEST(EpochWorkTest, AnEpochOfTreesIsAHundredthOfTheRounds) {
  v1::JobSpec spec = SpecWith("lightgbm");
  const EpochWork usual = EpochWorkOf(spec, Table(), {});
  EXPECT_EQ(usual.bytes, 60'000);  // the table is read once
  spec.mutable_model()->mutable_lightgbm()->set_num_iterations(4000);
  EXPECT_DOUBLE_EQ(EpochWorkOf(spec, Table(), {}).multiplications, 2 * usual.multiplications);
  // With several trials the first one counts.
  v1::JobSpec automatic = SpecWith("automatic");
  *automatic.add_trials()->mutable_model() = spec.model();
  automatic.add_trials()->mutable_model()->mutable_mlp();
  EXPECT_DOUBLE_EQ(EpochWorkOf(automatic, Table(), {}).multiplications, 2 * usual.multiplications);
}

TEST(EpochWorkTest, ALongerWindowAndAWiderNetworkAreMoreWork) {
  for (const char* kind : {"lstm", "transformer"}) {
    v1::JobSpec spec = SpecWith(kind);
    const double one = EpochWorkOf(spec, Table(), {}).multiplications;
    spec.mutable_data()->set_window(8);
    EXPECT_GE(EpochWorkOf(spec, Table(), {}).multiplications, 8 * one) << kind;
  }
  v1::JobSpec wide = SpecWith("mlp");
  const double usual = EpochWorkOf(wide, Table(), {}).multiplications;
  wide.mutable_model()->mutable_mlp()->add_hidden(512);
  EXPECT_GT(EpochWorkOf(wide, Table(), {}).multiplications, usual);
}

}  // namespace
}  // namespace traind
