// What a model is to be, as the job's spec says it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

struct LstmSpec {
  int64_t hidden = 128;  // width of each layer
  int64_t layers = 2;
};

struct TransformerSpec {
  int64_t width = 64;  // of each time step's vector; a multiple of heads
  int64_t heads = 4;
  int64_t layers = 2;
  int64_t feedforward = 128;  // width between a layer's two products
  bool pre_norm = false;      // norms before attention and network, not after
  bool mean_pooling = false;  // the head sees the steps' mean, not the last step
};

struct TextEncoderSpec {
  int64_t width = 128;  // of each token's vector; a multiple of heads
  int64_t heads = 4;
  int64_t layers = 4;
  int64_t feedforward = 512;  // width between a layer's two products
  bool disentangled = true;   // relative attention as in DeBERTa; else plain, and positions

  static constexpr int64_t kRelativeSpan = 32;  // buckets of distances either way
  static constexpr double kTokenScale = 0.1;    // of the embeddings that it starts with
  static constexpr int64_t kColumnWidth = 32;   // of what is made of numbers and categories
  static constexpr int64_t kHeadWidth = 64;     // of the layer over both
};

struct CnnSpec {
  int64_t width = 32;                    // channels of the first stage, doubled by each later one
  std::vector<int64_t> blocks{1, 1, 1};  // of each stage
  bool mirror = false;                   // answers are the mean over the mirror image, too
};

struct ScriptSpec {
  std::string path;
  std::string sha256;  // of its bytes
};

struct Unet3dSpec {
  int64_t base = 8;    // channels of the first level; each further one has twice as many
  int64_t levels = 3;  // each further one at half the extent
};

struct ModelSpec {
  std::string architecture = "mlp";       // mlp, lstm, transformer, text, cnn, unet3d, script
  std::vector<int64_t> hidden{256, 256};  // mlp: width of each hidden layer
  LstmSpec lstm;
  TransformerSpec transformer;
  TextEncoderSpec text;
  CnnSpec cnn;
  ScriptSpec script;
  Unet3dSpec unet3d;
  // 0-1. mlp: after each hidden layer; lstm: between layers; transformer and text: of
  // attention, of the network's hidden layer and of what each adds to its input; cnn: before
  // the head.
  double dropout = 0.1;
};

// What goes in and comes out. Numeric and categorical inputs are of each time step.
struct ModelShape {
  int64_t numeric = 0;                 // columns of the numeric input
  std::vector<int64_t> cardinalities;  // of each categorical input
  int64_t outputs = 1;                 // classes, or numbers to predict
  int64_t window = 1;                  // time steps of a sample; 1: a plain row
  std::vector<int64_t> image;          // [C, H, W] or [C, D, H, W] of its media; empty: none
  int64_t vocabulary = 0;              // of its tokens, which are below it; 0: no text
  int64_t max_tokens = 0;              // of a sample
};
inline bool HasMedia(const ModelShape& shape) {
  return !shape.image.empty() || shape.vocabulary > 0;
}

}  // namespace traind
