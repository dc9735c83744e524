// Rules of specs whose rows are images or volumes.
#include <gtest/gtest.h>

#include <cmath>

#include "common/spec/media_rules.h"
#include "common/spec/spec_rules.h"
#include "tests/common/spec/spec_fixture.h"

namespace traind {
namespace {

v1::JobSpec ImageSpec() {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_data()->mutable_image();
  return spec;
}

TEST(MediaRulesTest, ImagesAreLearntByACnnUnlessSaidOtherwise) {
  EXPECT_EQ(Errors(ImageSpec()), "");
  const v1::JobSpec resolved = ResolveSpec(ImageSpec());
  EXPECT_EQ(resolved.data().image().column(), "file");
  EXPECT_EQ(resolved.data().image().size(), 32);
  EXPECT_EQ(resolved.data().image().channels(), 3);
  EXPECT_EQ(resolved.model().cnn().width(), 32);
  EXPECT_EQ(resolved.model().cnn().blocks_size(), 3);
  v1::JobSpec with_preset = ImageSpec();
  with_preset.set_preset("fast");
  EXPECT_TRUE(ResolveSpec(with_preset).model().has_cnn());
  // The defaults of rows without images are unchanged.
  EXPECT_FALSE(ResolveSpec(GoodSpec()).data().has_image());
  EXPECT_FALSE(ResolveSpec(GoodSpec()).train().has_augment());
}

TEST(MediaRulesTest, WhatDoesNotFitImagesIsRefused) {
  v1::JobSpec spec = ImageSpec();
  spec.mutable_model()->mutable_mlp();
  EXPECT_EQ(Errors(spec), "model: model takes no images; use model.cnn, or leave it out");
  spec = ImageSpec();
  spec.mutable_data()->mutable_image()->set_channels(2);
  spec.mutable_data()->mutable_image()->set_column("y");
  EXPECT_EQ(Errors(spec),
            "data.image.channels: data.image.channels '2' is neither 1 nor 3\n"
            "data.image.column: data.image.column 'y' is the target, too");
  spec = GoodSpec();
  spec.mutable_model()->mutable_cnn();
  spec.mutable_train()->mutable_augment()->set_flip(true);
  EXPECT_EQ(Errors(spec),
            "model.cnn: model.cnn needs data.image\n"
            "train.augment: train.augment needs data.image or data.volume");
}

TEST(MediaRulesTest, BlackAndWhiteOfArraysGoTogether) {
  v1::JobSpec spec = ImageSpec();
  spec.mutable_data()->mutable_image()->set_black(100);
  EXPECT_EQ(Errors(spec), "data.image.white: data.image.white is missing");
  spec.mutable_data()->mutable_image()->set_white(100);
  EXPECT_EQ(Errors(spec), "data.image.white: data.image.white '100' is not above data.image.black");
  spec.mutable_data()->mutable_image()->set_white(4095);
  spec.mutable_data()->mutable_image()->set_labels("/data/y.npy");
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_data()->mutable_image()->set_layout("sideways");
  EXPECT_NE(Errors(spec).find("data.image.layout"), std::string::npos);
  // Unset fields stay unset, so that the texts of earlier Jobs do not change.
  EXPECT_EQ(SpecToJson(ResolveSpec(ImageSpec())).find("labels_array"), std::string::npos);
  EXPECT_EQ(SpecToJson(ResolveSpec(ImageSpec())).find("black"), std::string::npos);
}

v1::JobSpec TextJob() {
  v1::JobSpec spec = GoodSpec();
  spec.mutable_data()->mutable_text()->add_columns("title");
  spec.mutable_data()->mutable_text()->add_columns("body");
  return spec;
}

TEST(MediaRulesTest, TextsAreLearntByAnEncoderUnlessSaidOtherwise) {
  EXPECT_EQ(Errors(TextJob()), "");
  const v1::JobSpec resolved = ResolveSpec(TextJob());
  EXPECT_EQ(resolved.data().text().tokenizer(), "words");
  EXPECT_EQ(resolved.data().text().max_tokens(), 256);
  EXPECT_EQ(resolved.model().text().attention(), "disentangled");
  EXPECT_FALSE(ResolveSpec(GoodSpec()).data().has_text());
  v1::JobSpec with_preset = TextJob();
  with_preset.set_preset("best");
  EXPECT_TRUE(ResolveSpec(with_preset).model().has_text());
  EXPECT_EQ(ResolveSpec(with_preset).train().epochs(), 35);
}

TEST(MediaRulesTest, WhatDoesNotFitTextsIsRefused) {
  v1::JobSpec spec = TextJob();
  spec.mutable_model()->mutable_cnn();
  EXPECT_EQ(Errors(spec),
            "model.cnn: model.cnn needs data.image\n"
            "model: model takes no text; use model.text, or leave it out");
  spec = TextJob();
  spec.mutable_data()->mutable_text()->add_columns("y");
  spec.mutable_data()->mutable_text()->add_columns("title");
  spec.mutable_model()->mutable_text()->set_width(30);
  EXPECT_EQ(Errors(spec),
            "data.text.columns[2]: data.text.columns[2] 'y' is the target, too\n"
            "data.text.columns[3]: data.text.columns[3] 'title' is there twice\n"
            "model.text.width: model.text.width '30' is no multiple of 4, model.text.heads");
  spec = TextJob();
  spec.mutable_data()->mutable_text()->set_model_file("/data/a.model");
  EXPECT_EQ(Errors(spec),
            "data.text.model_file: data.text.model_file needs data.text.tokenizer: sentencepiece");
  spec.mutable_data()->mutable_text()->set_tokenizer("sentencepiece");
  EXPECT_EQ(Errors(spec), "");
  spec = GoodSpec();
  spec.mutable_data()->mutable_text();
  EXPECT_EQ(Errors(spec), "data.text.columns: data.text.columns is missing");
  spec = GoodSpec();
  spec.mutable_model()->mutable_text();
  EXPECT_EQ(Errors(spec), "model.text: model.text needs data.text");
}

v1::JobSpec VolumeSpec() {
  v1::JobSpec spec;
  spec.set_api("v1");
  spec.mutable_task()->set_type("segmentation");
  spec.mutable_data()->set_train("/data/train.csv");
  spec.mutable_data()->mutable_volume();
  return spec;
}

TEST(MediaRulesTest, VolumesAreSegmentedByAUnetInPatches) {
  EXPECT_EQ(Errors(VolumeSpec()), "");
  const v1::JobSpec resolved = ResolveSpec(VolumeSpec());
  EXPECT_EQ(resolved.task().metric(), "dice");
  EXPECT_EQ(resolved.data().volume().mask(), "mask");
  EXPECT_EQ(resolved.model().unet3d().levels(), 3);
  EXPECT_EQ(resolved.train().patches().per_volume(), 4);
  ASSERT_EQ(resolved.train().patches().size_size(), 3);
  EXPECT_EQ(resolved.train().patches().size(0), 16);
  EXPECT_FALSE(ResolveSpec(GoodSpec()).train().has_patches());
}

TEST(MediaRulesTest, AUnetHasTheNormOfItsBatchUnlessTheSpecNamesAnother) {
  v1::JobSpec spec = VolumeSpec();
  spec.mutable_model()->mutable_unet3d()->set_norm("instance");
  EXPECT_EQ(Errors(spec), "");
  EXPECT_EQ(ResolveSpec(spec).model().unet3d().norm(), "instance");
  spec.mutable_model()->mutable_unet3d()->set_norm("group");
  EXPECT_NE(Errors(spec).find("model.unet3d.norm"), std::string::npos) << Errors(spec);
}

TEST(MediaRulesTest, AxesOfMirroredPredictionsAreThereOnce) {
  v1::JobSpec spec = VolumeSpec();
  for (const char* axis : {"width", "depth", "width", "time"}) {
    spec.mutable_model()->mutable_unet3d()->add_mirror(axis);
  }
  const std::string errors = Errors(spec);
  EXPECT_NE(errors.find("model.unet3d.mirror[2] 'width' is there twice"), std::string::npos)
      << errors;
  EXPECT_NE(errors.find("model.unet3d.mirror[3]"), std::string::npos) << errors;
}

TEST(MediaRulesTest, WhatDoesNotFitVolumesIsRefused) {
  v1::JobSpec spec = VolumeSpec();
  spec.mutable_data()->set_target("y");
  spec.mutable_task()->set_metric("rmse");
  spec.mutable_predictions()->set_ensemble("greedy");
  EXPECT_EQ(Errors(spec),
            "task.metric: task.metric 'rmse' does not fit segmentation; use dice, iou\n"
            "data.target: data.target is not of volumes: data.volume.mask is what is learnt\n"
            "predictions.ensemble: predictions.ensemble 'greedy' is not of masks; use mean or "
            "weighted");
  spec = VolumeSpec();
  for (const int extent : {1, 64, 32}) spec.mutable_train()->mutable_patches()->add_size(extent);
  EXPECT_EQ(Errors(spec), "") << "a patch may be one slice deep";
  spec.mutable_train()->mutable_patches()->set_size(1, 1);
  EXPECT_NE(Errors(spec), "");
  spec = VolumeSpec();
  for (const int extent : {16, 30, 32}) spec.mutable_train()->mutable_patches()->add_size(extent);
  EXPECT_EQ(Errors(spec),
            "train.patches.size[1]: train.patches.size[1] '30' is no multiple of 4, which 3 "
            "levels need");
  spec = VolumeSpec();
  spec.mutable_data()->mutable_text();
  spec.mutable_train()->mutable_loss()->set_kind("mse");
  EXPECT_EQ(Errors(spec).find("data.volume: data.volume is missing") != std::string::npos, true);
  EXPECT_EQ(Errors(spec).find("'mse' does not fit segmentation") != std::string::npos, true);
  spec = GoodSpec();
  spec.mutable_model()->mutable_unet3d();
  EXPECT_EQ(Errors(spec), "model.unet3d: model.unet3d needs data.volume");
}

TEST(MediaRulesTest, AnAnswerKeepsAllComponentsUnlessSaidOtherwise) {
  EXPECT_EQ(ResolveSpec(VolumeSpec()).data().volume().components(), "all");
  v1::JobSpec spec = VolumeSpec();
  spec.mutable_data()->mutable_volume()->set_components("largest");
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_data()->mutable_volume()->set_components("larges");
  EXPECT_EQ(Errors(spec),
            "data.volume.components: data.volume.components 'larges' must be one of: all, "
            "largest, auto; did you mean 'largest'?");
}

TEST(MediaRulesTest, ASpacingIsAutoOrThreePositiveNumbers) {
  v1::JobSpec spec = VolumeSpec();
  EXPECT_FALSE(Resamples(ResolveSpec(spec).data().volume()));
  v1::VolumeSpec& volume = *spec.mutable_data()->mutable_volume();
  volume.set_spacing("auto");
  EXPECT_TRUE(Resamples(volume));
  EXPECT_EQ(Errors(spec), "");
  volume.add_spacings(2.5);
  EXPECT_EQ(Errors(spec),
            "data.volume.spacings: data.volume.spacings and data.volume.spacing are both set; "
            "choose one\n"
            "data.volume.spacing: data.volume.spacing has 1 number; depth, height and width are "
            "three");
  volume.clear_spacing();
  for (const double wrong : {0.0, -1.0}) volume.add_spacings(wrong);
  EXPECT_TRUE(Resamples(volume));
  EXPECT_EQ(Errors(spec),
            "data.volume.spacings[1]: data.volume.spacings[1] '0' is below the minimum, 0.001\n"
            "data.volume.spacings[2]: data.volume.spacings[2] '-1' is below the minimum, 0.001");
  volume.set_spacings(1, 1);
  volume.set_spacings(2, std::nan(""));
  EXPECT_EQ(Errors(spec), "data.volume.spacings[2]: data.volume.spacings[2] 'nan' is not finite");
  volume.set_spacings(2, 0.5);
  EXPECT_EQ(Errors(spec), "");
}

TEST(MediaRulesTest, ClassesOfMasksAreNamesOnce) {
  v1::JobSpec spec = VolumeSpec();
  spec.mutable_data()->set_id("id");
  for (const char* name : {"liver", "tumour"})
    spec.mutable_data()->mutable_volume()->add_classes(name);
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_train()->mutable_loss()->set_kind("dice_ce");
  EXPECT_EQ(Errors(spec), "");
  spec.mutable_train()->mutable_loss()->set_kind("dice_bce");
  EXPECT_EQ(Errors(spec),
            "train.loss.kind: train.loss.kind 'dice_bce' is of another number of "
            "data.volume.classes; use dice_ce");
  spec.mutable_train()->clear_loss();
  for (const char* name : {"liver", "background", "id", ""}) {
    spec.mutable_data()->mutable_volume()->add_classes(name);
  }
  EXPECT_EQ(Errors(spec),
            "data.volume.classes[2]: data.volume.classes[2] 'liver' is there twice\n"
            "data.volume.classes[3]: data.volume.classes[3] 'background' is no class: the first "
            "one has value 1\n"
            "data.volume.classes[4]: data.volume.classes[4] 'id' is the name of the rows' id, "
            "too\n"
            "data.volume.classes[5]: data.volume.classes[5] is empty");
}

TEST(MediaRulesTest, VolumesAndImagesAreChangedInTheirOwnWays) {
  v1::JobSpec spec = VolumeSpec();
  v1::AugmentSpec* augment = spec.mutable_train()->mutable_augment();
  for (const char* axis : {"depth", "width"}) augment->add_mirror(axis);
  augment->set_intensity(0.2);
  EXPECT_EQ(Errors(spec), "");
  augment->add_mirror("width");
  augment->set_flip(true);
  augment->set_crop(0.1);
  augment->set_colour(0.1);
  augment->set_mixup(0.2);
  augment->set_cutmix(0.2);
  augment->set_rand_augment(2);
  EXPECT_EQ(Errors(spec),
            "train.augment.flip: train.augment.flip is of images; volumes have mirror: [width]\n"
            "train.augment.crop: train.augment.crop is of images; volumes have patches, which are "
            "drawn anywhere\n"
            "train.augment.colour: train.augment.colour is of images; volumes have intensity\n"
            "train.augment.mixup: train.augment.mixup is not of masks, whose voxels are one thing "
            "each\n"
            "train.augment.cutmix: train.augment.cutmix is of images; volumes have masks\n"
            "train.augment.rand_augment: train.augment.rand_augment is of images; volumes have "
            "mirror, rotate, scale, elastic and intensity\n"
            "train.augment.mirror[2]: train.augment.mirror[2] 'width' is there twice");
  spec = ImageSpec();
  spec.mutable_train()->mutable_augment()->add_mirror("width");
  spec.mutable_train()->mutable_augment()->set_intensity(0.2);
  spec.mutable_train()->mutable_augment()->set_rotate(10);
  EXPECT_EQ(Errors(spec),
            "train.augment.mirror: train.augment.mirror is of volumes; images have flip\n"
            "train.augment.intensity: train.augment.intensity is of volumes; images have colour\n"
            "train.augment.rotate: train.augment.rotate is of volumes; images have rand_augment");
}

}  // namespace
}  // namespace traind
