#include "common/spec/yaml_tree.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "common/base/utf8.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

constexpr absl::string_view kYamlTag = "tag:yaml.org,2002:";

// Thrown out of the handler to end the parse; never leaves this file.
struct StopParsing {
  YAML::Mark mark;
  std::string message;
};

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(YamlTree& tree, int source, absl::string_view text) : tree_(tree), source_(source) {
    lines_.push_back(text);
    for (size_t end; (end = lines_.back().find('\n')) != absl::string_view::npos;) {
      lines_.push_back(lines_.back().substr(end + 1));
    }
  }

  std::optional<int> root() const { return root_; }

  // yaml-cpp counts bytes. Marks come mostly in order, so counting goes on from
  // the one before.
  int Column(const YAML::Mark& mark) {
    if (mark.line < 0 || mark.line >= static_cast<int>(lines_.size())) return 1;
    if (mark.line != counted_.line || mark.column < counted_.bytes) counted_ = {mark.line, 0, 1};
    const absl::string_view line = lines_[mark.line];
    for (; counted_.bytes < mark.column && counted_.bytes < static_cast<int>(line.size());
         ++counted_.bytes) {
      if ((static_cast<unsigned char>(line[counted_.bytes]) & 0xC0) != 0x80) ++counted_.column;
    }
    return counted_.column;
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Place(NewNode(YamlNode::Kind::kNull, mark, anchor), mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw StopParsing{mark, "this alias has no anchor"};
    for (const Open& open : open_) {
      if (open.node == found->second) throw StopParsing{mark, "this alias contains itself"};
    }
    Place(found->second, mark);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool text = tag == "!" || tag == absl::StrCat(kYamlTag, "str");
    if (!text) CheckTag(mark, tag);
    const int index = NewNode(YamlNode::Kind::kScalar, mark, anchor);
    tree_.at(index).text = value;
    tree_.at(index).quoted = text;
    Place(index, mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Begin(YamlNode::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Begin(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  struct Open {
    int node;
    int key = -1;  // of the entry that still lacks its value
  };

  static void CheckTag(const YAML::Mark& mark, absl::string_view tag) {
    if (tag.empty() || tag == "?" || tag == "!" || absl::StartsWith(tag, kYamlTag)) return;
    throw StopParsing{mark, absl::StrCat("the tag ", Printable(tag), " means nothing here")};
  }

  int NewNode(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    YamlNode node;
    node.kind = kind;
    node.source = source_;
    node.line = mark.line + 1;
    node.column = Column(mark);
    const int index = tree_.Add(std::move(node));
    if (anchor != YAML::NullAnchor) anchors_[anchor] = index;
    return index;
  }

  void Begin(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
             YAML::anchor_t anchor) {
    CheckTag(mark, tag);
    if (static_cast<int>(open_.size()) >= YamlTree::kMostDepth) {
      throw StopParsing{mark, absl::StrCat("nested deeper than ", YamlTree::kMostDepth)};
    }
    const int index = NewNode(kind, mark, anchor);
    Place(index, mark);
    open_.push_back({index});
  }

  // Puts a node into what is open: the next item, key or value.
  void Place(int index, const YAML::Mark& mark) {
    if (open_.empty()) {
      root_ = index;
      return;
    }
    Open& parent = open_.back();
    if (tree_.at(parent.node).kind == YamlNode::Kind::kList) {
      tree_.at(parent.node).items.push_back(index);
    } else if (parent.key < 0) {
      if (tree_.at(index).kind != YamlNode::Kind::kScalar) {
        throw StopParsing{mark, "a key must be a word; is a bracket left open?"};
      }
      parent.key = index;
    } else {
      tree_.at(parent.node).entries.emplace_back(parent.key, index);
      parent.key = -1;
    }
  }

  YamlTree& tree_;
  const int source_;
  std::vector<absl::string_view> lines_;  // each to the end of the text
  struct Counted {
    int line = -1, bytes = 0, column = 1;
  } counted_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, int> anchors_;
  std::optional<int> root_;
};

// A mistake that the parser reports in words of its own, or at the wrong place.
struct Explained {
  int line = 0;    // from 1; 0: where the parser says
  int column = 0;  // from 1
  std::string message;
};

// Explains an error of the parser at `mark`, a line from 0.
Explained ExplainError(absl::string_view text, const YAML::Mark& mark, absl::string_view error) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  const int last = std::min<int>(mark.line + 1, static_cast<int>(lines.size()) - 1);
  for (int i = 0; i <= last; ++i) {
    const size_t begin = lines[i].find_first_not_of(" \t\r");
    const size_t tab = lines[i].substr(0, begin).find('\t');
    if (begin == absl::string_view::npos || tab == absl::string_view::npos) continue;
    return {i + 1, static_cast<int>(tab) + 1,
            "the line is indented with a tab; YAML takes only blanks"};
  }
  if (error == "illegal map value" && mark.line >= 0 && mark.line <= last &&
      absl::StrContains(lines[mark.line].substr(0, mark.column), ": ")) {
    return {0, 0, "a value with ': ' in it needs quotes, and a section in one line needs braces"};
  }
  if (error == "illegal map value" || absl::StartsWith(error, "end of map not found")) {
    return {0, 0,
            "the indentation does not match the lines above; the keys of a section begin in the "
            "same column"};
  }
  if (error == "end of map flow not found" || error == "end of sequence flow not found") {
    return {0, 0, "a bracket is not closed here, or a comma is missing before this"};
  }
  return {0, 0, absl::StrCat("not YAML: ", error)};
}

}  // namespace

bool YamlTree::CheckCharacters(absl::string_view text, YamlError& error) {
  const size_t bad = FirstNotUtf8(text);
  int line = 1, column = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const bool control = (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
    if (i == bad || control) {
      error.line = line;
      error.column = column;
      error.message = control ? absl::StrFormat("control character 0x%02x", c)
                              : absl::StrFormat("not UTF-8 text: byte 0x%02x", c);
      return false;
    }
    if (c == '\n') {
      ++line;
      column = 1;
    } else if ((c & 0xC0) != 0x80) {
      ++column;
    }
  }
  return true;
}

std::optional<int> YamlTree::Parse(absl::string_view text, int source, YamlError& error) {
  error = YamlError{};
  error.source = source;
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");
  if (text.size() > kMostBytes) {
    error.message = absl::StrCat("larger than 1 MiB (", text.size(), " bytes)");
    return std::nullopt;
  }
  if (!CheckCharacters(text, error)) return std::nullopt;
  TreeBuilder builder(*this, source, text);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return Add(YamlNode{});
    const std::optional<int> root = builder.root();
    if (parser.HandleNextDocument(builder)) {
      error.message = "more than one document";
      return std::nullopt;
    }
    return root ? *root : Add(YamlNode{});
  } catch (const StopParsing& stop) {
    error.line = stop.mark.line + 1;
    error.column = builder.Column(stop.mark);
    error.message = stop.message;
  } catch (const YAML::Exception& exception) {
    if (!exception.mark.is_null()) {
      error.line = exception.mark.line + 1;
      error.column = builder.Column(exception.mark);
    }
    const Explained explained = ExplainError(text, exception.mark, exception.msg);
    if (explained.line > 0) {
      error.line = explained.line;
      error.column = explained.column;
    }
    error.message = explained.message;
  }
  return std::nullopt;
}

}  // namespace traind
