#include "common/data/table/text_features.h"

#include <absl/container/flat_hash_set.h>
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "common/data/text/words.h"

namespace traind {
namespace {

// Columns with fewer different texts are categories alone.
constexpr size_t kManyTexts = 30;
// A number is a feature if it stands in this share of the texts, in so many rows, with so many
// values.
constexpr int64_t kShareOfNumbers = 10;  // one in ten
constexpr int64_t kFewRows = 10;
constexpr size_t kFewNumbers = 5;
// A word is one if it stands in, and is missing in, so many rows, or one row in so many.
constexpr int64_t kFewRowsOfWord = 5, kRowsPerWord = 100;
constexpr size_t kFewTextsOfWord = 2;
constexpr size_t kMostWordsOfColumn = 32, kMostWords = 96;
constexpr int64_t kMostCells = int64_t{1} << 25;  // of words, in a table: 128 MiB
constexpr size_t kLongestWord = 40, kMostDigits = 15;

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }
bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// What a word or letter behind a number multiplies it with; 1: nothing. `apart`: a blank stands
// between, where single letters mean something else.
double Multiple(absl::string_view unit, bool apart) {
  struct Named {
    absl::string_view name;
    double multiple;
  };
  static constexpr Named kLetters[] = {{"k", 1e3}, {"K", 1e3}, {"M", 1e6},
                                       {"G", 1e9}, {"B", 1e9}, {"T", 1e12}};
  static constexpr Named kWords[] = {
      {"kb", 1e3},      {"mb", 1e6},      {"gb", 1e9},        {"tb", 1e12},  {"kib", 1e3},
      {"mib", 1e6},     {"gib", 1e9},     {"tib", 1e12},      {"khz", 1e3},  {"mhz", 1e6},
      {"ghz", 1e9},     {"mn", 1e6},      {"mln", 1e6},       {"bn", 1e9},   {"thousand", 1e3},
      {"million", 1e6}, {"billion", 1e9}, {"trillion", 1e12}, {"lakh", 1e5}, {"lac", 1e5},
      {"crore", 1e7},   {"cr", 1e7},
  };
  if (!apart) {
    for (const Named& letter : kLetters) {
      if (unit == letter.name) return letter.multiple;
    }
  }
  const std::string lower = absl::AsciiStrToLower(unit);
  for (const Named& word : kWords) {
    if (lower == word.name) return word.multiple;
  }
  return 1;
}

// Walks over the numbers of a text.
class Numbers {
 public:
  explicit Numbers(absl::string_view text) : text_(text) {}

  // Returns the next number; NaN: there is none.
  float Next() {
    while (at_ < text_.size()) {
      if (!IsDigit(text_[at_])) {
        ++at_;
        continue;
      }
      const size_t begin = at_;
      size_t letters = begin;
      while (letters > 0 && IsLetter(text_[letters - 1])) --letters;
      const bool by_x = begin == after_x_;
      const bool before = letters < begin && !by_x;
      double number = 0;
      const bool few = Digits(number);
      const size_t unit = at_;
      while (at_ < text_.size() && IsLetter(text_[at_])) ++at_;
      const absl::string_view behind = text_.substr(unit, at_ - unit);
      const bool digits_follow = at_ < text_.size() && IsDigit(text_[at_]);
      const bool x = (behind == "x" || behind == "X") && digits_follow;
      if (x) after_x_ = at_;
      const bool code =
          (before && (!behind.empty() || (letters > 0 && IsDigit(text_[letters - 1])))) ||
          (digits_follow && !behind.empty() && !x);
      if (code || !few) {
        while (at_ < text_.size() && (IsLetter(text_[at_]) || IsDigit(text_[at_]))) ++at_;
        continue;
      }
      if (begin > 0 && text_[begin - 1] == '-' && (begin == 1 || text_[begin - 2] == ' ')) {
        number = -number;
      }
      if (!x) number *= behind.empty() ? MultipleApart() : Multiple(behind, /*apart=*/false);
      return static_cast<float>(number);
    }
    return std::nanf("");
  }

 private:
  // Reads digits, commas between thousands, and a fraction. Returns false if there are too many.
  bool Digits(double& number) {
    std::string digits;
    const auto take = [&] {
      while (at_ < text_.size() && IsDigit(text_[at_])) digits.push_back(text_[at_++]);
    };
    take();
    const bool thousands = digits.size() <= 3;
    while (thousands && Groups()) {
      ++at_;
      for (int i = 0; i < 3; ++i) digits.push_back(text_[at_++]);
    }
    if (at_ + 1 < text_.size() && text_[at_] == '.' && IsDigit(text_[at_ + 1])) {
      digits.push_back(text_[at_++]);
      take();
    }
    return digits.size() <= kMostDigits && absl::SimpleAtod(digits, &number);
  }
  // Whether a comma and exactly three digits come next.
  bool Groups() const {
    if (at_ + 3 >= text_.size() || text_[at_] != ',') return false;
    for (size_t i = 1; i <= 3; ++i) {
      if (!IsDigit(text_[at_ + i])) return false;
    }
    return at_ + 4 >= text_.size() || !IsDigit(text_[at_ + 4]);
  }
  // What a word behind the number and a blank multiplies it with.
  double MultipleApart() const {
    if (at_ >= text_.size() || text_[at_] != ' ') return 1;
    size_t end = at_ + 1;
    while (end < text_.size() && IsLetter(text_[end])) ++end;
    if (end < text_.size() && IsDigit(text_[end])) return 1;
    return Multiple(text_.substr(at_ + 1, end - at_ - 1), /*apart=*/true);
  }

  absl::string_view text_;
  size_t at_ = 0;
  size_t after_x_ = absl::string_view::npos;  // where digits begin behind an x
};

// The numbers that stand at one place of a column's texts.
class NumbersOfColumn {
 public:
  // labelled: letters come before the text's first number.
  void Add(float number, bool labelled, int64_t rows) {
    rows_ += rows;
    labels_ &= labelled;
    whole_ &= number == std::trunc(number);
    low_ = std::min(low_, number);
    high_ = std::max(high_, number);
    distinct_.insert(number);
  }
  int64_t rows() const { return rows_; }
  // Whether they measure something: they vary, and do not just number the rows, or the things that
  // a column names (user17).
  bool Measure() const {
    const auto distinct = static_cast<int64_t>(distinct_.size());
    const bool dense = static_cast<double>(high_) - low_ < kDense * static_cast<double>(distinct);
    const bool of_a_row = 10 * distinct > 9 * rows_;
    return distinct >= static_cast<int64_t>(kFewNumbers) &&
           !(whole_ && dense && (of_a_row || labels_));
  }

 private:
  static constexpr double kDense = 4;

  absl::flat_hash_set<float> distinct_;
  int64_t rows_ = 0;
  bool whole_ = true, labels_ = true;
  float low_ = std::numeric_limits<float>::max(), high_ = std::numeric_limits<float>::lowest();
};

// Characters that are no digits, so that the places of a number do not count.
size_t LengthOf(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    const bool begins = (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // a character
    return begins && !IsDigit(c);
  }));
}

int64_t Present(absl::Span<const int64_t> rows) {
  int64_t sum = 0;
  for (const int64_t count : rows) sum += count;
  return sum;
}

}  // namespace

std::array<float, kTextNumbers> TextNumbers(absl::string_view text) {
  Numbers numbers(text);
  std::array<float, kTextNumbers> found;
  for (float& number : found) number = numbers.Next();
  return found;
}

void TextWords(absl::string_view text, const std::function<void(absl::string_view)>& use) {
  ForEachWord(text, [&](absl::string_view word) {
    if (word.size() > kLongestWord) return;
    size_t begin = 0, end = word.size();
    if (IsDigit(word[0])) {
      while (begin < end && IsDigit(word[begin])) ++begin;
    } else {
      while (end > 0 && IsDigit(word[end - 1])) --end;
    }
    const absl::string_view letters = word.substr(begin, end - begin);
    const bool code = std::any_of(letters.begin(), letters.end(), IsDigit);
    if (letters.empty() || code) return;
    if (IsLetter(letters[0]) || !IsAscii(letters[0])) use(letters);
  });
}

std::vector<TextFeature> PlainTextFeatures(const std::vector<absl::string_view>& values,
                                           absl::Span<const int64_t> rows) {
  std::vector<TextFeature> parts;
  std::array<NumbersOfColumn, kTextNumbers> numbers;
  std::set<size_t> lengths;
  for (size_t value = 0; value < values.size(); ++value) {
    if (rows[value] == 0) continue;
    const std::array<float, kTextNumbers> found = TextNumbers(values[value]);
    const auto digit = std::find_if(values[value].begin(), values[value].end(), IsDigit);
    const bool labelled = std::any_of(values[value].begin(), digit, IsLetter);
    for (size_t i = 0; i < found.size() && !std::isnan(found[i]); ++i) {
      numbers[i].Add(found[i], labelled, rows[value]);
    }
    if (lengths.size() < kFewNumbers) lengths.insert(LengthOf(values[value]));
  }
  const int64_t fewest = std::max(kFewRows, Present(rows) / kShareOfNumbers);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i].rows() < fewest || !numbers[i].Measure()) continue;
    TextFeature& part = parts.emplace_back();
    part.kind = TextFeature::Kind::kNumber;
    part.index = static_cast<int>(i);
  }
  if (values.size() > kManyTexts && lengths.size() >= kFewNumbers) {
    parts.emplace_back().kind = TextFeature::Kind::kLength;
  }
  return parts;
}

std::vector<FrequentWord> FrequentWords(const std::vector<absl::string_view>& values,
                                        absl::Span<const int64_t> rows, int64_t all) {
  struct Count {
    int64_t rows = 0;
    size_t texts = 0;
    size_t last = 0;       // the last text that has it, from 1
    uint64_t members = 0;  // of the texts that have it; equal sets give equal sums
  };
  std::vector<FrequentWord> found;
  if (values.size() <= kManyTexts) return found;
  absl::flat_hash_map<std::string, Count> counts;
  for (size_t value = 0; value < values.size(); ++value) {
    if (rows[value] == 0) continue;
    uint64_t mixed = (value + 1) * 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 31) * 0xbf58476d1ce4e5b9;
    TextWords(values[value], [&](absl::string_view word) {
      Count& count = counts[word];
      if (count.last == value + 1) return;
      count.last = value + 1;
      count.rows += rows[value];
      count.members += mixed;
      ++count.texts;
    });
  }
  const int64_t fewest = std::max(kFewRowsOfWord, all / kRowsPerWord);
  for (const auto& [word, count] : counts) {
    if (count.texts < kFewTextsOfWord || count.rows < fewest || all - count.rows < fewest) continue;
    found.push_back({word, count.rows});
  }
  std::sort(found.begin(), found.end(), [](const FrequentWord& a, const FrequentWord& b) {
    return a.rows != b.rows ? a.rows > b.rows : a.word < b.word;
  });
  std::set<uint64_t> members;
  const auto last = std::remove_if(found.begin(), found.end(), [&](const FrequentWord& word) {
    return !members.insert(counts[word.word].members).second;
  });
  found.erase(last, found.end());
  if (found.size() > kMostWordsOfColumn) found.resize(kMostWordsOfColumn);
  return found;
}

std::vector<size_t> WordsToTake(const std::vector<std::vector<FrequentWord>>& columns,
                                int64_t rows) {
  struct Candidate {
    int64_t rows;
    size_t column;
  };
  std::vector<Candidate> all;
  for (size_t column = 0; column < columns.size(); ++column) {
    for (const FrequentWord& word : columns[column]) all.push_back({word.rows, column});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.rows > b.rows; });
  const auto fit = static_cast<size_t>(kMostCells / std::max<int64_t>(1, rows));
  if (const size_t most = std::min(kMostWords, fit); all.size() > most) all.resize(most);
  std::vector<size_t> taken(columns.size());
  for (const Candidate& candidate : all) ++taken[candidate.column];
  return taken;
}

TextFeatureReader::TextFeatureReader(std::vector<TextFeature> parts) : parts_(std::move(parts)) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    numbers_ |= parts_[i].kind == TextFeature::Kind::kNumber;
    if (parts_[i].kind == TextFeature::Kind::kWord) words_.emplace(parts_[i].word, i);
  }
}

void TextFeatureReader::Read(absl::string_view text, float* out) const {
  std::array<float, kTextNumbers> numbers;
  if (numbers_) numbers = TextNumbers(text);
  for (size_t i = 0; i < parts_.size(); ++i) {
    out[i] = 0;
    if (parts_[i].kind == TextFeature::Kind::kNumber) {
      out[i] = numbers[static_cast<size_t>(parts_[i].index)];
    } else if (parts_[i].kind == TextFeature::Kind::kLength) {
      out[i] = static_cast<float>(LengthOf(text));
    }
  }
  if (words_.empty()) return;
  TextWords(text, [&](absl::string_view word) {
    const auto part = words_.find(word);
    if (part != words_.end()) out[part->second] = 1;
  });
}

}  // namespace traind
