#include "server/store/spec_text.h"

#include <absl/strings/string_view.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

namespace traind {
namespace {

// The first byte of a packed text. No JSON begins so.
constexpr char kPacked = 1;
// Pieces that are shorter are not worth their numbers, and are not looked for.
constexpr size_t kLeastPiece = 8;
// What a packed text may come to; only a damaged database has more.
constexpr size_t kMostUnpacked = 64 << 20;

// Specs as they were resolved when this was written; newer fields are stored without it. It belongs
// to the format: a change of one byte makes wrong what is stored.
constexpr absl::string_view kDictionary =
    R"({"lightgbm":{"bagging_fraction":1,"bagging_freq":0,"boosting":"gbdt","cat_l2":10,"ca)"
    R"(t_smooth":10,"early_stopping_round":100,"extra_trees":false,"feature_fraction":1,"fe)"
    R"(ature_fraction_bynode":1,"lambda_l1":0,"lambda_l2":0,"learning_rate":0.05,"linear_tr)"
    R"(ee":false,"max_bin":255,"max_cat_threshold":32,"max_cat_to_onehot":4,"max_delta_step)"
    R"(":0,"max_depth":-1,"min_data_in_leaf":20,"min_data_per_group":100,"min_gain_to_split)"
    R"(":0,"min_sum_hessian_in_leaf":0.001,"num_iterations":2000,"num_leaves":31,"path_smoo)"
    R"(th":0}}{"xgboost":{"alpha":0,"booster":"gbtree","colsample_bylevel":1,"colsample_byn)"
    R"(ode":1,"colsample_bytree":1,"early_stopping_rounds":100,"gamma":0,"grow_policy":"dep)"
    R"(thwise","lambda":1,"learning_rate":0.08,"max_bin":256,"max_cat_threshold":64,"max_ca)"
    R"(t_to_onehot":4,"max_delta_step":0,"max_depth":6,"max_leaves":0,"min_child_weight":1,)"
    R"("num_boost_round":2000,"num_parallel_tree":1,"subsample":1}}{"lstm":{"dropout":0.1,")"
    R"(hidden":128,"layers":2}}{"transformer":{"dropout":0.1,"feedforward":128,"heads":4,"l)"
    R"(ayers":2,"norm":"post","pooling":"last","width":64}}"task":{"metric":"rmse","type":")"
    R"(regression"}{"api":"v1","budget":{"first_fold_share":0.2,"plan_share":0.8,"policy":")"
    R"(adaptive","reserve_least":"0.400s","reserve_margin":1.3,"reserve_share":0.15,"stop_s)"
    R"(hare":0.7,"subsample":false,"time":"0s"},"cache":"use","data":{"folds":5,"id":"","kn)"
    R"(own_ahead":[],"seed":"0","target":"","targets":[],"test":"","train":"/"},"from":"",")"
    R"(labels":{},"model":{"mlp":{"dropout":0.1,"ensemble_members":1,"hidden":[256,256]}},")"
    R"(name":"","output":"","predictions":{"ensemble":"mean","format":"csv","probabilities")"
    R"(:true,"quantiles":[]},"preset":"","priority":0,"resources":{"device":"","gpu":"","gp)"
    R"(u_memory":"","labels":{},"slots":1},"task":{"metric":"accuracy","type":"classificati)"
    R"(on"},"train":{"accumulation":1,"batch":0,"checkpoint_epochs":0,"clip_norm":5,"collec)"
    R"(tive":"","ema":0,"ema_warmup":false,"epochs":20,"find_learning_rate":false,"freeze":)"
    R"({"epochs":0,"learning_rate":0,"thaw_layers":0},"gradient_norm":false,"inference_prec)"
    R"(ision":"","keep_best":0,"layer_decay":1,"learning_rate":0,"loss":{"class_weights":"n)"
    R"(one","huber_delta":1,"kind":"","label_smoothing":0,"weights":[]},"optimizer":{"alpha)"
    R"(":0.99,"beta1":0.9,"beta2":0.999,"eps":1e-08,"kind":"adamw","nesterov":false},"paths)"
    R"(":{"cuda_graph":false,"cudnn_benchmark":true,"fused_optimizer":true,"handwritten_bac)"
    R"(kward":true,"handwritten_forward":true},"patience":5,"precision":"","recompute":"",")"
    R"(rendezvous":{"host":"","port":0},"scale_learning_rate":"none","schedule":{"end_divis)"
    R"(or":10000,"gamma":0.1,"kind":"cosine","least":0,"period":10,"period_growth":1,"power)"
    R"(":1,"rise":0.3,"start_divisor":25},"seeds":1,"shorten_sequences":false,"shuffle":tru)"
    R"(e,"swa":0},"trials":[]})";
static_assert(kDictionary.size() < 32'768);

// Finds pieces of the dictionary by their first bytes.
class Index {
 public:
  Index() {
    first_.fill(-1);
    for (size_t at = 0; at + kLeastPiece <= kDictionary.size(); ++at) {
      int16_t& first = first_[Slot(kDictionary.data() + at)];
      next_[at] = first;
      first = static_cast<int16_t>(at);
    }
  }
  // Returns the longest piece of the dictionary with which the text begins; it is empty where none
  // has kLeastPiece bytes.
  absl::string_view Longest(absl::string_view text) const {
    absl::string_view longest;
    if (text.size() < kLeastPiece) return longest;
    for (int at = first_[Slot(text.data())]; at >= 0; at = next_[static_cast<size_t>(at)]) {
      const absl::string_view here = kDictionary.substr(static_cast<size_t>(at));
      const auto [end, other] = std::mismatch(here.begin(), here.end(), text.begin(), text.end());
      const auto length = static_cast<size_t>(end - here.begin());
      if (length > longest.size()) longest = here.substr(0, length);
    }
    return longest.size() < kLeastPiece ? absl::string_view() : longest;
  }

 private:
  static constexpr int kBits = 12;
  static size_t Slot(const char* bytes) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof(word));
    return (word * 0x9E3779B97F4A7C15u) >> (64 - kBits);
  }

  std::array<int16_t, size_t{1} << kBits> first_;
  std::array<int16_t, kDictionary.size()> next_ = {};
};

// Numbers of 7 bits a byte, the lowest first; all bytes but the last have the highest bit.
void AddNumber(size_t number, std::string& to) {
  for (; number >= 128; number >>= 7) to.push_back(static_cast<char>(number | 128));
  to.push_back(static_cast<char>(number));
}
std::optional<size_t> TakeNumber(absl::string_view& from) {
  size_t number = 0;
  for (int shift = 0; shift < 35 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from[0]);
    from.remove_prefix(1);
    number |= static_cast<size_t>(byte & 127) << shift;
    if (byte < 128) return number;
  }
  return std::nullopt;
}

// Moves so many bytes from the front of one text to the end of another. false: it has fewer.
bool Move(std::optional<size_t> bytes, absl::string_view& from, std::string& to) {
  if (!bytes || *bytes > from.size()) return false;
  to.append(from.data(), *bytes);
  from.remove_prefix(*bytes);
  return true;
}

}  // namespace

std::string PackSpec(absl::string_view text) {
  static const Index* const index = new Index();
  std::string packed(1, kPacked);
  packed.reserve(256);
  while (!text.empty()) {
    absl::string_view piece;
    size_t own = 0;  // bytes in front of the piece
    for (; own < text.size() && piece.empty(); own += piece.empty() ? 1 : 0) {
      piece = index->Longest(text.substr(own));
    }
    AddNumber(own, packed);
    Move(own, text, packed);
    if (piece.empty()) break;
    AddNumber(static_cast<size_t>(piece.data() - kDictionary.data()), packed);
    AddNumber(piece.size(), packed);
    text.remove_prefix(piece.size());
  }
  return packed;
}

absl::Status UnpackSpec(std::string& text) {
  if (text.empty() || text[0] != kPacked) return absl::OkStatus();
  const absl::Status damaged = absl::DataLossError("database: jobs.spec_json cannot be unpacked");
  std::string unpacked;
  unpacked.reserve(2048);
  absl::string_view rest = absl::string_view(text).substr(1);
  while (!rest.empty()) {
    if (!Move(TakeNumber(rest), rest, unpacked)) return damaged;
    if (rest.empty()) break;
    const std::optional<size_t> at = TakeNumber(rest), bytes = TakeNumber(rest);
    if (!at || *at > kDictionary.size()) return damaged;
    absl::string_view piece = kDictionary.substr(*at);
    if (!Move(bytes, piece, unpacked) || unpacked.size() > kMostUnpacked) return damaged;
  }
  text = std::move(unpacked);
  return absl::OkStatus();
}

}  // namespace traind
