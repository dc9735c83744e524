#include "common/data/weights/name_map.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace traind {
namespace {

using Piece = NameMap::Piece;

constexpr absl::string_view kAny = "*";

absl::Status Wrong(absl::string_view pattern, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("'", pattern, "': ", what));
}

absl::StatusOr<std::vector<Piece>> PiecesOf(absl::string_view pattern) {
  std::vector<Piece> pieces;
  const auto add = [&](absl::string_view text, bool stands_for) {
    if (!text.empty()) pieces.push_back({std::string(text), stands_for});
  };
  absl::string_view rest = pattern;
  while (!rest.empty()) {
    const size_t special = std::min(rest.find_first_of("{}*"), rest.size());
    add(rest.substr(0, special), false);
    rest.remove_prefix(special);
    if (rest.empty()) break;
    if (absl::ConsumePrefix(&rest, kAny)) {
      add(kAny, true);
      continue;
    }
    const size_t end = rest.find('}');
    if (rest[0] == '}' || end == rest.npos || end < 2) {
      return Wrong(pattern, "braces hold one word, as in layers.{i}.weight");
    }
    const absl::string_view word = rest.substr(1, end - 1);
    if (!std::all_of(word.begin(), word.end(), absl::ascii_isalnum)) {
      return Wrong(pattern, "braces hold one word of letters and digits, as in layers.{i}.weight");
    }
    add(word, true);
    rest.remove_prefix(end + 1);
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (pieces[i].stands_for && pieces[k].stands_for && pieces[i].text == pieces[k].text) {
        return Wrong(pattern, absl::StrCat("'", pieces[i].text, "' is there twice"));
      }
    }
  }
  return pieces;
}

using Values = std::map<std::string, std::string, std::less<>>;

// Finds the first way in which the pieces match text; numbers and texts match as much as they can.
bool Matches(const std::vector<Piece>& pieces, size_t at, absl::string_view text, Values& values) {
  if (at == pieces.size()) return text.empty();
  const Piece& piece = pieces[at];
  if (!piece.stands_for) {
    return absl::ConsumePrefix(&text, piece.text) && Matches(pieces, at + 1, text, values);
  }
  size_t most = text.size();
  if (piece.text != kAny) {
    most = 0;
    while (most < text.size() && absl::ascii_isdigit(text[most])) ++most;
  }
  for (size_t length = most; length > 0; --length) {
    if (!Matches(pieces, at + 1, text.substr(length), values)) continue;
    values[piece.text] = std::string(text.substr(0, length));
    return true;
  }
  return false;
}

absl::StatusOr<MapSource> ParseSource(absl::string_view pattern, absl::string_view text) {
  MapSource source;
  text = absl::StripAsciiWhitespace(text);
  source.transposed = absl::ConsumeSuffix(&text, "^T");
  if (absl::ConsumeSuffix(&text, "]")) {
    const size_t open = text.rfind('[');
    if (open == text.npos) return Wrong(pattern, "']' without '['");
    const std::vector<absl::string_view> ends = absl::StrSplit(text.substr(open + 1), ':');
    int64_t end = 0;
    const bool known =
        ends.size() == 2 &&
        (ends[0].empty() ||
         (absl::SimpleAtoi(ends[0], &source.first_row) && source.first_row >= 0)) &&
        (ends[1].empty() || (absl::SimpleAtoi(ends[1], &end) && end > source.first_row));
    if (!known) {
      return Wrong(pattern, absl::StrCat("'", text.substr(open),
                                         "]' is not a range of rows such as "
                                         "[0:100]"));
    }
    if (!ends[1].empty()) source.end_row = end;
    text = text.substr(0, open);
  }
  if (text.empty()) return Wrong(pattern, "a tensor without a name");
  source.tensor = std::string(text);
  return source;
}

std::string Filled(const std::vector<Piece>& pieces, const Values& values) {
  std::string text;
  for (const Piece& piece : pieces) {
    absl::StrAppend(&text, piece.stands_for ? values.at(piece.text) : piece.text);
  }
  return text;
}

}  // namespace

absl::StatusOr<NameMap::Entry> NameMap::ParseEntry(const std::string& pattern,
                                                   absl::string_view text) {
  Entry entry;
  entry.pattern = pattern;
  if (pattern.empty()) return Wrong(pattern, "an entry without a parameter");
  ASSIGN_OR_RETURN(entry.pieces, PiecesOf(pattern));
  for (const Piece& piece : entry.pieces) {
    if (piece.stands_for) entry.breadth = std::max(entry.breadth, piece.text == kAny ? 2 : 1);
  }
  if (absl::StripAsciiWhitespace(text) == "skip") {
    entry.skip = true;
    return entry;
  }
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(MapSource source, ParseSource(pattern, part));
    ASSIGN_OR_RETURN(const std::vector<Piece> names, PiecesOf(source.tensor));
    for (const Piece& name : names) {
      const bool known = std::any_of(
          entry.pieces.begin(), entry.pieces.end(),
          [&](const Piece& piece) { return piece.stands_for && piece.text == name.text; });
      if (name.stands_for && !known) {
        return Wrong(pattern, absl::StrCat("'", name.text, "' in '", source.tensor,
                                           "' does not occur in the parameter"));
      }
    }
    entry.sources.push_back(std::move(source));
  }
  return entry;
}

absl::StatusOr<NameMap> NameMap::Parse(const std::map<std::string, std::string>& entries) {
  NameMap map;
  for (const auto& [pattern, text] : entries) {
    ASSIGN_OR_RETURN(Entry entry, ParseEntry(pattern, text));
    map.entries_.push_back(std::move(entry));
  }
  std::stable_sort(map.entries_.begin(), map.entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.breadth < b.breadth; });
  return map;
}

absl::StatusOr<std::optional<NameMap::Match>> NameMap::Find(absl::string_view parameter) const {
  const Entry* found = nullptr;
  Values values;
  for (const Entry& entry : entries_) {  // the most specific first
    if (found != nullptr && entry.breadth > found->breadth) break;
    Values these;
    if (!Matches(entry.pieces, 0, parameter, these)) continue;
    if (found != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "both '", found->pattern, "' and '", entry.pattern, "' are entries for ", parameter));
    }
    found = &entry;
    values = std::move(these);
  }
  if (found == nullptr) return std::optional<Match>();
  Match match{found->pattern, found->skip, found->sources};
  for (MapSource& source : match.sources) {
    ASSIGN_OR_RETURN(const std::vector<Piece> pieces, PiecesOf(source.tensor));
    source.tensor = Filled(pieces, values);
  }
  return std::optional<Match>(std::move(match));
}

std::vector<std::string> NameMap::Unmatched(const std::vector<std::string>& parameters) const {
  std::vector<std::string> unmatched;
  for (const Entry& entry : entries_) {
    const auto matches = [&](const std::string& parameter) {
      Values values;
      return Matches(entry.pieces, 0, parameter, values);
    };
    if (std::none_of(parameters.begin(), parameters.end(), matches)) {
      unmatched.push_back(entry.pattern);
    }
  }
  return unmatched;
}

}  // namespace traind
