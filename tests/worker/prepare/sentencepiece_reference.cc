#include "tests/worker/prepare/sentencepiece_reference.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <stdexcept>
#include <unordered_map>

namespace traind {
namespace {

class Sentences final : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(const std::vector<std::string>& sentences) : sentences_(sentences) {}
  bool done() const override { return at_ >= sentences_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return sentences_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& sentences_;
  size_t at_ = 0;
};

}  // namespace

std::vector<std::vector<int>> ReferenceIds(const std::string& model,
                                           const std::vector<std::string>& texts) {
  sentencepiece::SentencePieceProcessor processor;
  if (!processor.LoadFromSerializedProto(model).ok()) throw std::runtime_error("no model");
  std::vector<std::vector<int>> all;
  for (const std::string& text : texts) {
    if (!processor.Encode(text, &all.emplace_back()).ok()) {
      throw std::runtime_error("SentencePiece refuses");
    }
  }
  return all;
}

std::vector<int> ReferenceIds(const std::string& model, const std::string& text) {
  return ReferenceIds(model, std::vector<std::string>{text})[0];
}

std::string ReferenceModel(const std::vector<std::string>& texts,
                           const std::map<std::string, std::string>& options) {
  std::unordered_map<std::string, std::string> all(options.begin(), options.end());
  all.emplace("hard_vocab_limit", "false");
  all.emplace("num_threads", "1");
  all.emplace("minloglevel", "3");
  std::string model;
  Sentences iterator(texts);
  const auto status = sentencepiece::SentencePieceTrainer::Train(all, &iterator, &model);
  if (!status.ok()) throw std::runtime_error(status.ToString());
  return model;
}

}  // namespace traind
