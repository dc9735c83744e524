#include "worker/prepare/sentencepiece_library.h"

#include <sentencepiece_trainer.h>

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

std::string TrainPieces(const std::vector<std::string>& sentences, long vocabulary,
                        std::string& error) {
  const std::unordered_map<std::string, std::string> options = {
      {"model_type", "unigram"},     {"vocab_size", std::to_string(vocabulary)},
      {"hard_vocab_limit", "false"}, {"num_threads", "1"},
      {"minloglevel", "3"},
  };
  std::string model;
  Sentences iterator(sentences);
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &iterator, &model);
  if (!status.ok()) {
    error = status.ToString();
    return "";
  }
  return model;
}

}  // namespace traind
